// RUN: xla-emitters-opt --split-input-file -p disc-fuse-middle-reductions %s | filecheck %s
hlo.computation @add {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<f32>
  %p1 = hlo.parameter 1 {name = "p1"} : tensor<f32>
  %s = hlo.add %p0, %p1 {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
// What the transpose alone reads is computed with the sum; the rest is a loop of its own. Buffers are freed behind the new fusion.
func.func @main(%x: memref<2x5x3xf32, "gpu">, %n: memref<2x3xf32, "gpu">) -> memref<2x3xf32, "gpu"> {
  %e = memref.alloc() : memref<2x5x3xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "e", kind = "kLoop"}> ({
    lmhlo.exponential %x -> %e {name = "e"} : (memref<2x5x3xf32, "gpu">) -> memref<2x5x3xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  %t = memref.alloc() : memref<2x3x5xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "t", kind = "kLoop"}> ({
    lmhlo.transpose %e -> %t {dimensions = array<i64: 0, 2, 1>, name = "t"} : (memref<2x5x3xf32, "gpu">) -> memref<2x3x5xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  memref.dealloc %e : memref<2x5x3xf32, "gpu">
  %m = memref.alloc() : memref<6x5xf32, "gpu">
  %zero = memref.alloc() : memref<f32, "gpu">
  %r = memref.alloc() : memref<6xf32, "gpu">
  %s = memref.alloc() : memref<2x3xf32, "gpu">
  %y = memref.alloc() : memref<2x3xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kStitch"}> ({
    lmhlo.reshape %t -> %m {name = "m"} : (memref<2x3x5xf32, "gpu">) -> memref<6x5xf32, "gpu">
    lmhlo.constant -> %zero {name = "zero", value = dense<0.0> : tensor<f32>} : () -> memref<f32, "gpu">
    lmhlo.reduce %m, %zero -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @add} : (memref<6x5xf32, "gpu">, memref<f32, "gpu">) -> memref<6xf32, "gpu">
    lmhlo.reshape %r -> %s {name = "s"} : (memref<6xf32, "gpu">) -> memref<2x3xf32, "gpu">
    lmhlo.divide %s, %n -> %y {name = "y"} : (memref<2x3xf32, "gpu">, memref<2x3xf32, "gpu">) -> memref<2x3xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu", disc.shared = ["r"]} : () -> ()
  memref.dealloc %t : memref<2x3x5xf32, "gpu">
  return %y : memref<2x3xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:       "lmhlo.fusion"() <{fusion_name = "e"
// CHECK:           "lmhlo.fusion"() <{fusion_name = "k_middle", kind = "kMiddleReduction"}>
// CHECK-NEXT:        lmhlo.exponential %x -> %e
// CHECK-NEXT:        lmhlo.transpose %e -> %t
// CHECK-NEXT:        lmhlo.reshape %t -> %m
// CHECK-NEXT:        lmhlo.constant -> %zero
// CHECK-NEXT:        lmhlo.reduce %m, %zero -> %r
// CHECK-NEXT:        lmhlo.terminator
// CHECK-NEXT:      }) {disc.device = "gpu"}
// CHECK-NEXT:      memref.dealloc %e
// CHECK-NEXT:      "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}>
// CHECK-NEXT:        lmhlo.reshape %r -> %s
// CHECK-NEXT:        lmhlo.divide %s, %n -> %y
// CHECK-NEXT:        lmhlo.terminator
// CHECK-NEXT:      }) {disc.device = "gpu"}

// -----

hlo.computation @add {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<f32>
  %p1 = hlo.parameter 1 {name = "p1"} : tensor<f32>
  %s = hlo.add %p0, %p1 {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
// These stay: a transpose that something else reads as well, one that does not move the middle to the end, and one of an array that the
// program owns, which may be written into before the reduction.
func.func @stay(%x: memref<2x5x3xf32, "gpu">, %own: memref<2x5x3xf32, "gpu"> {disc.donated}, %zero: memref<f32, "gpu">, %a: memref<6xf32, "gpu">, %b: memref<15xf32, "gpu">, %c: memref<6xf32, "gpu">) -> memref<2x3x5xf32, "gpu"> {
  %t = memref.alloc() : memref<2x3x5xf32, "gpu">
  %m = memref.alloc() : memref<6x5xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "t", kind = "kLoop"}> ({
    lmhlo.transpose %x -> %t {dimensions = array<i64: 0, 2, 1>, name = "t"} : (memref<2x5x3xf32, "gpu">) -> memref<2x3x5xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kRowReduction"}> ({
    lmhlo.reshape %t -> %m {name = "m"} : (memref<2x3x5xf32, "gpu">) -> memref<6x5xf32, "gpu">
    lmhlo.reduce %m, %zero -> %a {name = "r", dimensions = array<i64: 1>, to_apply = @add} : (memref<6x5xf32, "gpu">, memref<f32, "gpu">) -> memref<6xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  %t2 = memref.alloc() : memref<5x3x2xf32, "gpu">
  %m2 = memref.alloc() : memref<15x2xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k2", kind = "kRowReduction"}> ({
    lmhlo.transpose %x -> %t2 {dimensions = array<i64: 1, 2, 0>, name = "t2"} : (memref<2x5x3xf32, "gpu">) -> memref<5x3x2xf32, "gpu">
    lmhlo.reshape %t2 -> %m2 {name = "m2"} : (memref<5x3x2xf32, "gpu">) -> memref<15x2xf32, "gpu">
    lmhlo.reduce %m2, %zero -> %b {name = "r2", dimensions = array<i64: 1>, to_apply = @add} : (memref<15x2xf32, "gpu">, memref<f32, "gpu">) -> memref<15xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  %t3 = memref.alloc() : memref<2x3x5xf32, "gpu">
  %m3 = memref.alloc() : memref<6x5xf32, "gpu">
  lmhlo.transpose %own -> %t3 {dimensions = array<i64: 0, 2, 1>, name = "t3"} : (memref<2x5x3xf32, "gpu">) -> memref<2x3x5xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k3", kind = "kRowReduction"}> ({
    lmhlo.reshape %t3 -> %m3 {name = "m3"} : (memref<2x3x5xf32, "gpu">) -> memref<6x5xf32, "gpu">
    lmhlo.reduce %m3, %zero -> %c {name = "r3", dimensions = array<i64: 1>, to_apply = @add} : (memref<6x5xf32, "gpu">, memref<f32, "gpu">) -> memref<6xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %t : memref<2x3x5xf32, "gpu">
}
// CHECK-LABEL: func.func @stay
// CHECK-NOT:       kMiddleReduction
