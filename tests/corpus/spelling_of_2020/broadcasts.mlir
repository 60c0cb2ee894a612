func @fusion(%arg0 : memref<?x?xf32>, %arg1 : memref<?x?xf32>, %arg2 : memref<?xf32>, %arg3 : memref<?x?xf32>, %arg4 : memref<?x?xf32>, %bcast_shape: memref<2xi32>) {
  xla_lhlo.d_broadcast(%arg0, %bcast_shape, %arg1) {broadcast_dimensions = dense<[0, 1]> : tensor<2xi64>} : (memref<?x?xf32>, memref<2xi32>, memref<?x?xf32>) -> memref<?x?xf32>
  "xla_lhlo.d_broadcast"(%arg2, %bcast_shape, %arg3) {broadcast_dimensions = dense<1> : tensor<1xi64>} : (memref<?xf32>, memref<2xi32>, memref<?x?xf32>) -> ()
  xla_lhlo.add(%arg1, %arg3, %arg4) : (memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> memref<?x?xf32>
  return
}
