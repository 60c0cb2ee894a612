// RUN: xla-emitters-opt -p disc-canonicalize-reduction{transpose=false} --split-input-file --remarks %s 2>&1 | filecheck %s

// Of a matrix already, and case d where the target has kernels for it: left, with the reason.
// CHECK-DAG: disc-canonicalize-reduction: skipped hlo.reduce: it is a reduction of rows or columns already
// CHECK-DAG: disc-canonicalize-reduction: skipped hlo.reduce: dimensions [1] are neither the first nor the last ones
// CHECK-DAG: hlo.reduce %x, %z {dimensions = array<i64: 0>
// CHECK-DAG: hlo.reduce %y, %z {dimensions = array<i64: 1>
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?xf32>
  %y = hlo.parameter 1 {name = "y"} : tensor<?x?x?xf32>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<f32>
  %r = hlo.reduce %x, %z {dimensions = array<i64: 0>, name = "r", to_apply = @add} : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %s = hlo.reduce %y, %z {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (tensor<?x?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %t = hlo.tuple %r, %s {name = "t"} : (tensor<?xf32>, tensor<?x?xf32>) -> tuple<tensor<?xf32>, tensor<?x?xf32>>
  hlo.return %t : tuple<tensor<?xf32>, tensor<?x?xf32>>
}
