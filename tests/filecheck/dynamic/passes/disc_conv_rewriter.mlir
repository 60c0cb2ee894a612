// RUN: xla-emitters-opt -p disc-conv-rewriter{device="h200"} --split-input-file %s | filecheck %s

// Half precision on a new GPU: channels last. The padding is an operand.
// CHECK-LABEL: hlo.computation @half entry {
// CHECK:         %[[PAD:.*]] = hlo.constant {{.*}} dense<[{{\[}}0, 1], [2, 3]]> : tensor<2x2xi32>
// CHECK-NEXT:    %[[X:.*]] = hlo.transpose %x {dimensions = array<i64: 0, 2, 3, 1>, {{.*}} -> tensor<?x8x8x4xf16>
// CHECK-NEXT:    %[[W:.*]] = hlo.transpose %w {dimensions = array<i64: 0, 2, 3, 1>, {{.*}} -> tensor<6x3x3x4xf16>
// CHECK-NEXT:    %[[Y:.*]] = hlo.dynamic_conv %[[X]], %[[W]], %[[PAD]] {dim_labels = "b01f_o01i->b01f", {{.*}} #hlo.window<size = [3, 3], stride = [2, 2]>
// CHECK-NEXT:    hlo.transpose %[[Y]] {dimensions = array<i64: 0, 3, 1, 2>
hlo.computation @half entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x4x8x8xf16>
  %w = hlo.parameter 1 {name = "w"} : tensor<6x4x3x3xf16>
  %y = hlo.convolution %x, %w {dim_labels = "bf01_oi01->bf01", name = "y", window = #hlo.window<size = [3, 3], stride = [2, 2], pad = [0, 1, 2, 3]>} : (tensor<?x4x8x8xf16>, tensor<6x4x3x3xf16>) -> tensor<?x6x4x6xf16>
  hlo.return %y : tensor<?x6x4x6xf16>
}

// -----

// f32 without tf32: channels first. A kernel that is applied reversed is reversed.
// CHECK-LABEL: hlo.computation @single entry {
// CHECK:         %[[TURNED:.*]] = hlo.reverse %w {dimensions = array<i64: 0>
// CHECK-NEXT:    %[[X:.*]] = hlo.transpose %x {dimensions = array<i64: 0, 2, 1>
// CHECK-NEXT:    %[[W:.*]] = hlo.transpose %[[TURNED]] {dimensions = array<i64: 2, 1, 0>
// CHECK-NEXT:    hlo.dynamic_conv %[[X]], %[[W]], %{{.*}} {dim_labels = "bf0_oi0->bf0", {{.*}}#hlo.window<size = [3]>
hlo.computation @single entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x8x4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<3x4x6xf32>
  %y = hlo.convolution %x, %w {dim_labels = "b0f_0io->b0f", name = "y", window = #hlo.window<size = [3], rhs_reversal = [1]>} : (tensor<?x8x4xf32>, tensor<3x4x6xf32>) -> tensor<?x6x6xf32>
  hlo.return %y : tensor<?x6x6xf32>
}

// -----

// On the host: as the CPU's library wants it, which this one is.
// CHECK-LABEL: hlo.computation @host entry {
// CHECK-NOT:     hlo.transpose
// CHECK:         hlo.dynamic_conv %x, %w, %{{.*}} {dim_labels = "b0f_0io->b0f", disc.device = "cpu"
hlo.computation @host entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x8x4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<3x4x6xf32>
  %y = hlo.convolution %x, %w {dim_labels = "b0f_0io->b0f", disc.device = "cpu", name = "y", window = #hlo.window<size = [3]>} : (tensor<?x8x4xf32>, tensor<3x4x6xf32>) -> tensor<?x6x6xf32>
  hlo.return %y : tensor<?x6x6xf32>
}
