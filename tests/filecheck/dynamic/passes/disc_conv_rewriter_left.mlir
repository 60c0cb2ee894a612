// RUN: xla-emitters-opt -p disc-conv-rewriter --remarks %s 2>&1 | filecheck %s

// Without a spatial dimension it is a product of matrices.
// CHECK-DAG: disc-conv-rewriter: skipped hlo.convolution: it has no spatial dimension: it is a product of matrices
// CHECK-DAG: hlo.convolution %x, %w
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x4xf32>
  %y = hlo.convolution %x, %w {dim_labels = "bf_oi->bf", name = "y"} : (tensor<?x4xf32>, tensor<6x4xf32>) -> tensor<?x6xf32>
  hlo.return %y : tensor<?x6xf32>
}
