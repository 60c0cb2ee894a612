// RUN: xla-emitters-opt -p "disc-base-gemm{multiple=8 least=256}" %s | filecheck %s

// Large dots are padded with zeros, in one branch that only they take, and cut again.

// CHECK-LABEL: hlo.computation @padded_dot {
// CHECK:         hlo.dynamic_pad %lhs, %{{.*}} -> tensor<?x?xf32>
// CHECK:         hlo.dynamic_pad %rhs, %{{.*}} -> tensor<?x?xf32>
// CHECK:         %[[WIDE:.*]] = hlo.dot {{.*}} : tensor<?x?xf32>
// CHECK:         hlo.real_dynamic_slice %[[WIDE]], {{.*}} -> tensor<?x12xf32>
// CHECK-LABEL: hlo.computation @plain_dot {
// CHECK-NOT:     hlo.dynamic_pad
// CHECK:         hlo.dot
// CHECK-LABEL: hlo.computation @main entry {
// CHECK-COUNT-3: direction = "GE"
// CHECK:         hlo.conditional {{.*}}false_computation = @plain_dot, {{.*}}true_computation = @padded_dot
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x?xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<?x12xf32>
  %c = hlo.parameter 2 {name = "c"} : tensor<16x8xf32>
  %d = hlo.dot %a, %b {lhs_contracting_dims = array<i64: 1>, name = "d", rhs_contracting_dims = array<i64: 0>} : (tensor<?x?xf32>, tensor<?x12xf32>) -> tensor<?x12xf32>
  %e = hlo.dot %c, %c {lhs_contracting_dims = array<i64: 0>, name = "e", rhs_contracting_dims = array<i64: 0>} : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %t = hlo.tuple %d, %e {name = "t"} : (tensor<?x12xf32>, tensor<8x8xf32>) -> tuple<tensor<?x12xf32>, tensor<8x8xf32>>
  hlo.return %t : tuple<tensor<?x12xf32>, tensor<8x8xf32>>
}
