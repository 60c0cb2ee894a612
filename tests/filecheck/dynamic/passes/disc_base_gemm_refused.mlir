// RUN: xla-emitters-opt -p disc-base-gemm --remarks %s 2>&1 | filecheck %s

// A transpose that moves a batch dimension, or changes the order of free ones, cannot be folded.
// CHECK-DAG: disc-base-gemm: skipped hlo.dot: the transpose of operand 0 moves a batch dimension
// CHECK-DAG: disc-base-gemm: skipped hlo.dot: the transpose of operand 1 changes the order of dimensions that the result has
// CHECK-DAG: hlo.transpose %a
// CHECK-DAG: hlo.transpose %b
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<4x?x8xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<?x5x6xf32>
  %t = hlo.transpose %a {dimensions = array<i64: 1, 0, 2>, name = "t"} : (tensor<4x?x8xf32>) -> tensor<?x4x8xf32>
  %d = hlo.dot %t, %t {lhs_batch_dims = array<i64: 0>, lhs_contracting_dims = array<i64: 2>, name = "d", rhs_batch_dims = array<i64: 0>, rhs_contracting_dims = array<i64: 2>} : (tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x4xf32>
  %u = hlo.transpose %b {dimensions = array<i64: 0, 2, 1>, name = "u"} : (tensor<?x5x6xf32>) -> tensor<?x6x5xf32>
  %e = hlo.dot %d, %u {lhs_contracting_dims = array<i64: 0>, name = "e", rhs_contracting_dims = array<i64: 0>} : (tensor<?x4x4xf32>, tensor<?x6x5xf32>) -> tensor<4x4x6x5xf32>
  hlo.return %e : tensor<4x4x6x5xf32>
}
