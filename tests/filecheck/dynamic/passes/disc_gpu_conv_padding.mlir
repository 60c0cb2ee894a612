// RUN: xla-emitters-opt -p disc-gpu-conv-padding --split-input-file %s | filecheck %s

// One element more on the right and two cut off on the left of the other dimension: a pad does that, and the convolution pads alike.
// CHECK-LABEL: hlo.computation @constant entry {
// CHECK:         %[[P:.*]] = hlo.pad %x, %{{.*}} {{.*}}padding = [array<i64: 0, 0, 0>, array<i64: 0, 1, 0>, array<i64: -2, 3, 0>, array<i64: 0, 0, 0>]{{.*}} -> tensor<?x9x9x4xf32>
// CHECK-NEXT:    %[[C:.*]] = hlo.constant {{.*}} dense<[{{\[}}1, 1], [0, 0]]> : tensor<2x2xi64>
// CHECK-NEXT:    hlo.dynamic_conv %[[P]], %w, %[[C]]
hlo.computation @constant entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x8x8x4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x3x3x4xf32>
  %p = hlo.constant {name = "p"} dense<[[1, 2], [-2, 3]]> : tensor<2x2xi32>
  %y = hlo.dynamic_conv %x, %w, %p {dim_labels = "b01f_o01i->b01f", name = "y", window = #hlo.window<size = [3, 3]>} : (tensor<?x8x8x4xf32>, tensor<6x3x3x4xf32>, tensor<2x2xi32>) -> tensor<?x9x7x6xf32>
  hlo.return %y : tensor<?x9x7x6xf32>
}

// -----

// Padding known only at run time: always a pad, with the rest beside what both sides have in common.
// CHECK-LABEL: hlo.computation @runtime entry {
// CHECK:         %[[LEAST:.*]] = hlo.minimum %[[LOW:.*]], %[[HIGH:.*]] {
// CHECK:         %[[BOTH:.*]] = hlo.maximum %[[LEAST]], %{{.*}} {
// CHECK-NEXT:    hlo.subtract %[[LOW]], %[[BOTH]]
// CHECK-NEXT:    hlo.subtract %[[HIGH]], %[[BOTH]]
// CHECK:         %[[P:.*]] = hlo.dynamic_pad %x, %{{.*}} -> tensor<?x4x?xf32>
// CHECK:         %[[C:.*]] = hlo.reshape %{{.*}} : (tensor<2xi64>) -> tensor<1x2xi64>
// CHECK-NEXT:    hlo.dynamic_conv %[[P]], %w, %[[C]] {dim_labels = "bf0_oi0->bf0"
hlo.computation @runtime entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x4x8xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x4x3xf32>
  %p = hlo.parameter 2 {name = "p"} : tensor<1x2xi32>
  %y = hlo.dynamic_conv %x, %w, %p {dim_labels = "bf0_oi0->bf0", name = "y", window = #hlo.window<size = [3]>} : (tensor<?x4x8xf32>, tensor<6x4x3xf32>, tensor<1x2xi32>) -> tensor<?x6x?xf32>
  hlo.return %y : tensor<?x6x?xf32>
}

// -----

// A dilated image, of a gradient, is left.
// CHECK-LABEL: hlo.computation @dilated entry {
// CHECK-NOT:     hlo.pad
// CHECK:         hlo.dynamic_conv %x, %w, %p {{.*}}#hlo.window<size = [3], lhs_dilate = [2]>
hlo.computation @dilated entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x4x8xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x4x3xf32>
  %p = hlo.constant {name = "p"} dense<[[1, 2]]> : tensor<1x2xi32>
  %y = hlo.dynamic_conv %x, %w, %p {dim_labels = "bf0_oi0->bf0", name = "y", window = #hlo.window<size = [3], lhs_dilate = [2]>} : (tensor<?x4x8xf32>, tensor<6x4x3xf32>, tensor<1x2xi32>) -> tensor<?x6x16xf32>
  hlo.return %y : tensor<?x6x16xf32>
}

// -----

// An image that is transposed for the convolution alone is padded before.
// CHECK-LABEL: hlo.computation @transposed entry {
// CHECK:         %[[P:.*]] = hlo.pad %x, %{{.*}} {{.*}}padding = [array<i64: 0, 0, 0>, array<i64: 0, 1, 0>, array<i64: 0, 0, 0>]{{.*}} -> tensor<?x9x4xf32>
// CHECK:         %[[T:.*]] = hlo.transpose %[[P]] {dimensions = array<i64: 0, 2, 1>, {{.*}} -> tensor<?x4x9xf32>
// CHECK-NOT:     hlo.transpose
// CHECK:         hlo.dynamic_conv %[[T]], %w
hlo.computation @transposed entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x8x4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x4x2xf32>
  %t = hlo.transpose %x {dimensions = array<i64: 0, 2, 1>, name = "t"} : (tensor<?x8x4xf32>) -> tensor<?x4x8xf32>
  %p = hlo.constant {name = "p"} dense<[[0, 1]]> : tensor<1x2xi32>
  %y = hlo.dynamic_conv %t, %w, %p {dim_labels = "bf0_oi0->bf0", name = "y", window = #hlo.window<size = [2]>} : (tensor<?x4x8xf32>, tensor<6x4x2xf32>, tensor<1x2xi32>) -> tensor<?x6x8xf32>
  hlo.return %y : tensor<?x6x8xf32>
}
