// RUN: xla-emitters-opt -p disc-number-random-ops %s | filecheck %s

// Each op takes a part of the numbers of its own, also in the computation that a loop runs; a number that is there stays.
// CHECK-LABEL: hlo.computation @other {
// CHECK:         hlo.rng %{{.*}} {disc.numbers_before = 0 : i64,
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         hlo.rng %{{.*}} {disc.numbers_before = 4294967296 : i64,
// CHECK-NEXT:    hlo.rng %{{.*}} {disc.numbers_before = 7 : i64,
// CHECK-NEXT:    hlo.rng %{{.*}} {disc.numbers_before = 12884901888 : i64,
hlo.computation @other {
  %p = hlo.parameter 0 {name = "p"} : tensor<f32>
  %r = hlo.rng %p, %p {distribution = "rng_uniform", name = "r"} : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
  hlo.return %r : tensor<4xf32>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %a = hlo.rng %x, %x {distribution = "rng_uniform", name = "a"} : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %b = hlo.rng %x, %x {disc.numbers_before = 7 : i64, distribution = "rng_uniform", name = "b"} : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %c = hlo.rng %x, %x {distribution = "rng_normal", name = "c"} : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %s = hlo.add %a, %b {name = "s"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = hlo.add %s, %c {name = "t"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  hlo.return %t : tensor<4xf32>
}
