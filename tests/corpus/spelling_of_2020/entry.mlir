func @tao_main(%arg0 : memref<?x?xf32>, %arg1 : memref<?x?xf32>, %n: index, %m: index) -> memref<?x?xf32> {
  %tmp = alloc(%n, %m) : memref<?x?xf32>
  %ret = alloc(%n, %m) : memref<?x?xf32>
  call @fusion_function(%arg0, %arg1, %tmp, %ret) : (memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> ()
  return %ret : memref<?x?xf32>
}

func @fusion_function(%arg0 : memref<?x?xf32>, %arg1 : memref<?x?xf32>, %arg2 : memref<?x?xf32>, %arg3 : memref<?x?xf32>) {
  xla_lhlo.add(%arg0, %arg1, %arg2)
  xla_lhlo.mul(%arg0, %arg2, %arg3)
  return
}
