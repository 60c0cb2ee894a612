// RUN: exit 1 xla-emitters-opt -p disc-broadcast-simplifier %s 2>&1 | filecheck %s

// Two known sizes that differ, neither of them 1: the message names both shapes.
// CHECK: error: {{.*}}the operands' shapes cannot be broadcast to one
// CHECK: f32[2,3] and f32[2,4]
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<2x3xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<2x4xf32>
  %s = hlo.add %a, %b {broadcast_dimensions = array<i64>, name = "s"} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  hlo.return %s : tensor<2x4xf32>
}
