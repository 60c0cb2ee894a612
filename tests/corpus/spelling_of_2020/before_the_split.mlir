func @f(%arg11: memref<?x?xf32>, %arg5: memref<f32>) {
  %c0 = constant 0 : index
  %c1 = constant 1 : index
  %c32 = constant 32 : index
  %c256 = constant 256 : index
  %0 = dim %arg11, 0 : memref<?x?xf32>
  %1 = dim %arg11, 1 : memref<?x?xf32>
  %2 = muli %0, %c256 : index
  loop.for %arg12 = %c0 to %2 step %c1 {      // the externel parallel loop
    %3 = remi_signed %arg12, %c256 : index
    %4 = divi_signed %arg12, %c256 : index
    %5 = remi_unsigned %3, %c32 : index
    %6 = divi_unsigned %3, %c32 : index
    %7 = cmpi "eq", %5, %c0 : index
    %8 = cmpi "eq", %3, %c0 : index
    %9 = load %arg5[] : memref<f32>
    %10 = alloc() {temp} : memref<32xf32, 3>
  }
  return
}
