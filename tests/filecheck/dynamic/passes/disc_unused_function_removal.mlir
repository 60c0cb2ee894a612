// RUN: xla-emitters-opt -p disc-unused-function-removal %s | filecheck %s

// What the entry does not reach is gone, also where unused functions use each other. What a reduction applies is not a function: it stays.
// CHECK-NOT:   @f
// CHECK-NOT:   @g
// CHECK:       hlo.computation @add
// CHECK:       hlo.computation @main entry
hlo.computation @f {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  hlo.return %x : tensor<?xf32>
}
hlo.computation @g {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %c = hlo.call %x {name = "c", to_apply = @f} : tensor<?xf32>
  hlo.return %c : tensor<?xf32>
}
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @main entry {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<?xf32>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<f32>
  %r = hlo.reduce %p0, %z {dimensions = array<i64: 0>, name = "r", to_apply = @add} : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  hlo.return %r : tensor<f32>
}
