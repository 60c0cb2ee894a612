// RUN: xla-emitters-opt -p disc-transpose-simplifier --split-input-file %s | filecheck %s

// The transpose behind the first convolution moves over the bias and the maximum, and meets the one before the second: none is left between.
// CHECK-LABEL: hlo.computation @chain entry {
// CHECK:         %a = hlo.dynamic_conv
// CHECK-NOT:     hlo.transpose
// CHECK:         %[[BIAS:.*]] = hlo.broadcast %bias {dimensions = array<i64: 3>, {{.*}} -> tensor<2x8x8x4xf16>
// CHECK-NEXT:    %[[S:.*]] = hlo.add %a, %[[BIAS]]
// CHECK:         %[[Z:.*]] = hlo.constant {{.*}} : tensor<2x8x8x4xf16>
// CHECK-NEXT:    %[[R:.*]] = hlo.maximum %[[S]], %[[Z]]
// CHECK-NEXT:    hlo.dynamic_conv %[[R]]
hlo.computation @chain entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2x8x8x4xf16>
  %w = hlo.parameter 1 {name = "w"} : tensor<4x3x3x4xf16>
  %bias = hlo.parameter 2 {name = "bias"} : tensor<4xf16>
  %p = hlo.constant {name = "p"} dense<1> : tensor<2x2xi32>
  %a = hlo.dynamic_conv %x, %w, %p {dim_labels = "b01f_o01i->b01f", name = "a", window = #hlo.window<size = [3, 3]>} : (tensor<2x8x8x4xf16>, tensor<4x3x3x4xf16>, tensor<2x2xi32>) -> tensor<2x8x8x4xf16>
  %t = hlo.transpose %a {dimensions = array<i64: 0, 3, 1, 2>, name = "t"} : (tensor<2x8x8x4xf16>) -> tensor<2x4x8x8xf16>
  %b = hlo.broadcast %bias {dimensions = array<i64: 1>, name = "b"} : (tensor<4xf16>) -> tensor<2x4x8x8xf16>
  %s = hlo.add %t, %b {name = "s"} : tensor<2x4x8x8xf16>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<2x4x8x8xf16>
  %r = hlo.maximum %s, %z {name = "r"} : tensor<2x4x8x8xf16>
  %u = hlo.transpose %r {dimensions = array<i64: 0, 2, 3, 1>, name = "u"} : (tensor<2x4x8x8xf16>) -> tensor<2x8x8x4xf16>
  %c = hlo.dynamic_conv %u, %w, %p {dim_labels = "b01f_o01i->b01f", name = "c", window = #hlo.window<size = [3, 3]>} : (tensor<2x8x8x4xf16>, tensor<4x3x3x4xf16>, tensor<2x2xi32>) -> tensor<2x8x8x4xf16>
  hlo.return %c : tensor<2x8x8x4xf16>
}

// -----

// An operand in the other layout would need a transpose of its own, and one that is no convolution's is the program's: both are left.
// CHECK-LABEL: hlo.computation @left entry {
// CHECK:         %t = hlo.transpose %a
// CHECK-NEXT:    %s = hlo.add %t, %y
// CHECK-NEXT:    %v = hlo.transpose %y
// CHECK-NEXT:    %e = hlo.negate %v
hlo.computation @left entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2x8x8x4xf16>
  %w = hlo.parameter 1 {name = "w"} : tensor<4x3x3x4xf16>
  %y = hlo.parameter 2 {name = "y"} : tensor<2x4x8x8xf16>
  %p = hlo.constant {name = "p"} dense<1> : tensor<2x2xi32>
  %a = hlo.dynamic_conv %x, %w, %p {dim_labels = "b01f_o01i->b01f", name = "a", window = #hlo.window<size = [3, 3]>} : (tensor<2x8x8x4xf16>, tensor<4x3x3x4xf16>, tensor<2x2xi32>) -> tensor<2x8x8x4xf16>
  %t = hlo.transpose %a {dimensions = array<i64: 0, 3, 1, 2>, name = "t"} : (tensor<2x8x8x4xf16>) -> tensor<2x4x8x8xf16>
  %s = hlo.add %t, %y {name = "s"} : tensor<2x4x8x8xf16>
  %v = hlo.transpose %y {dimensions = array<i64: 0, 2, 3, 1>, name = "v"} : (tensor<2x4x8x8xf16>) -> tensor<2x8x8x4xf16>
  %e = hlo.negate %v {name = "e"} : tensor<2x8x8x4xf16>
  %r = hlo.tuple %s, %e {name = "r"} : (tensor<2x4x8x8xf16>, tensor<2x8x8x4xf16>) -> tuple<tensor<2x4x8x8xf16>, tensor<2x8x8x4xf16>>
  hlo.return %r : tuple<tensor<2x4x8x8xf16>, tensor<2x8x8x4xf16>>
}
