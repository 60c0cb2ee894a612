// RUN: xla-emitters-opt -p disc-base-gemm --split-input-file %s | filecheck %s

// A transpose is folded into the dimensions that are summed over.
// CHECK-LABEL: hlo.computation @fold entry {
// CHECK-NOT:     hlo.transpose
// CHECK:         hlo.dot %a, %b {lhs_contracting_dims = array<i64: 0>, {{.*}}rhs_contracting_dims = array<i64: 0>}
hlo.computation @fold entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x?xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<?x8xf32>
  %t = hlo.transpose %a {dimensions = array<i64: 1, 0>, name = "t"} : tensor<?x?xf32>
  %d = hlo.dot %t, %b {lhs_contracting_dims = array<i64: 1>, name = "d", rhs_contracting_dims = array<i64: 0>} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  hlo.return %d : tensor<?x8xf32>
}

// -----

// Batch dimensions in their place: folded on the right too; two transposes one after the other as well.
// CHECK-LABEL: hlo.computation @batch entry {
// CHECK-NOT:     hlo.transpose
// CHECK:         hlo.dot %a, %b {lhs_batch_dims = array<i64: 0>, lhs_contracting_dims = array<i64: 1>, {{.*}}rhs_batch_dims = array<i64: 0>, rhs_contracting_dims = array<i64: 2>}
hlo.computation @batch entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x4x?xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<?x8x4xf32>
  %t = hlo.transpose %a {dimensions = array<i64: 0, 2, 1>, name = "t"} : (tensor<?x4x?xf32>) -> tensor<?x?x4xf32>
  %u = hlo.transpose %b {dimensions = array<i64: 0, 2, 1>, name = "u"} : (tensor<?x8x4xf32>) -> tensor<?x4x8xf32>
  %d = hlo.dot %t, %u {lhs_batch_dims = array<i64: 0>, lhs_contracting_dims = array<i64: 2>, name = "d", rhs_batch_dims = array<i64: 0>, rhs_contracting_dims = array<i64: 1>} : (tensor<?x?x4xf32>, tensor<?x4x8xf32>) -> tensor<?x?x8xf32>
  hlo.return %d : tensor<?x?x8xf32>
}

// -----

// A vector is a matrix of one row or one column; the result loses that size again. A transpose that is used otherwise stays.
// CHECK-LABEL: hlo.computation @vectors entry {
// CHECK:         %[[ROW:.*]] = hlo.dynamic_reshape %v, %{{.*}} -> tensor<1x?xf32>
// CHECK:         %[[P:.*]] = hlo.dot %[[ROW]], %m {lhs_contracting_dims = array<i64: 1>, {{.*}} -> tensor<1x8xf32>
// CHECK-NEXT:    hlo.reshape %[[P]] {{.*}} -> tensor<8xf32>
// CHECK:         %[[W:.*]] = hlo.dynamic_reshape %v, %{{.*}} -> tensor<?x1xf32>
// CHECK:         hlo.dot %{{.*}}, %[[W]] {{.*}} -> tensor<1x1xf32>
// CHECK-NEXT:    hlo.reshape {{.*}} -> tensor<f32>
hlo.computation @vectors entry {
  %v = hlo.parameter 0 {name = "v"} : tensor<?xf32>
  %m = hlo.parameter 1 {name = "m"} : tensor<?x8xf32>
  %d = hlo.dot %v, %m {lhs_contracting_dims = array<i64: 0>, name = "d", rhs_contracting_dims = array<i64: 0>} : (tensor<?xf32>, tensor<?x8xf32>) -> tensor<8xf32>
  %e = hlo.dot %v, %v {lhs_contracting_dims = array<i64: 0>, name = "e", rhs_contracting_dims = array<i64: 0>} : (tensor<?xf32>, tensor<?xf32>) -> tensor<f32>
  %t = hlo.tuple %d, %e {name = "t"} : (tensor<8xf32>, tensor<f32>) -> tuple<tensor<8xf32>, tensor<f32>>
  hlo.return %t : tuple<tensor<8xf32>, tensor<f32>>
}
