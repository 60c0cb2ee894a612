// RUN: xla-emitters-opt -p "disc-element-type-converter{to=f16 sensitive=true}" %s | filecheck %s

// The two options: products of f16 for those of f32, with sums and result in f32; tanh of f16 in f32 and back.
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         %[[A:.*]] = hlo.convert %a {{.*}} -> tensor<?x4xf16>
// CHECK-NEXT:    %[[B:.*]] = hlo.convert %b {{.*}} -> tensor<4x8xf16>
// CHECK-NEXT:    hlo.dot %[[A]], %[[B]] {{.*}} -> tensor<?x8xf32>
// CHECK-NEXT:    %[[H:.*]] = hlo.convert %h {{.*}} -> tensor<?xf32>
// CHECK-NEXT:    %[[T:.*]] = hlo.tanh %[[H]]
// CHECK-NEXT:    hlo.convert %[[T]] {{.*}} -> tensor<?xf16>
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x4xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<4x8xf32>
  %h = hlo.parameter 2 {name = "h"} : tensor<?xf16>
  %d = hlo.dot %a, %b {lhs_contracting_dims = array<i64: 1>, name = "d", rhs_contracting_dims = array<i64: 0>} : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %y = hlo.tanh %h {name = "y"} : tensor<?xf16>
  %t = hlo.tuple %d, %y {name = "t"} : (tensor<?x8xf32>, tensor<?xf16>) -> tuple<tensor<?x8xf32>, tensor<?xf16>>
  hlo.return %t : tuple<tensor<?x8xf32>, tensor<?xf16>>
}
