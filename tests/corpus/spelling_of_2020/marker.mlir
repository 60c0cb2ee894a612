func @f(%213: memref<?x?xf32>, %211: index) {
call @mcuCuMemMarker2df32_x_x(%213) : (memref<?x?xf32>) -> ()
%214 = alloc(%211) {temp = true} : memref<?xf32>
return
}
func @mcuCuMemMarker2df32_x_x(memref<?x?xf32>)
