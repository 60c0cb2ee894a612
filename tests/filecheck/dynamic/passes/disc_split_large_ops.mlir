// RUN: xla-emitters-opt -p disc-split-large-ops{max-operands=2} --split-input-file %s | filecheck %s

// The seed's picture: two halves, then one of them. The size along the axis is known where all are.
// CHECK-LABEL: hlo.computation @known entry {
// CHECK:         %[[LOW:.*]] = hlo.concatenate %a, %b {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT:    %[[HIGH:.*]] = hlo.concatenate %c, %d {{.*}} -> tensor<2x7xf32>
// CHECK-NEXT:    %{{.*}} = hlo.concatenate %[[LOW]], %[[HIGH]] {{.*}} -> tensor<2x10xf32>
hlo.computation @known entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<2x1xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<2x2xf32>
  %c = hlo.parameter 2 {name = "c"} : tensor<2x3xf32>
  %d = hlo.parameter 3 {name = "d"} : tensor<2x4xf32>
  %out = hlo.concatenate %a, %b, %c, %d {dimensions = array<i64: 1>, name = "out"} : (tensor<2x1xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x10xf32>
  hlo.return %out : tensor<2x10xf32>
}

// -----

// Five operands: the larger half is split again. One unknown size makes the sum unknown; the other axis is known from any operand.
// CHECK-LABEL: hlo.computation @unknown entry {
// CHECK:         %[[LOW:.*]] = hlo.concatenate %a, %a {{.*}} : tensor<?x4xf32>
// CHECK-NEXT:    %[[HIGH:.*]] = hlo.concatenate %a, %b {{.*}} -> tensor<?x4xf32>
// CHECK-NEXT:    %[[REST:.*]] = hlo.concatenate %a, %[[HIGH]] {{.*}} : tensor<?x4xf32>
// CHECK-NEXT:    %{{.*}} = hlo.concatenate %[[LOW]], %[[REST]] {{.*}} -> tensor<?x?xf32>
hlo.computation @unknown entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x4xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<2x?xf32>
  %out = hlo.concatenate %a, %a, %a, %a, %b {dimensions = array<i64: 0>, name = "out"} : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<2x?xf32>) -> tensor<?x?xf32>
  hlo.return %out : tensor<?x?xf32>
}

// -----

// As many as the limit: left.
// CHECK-LABEL: hlo.computation @small entry {
// CHECK-COUNT-1: hlo.concatenate
// CHECK-NOT:     hlo.concatenate
hlo.computation @small entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?xf32>
  %out = hlo.concatenate %a, %a {dimensions = array<i64: 0>, name = "out"} : tensor<?xf32>
  hlo.return %out : tensor<?xf32>
}

// -----

// Each part has a name of its own, and the whole keeps the one that it has.
// CHECK-LABEL: hlo.computation @named entry {
// CHECK:         hlo.concatenate %a, %b {dimensions = array<i64: 0>, name = "cat.0.part"}
// CHECK-NEXT:    hlo.concatenate %a, %b {dimensions = array<i64: 0>, name = "cat.0.part.1"}
// CHECK-NEXT:    hlo.concatenate {{.*}} {dimensions = array<i64: 0>, name = "cat.0"}
hlo.computation @named entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<1xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<1xf32>
  %out = hlo.concatenate %a, %b, %a, %b {dimensions = array<i64: 0>, name = "cat.0"} : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4xf32>
  hlo.return %out : tensor<4xf32>
}
