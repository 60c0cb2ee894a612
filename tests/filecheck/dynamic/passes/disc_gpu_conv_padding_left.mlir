// RUN: xla-emitters-opt -p disc-gpu-conv-padding --remarks %s 2>&1 | filecheck %s

// The same on both sides, more than two spatial dimensions, on the host: left.
// CHECK-DAG: skipped hlo.dynamic_conv: its padding is the same on both sides
// CHECK-DAG: skipped hlo.dynamic_conv: it has 3 spatial dimensions
// CHECK-DAG: skipped hlo.dynamic_conv: it is on the host
// CHECK-DAG: hlo.dynamic_conv %x, %w, %p
// CHECK-DAG: hlo.dynamic_conv %a, %b, %q
// CHECK-DAG: hlo.dynamic_conv %x, %w, %o
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x4x8xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x4x3xf32>
  %a = hlo.parameter 2 {name = "a"} : tensor<?x4x8x8x8xf32>
  %b = hlo.parameter 3 {name = "b"} : tensor<6x4x3x3x3xf32>
  %q = hlo.parameter 4 {name = "q"} : tensor<3x2xi32>
  %p = hlo.constant {name = "p"} dense<1> : tensor<1x2xi32>
  %o = hlo.constant {name = "o"} dense<[[0, 1]]> : tensor<1x2xi32>
  %y = hlo.dynamic_conv %x, %w, %p {dim_labels = "bf0_oi0->bf0", name = "y", window = #hlo.window<size = [3]>} : (tensor<?x4x8xf32>, tensor<6x4x3xf32>, tensor<1x2xi32>) -> tensor<?x6x8xf32>
  %z = hlo.dynamic_conv %a, %b, %q {dim_labels = "bf012_oi012->bf012", name = "z", window = #hlo.window<size = [3, 3, 3]>} : (tensor<?x4x8x8x8xf32>, tensor<6x4x3x3x3xf32>, tensor<3x2xi32>) -> tensor<?x6x?x?x?xf32>
  %h = hlo.dynamic_conv %x, %w, %o {dim_labels = "bf0_oi0->bf0", disc.device = "cpu", name = "h", window = #hlo.window<size = [3]>} : (tensor<?x4x8xf32>, tensor<6x4x3xf32>, tensor<1x2xi32>) -> tensor<?x6x7xf32>
  %t = hlo.tuple %y, %z, %h {name = "t"} : (tensor<?x6x8xf32>, tensor<?x6x?x?x?xf32>, tensor<?x6x7xf32>) -> tuple<tensor<?x6x8xf32>, tensor<?x6x?x?x?xf32>, tensor<?x6x7xf32>>
  hlo.return %t : tuple<tensor<?x6x8xf32>, tensor<?x6x?x?x?xf32>, tensor<?x6x7xf32>>
}
