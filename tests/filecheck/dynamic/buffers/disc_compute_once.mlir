// RUN: xla-emitters-opt --split-input-file -p disc-compute-once %s | filecheck %s
// A value for each column is computed before, with the number that it needs; that number is computed again where the rows need it.
func.func @main(%x: memref<16x64xf32, "gpu">, %v: memref<64xf32, "gpu">, %n: memref<i32, "cpu">, %y: memref<16x64xf32, "gpu">) {
  %m = memref.alloc() : memref<i32, "gpu">
  %f = memref.alloc() : memref<f32, "gpu">
  %fs = memref.alloc() : memref<64xf32, "gpu">
  %d = memref.alloc() : memref<64xf32, "gpu">
  %r = memref.alloc() : memref<64xf32, "gpu">
  %rs = memref.alloc() : memref<16x64xf32, "gpu">
  %z = memref.alloc() : memref<16x64xf32, "gpu">
  %fa = memref.alloc() : memref<16x64xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.h2d %n -> %m {disc.device = "gpu", name = "m"} : (memref<i32, "cpu">) -> memref<i32, "gpu">
    lmhlo.convert %m -> %f {disc.device = "gpu", name = "f"} : (memref<i32, "gpu">) -> memref<f32, "gpu">
    lmhlo.broadcast %f -> %fs {dimensions = array<i64>, disc.device = "gpu", name = "fs"} : (memref<f32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.divide %v, %fs -> %d {disc.device = "gpu", name = "d"} : (memref<64xf32, "gpu">, memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.rsqrt %d -> %r {disc.device = "gpu", name = "r"} : (memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.broadcast %r -> %rs {dimensions = array<i64: 1>, disc.device = "gpu", name = "rs"} : (memref<64xf32, "gpu">) -> memref<16x64xf32, "gpu">
    lmhlo.multiply %x, %rs -> %z {disc.device = "gpu", name = "z"} : (memref<16x64xf32, "gpu">, memref<16x64xf32, "gpu">) -> memref<16x64xf32, "gpu">
    lmhlo.broadcast %f -> %fa {dimensions = array<i64>, disc.device = "gpu", name = "fa"} : (memref<f32, "gpu">) -> memref<16x64xf32, "gpu">
    lmhlo.add %z, %fa -> %y {disc.device = "gpu", name = "y"} : (memref<16x64xf32, "gpu">, memref<16x64xf32, "gpu">) -> memref<16x64xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK:           "lmhlo.fusion"() <{fusion_name = "k_once", kind = "kLoop"}> ({
// CHECK-NEXT:        lmhlo.h2d %n -> %m
// CHECK-NEXT:        lmhlo.convert %m -> %f
// CHECK-NEXT:        lmhlo.broadcast %f -> %fs
// CHECK-NEXT:        lmhlo.divide %v, %fs -> %d
// CHECK-NEXT:        lmhlo.rsqrt %d -> %r
// CHECK-NEXT:        lmhlo.terminator
// CHECK:           "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
// CHECK-NEXT:        lmhlo.h2d %n -> %m
// CHECK-NEXT:        lmhlo.convert %m -> %f
// CHECK-NEXT:        lmhlo.broadcast %r -> %rs
// CHECK-NEXT:        lmhlo.multiply %x, %rs -> %z
// CHECK-NEXT:        lmhlo.broadcast %f -> %fa
// CHECK-NEXT:        lmhlo.add %z, %fa -> %y
// CHECK-NEXT:        lmhlo.terminator

// -----

// Columns of an unknown number of rows; the repeated value is a result of the program as well.
func.func @unknown(%x: memref<?x64xf32, "gpu"> {disc.sizes = ["b", "64"]}, %v: memref<64xf32, "gpu">, %l: memref<2xi32, "cpu">, %r: memref<64xf32, "gpu">, %y: memref<?x64xf32, "gpu"> {disc.sizes = ["b", "64"]}) {
  %c0 = arith.constant 0 : index
  %b = memref.dim %x, %c0 : memref<?x64xf32, "gpu">
  %rs = memref.alloc(%b) {disc.sizes = ["b", "64"]} : memref<?x64xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kStitch"}> ({
    lmhlo.exponential %v -> %r {disc.device = "gpu", name = "r"} : (memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.dynamic_broadcast_in_dim %r, %l -> %rs {dimensions = array<i64: 1>, disc.device = "gpu", name = "rs"} : (memref<64xf32, "gpu">, memref<2xi32, "cpu">) -> memref<?x64xf32, "gpu">
    lmhlo.multiply %x, %rs -> %y {disc.device = "gpu", name = "y"} : (memref<?x64xf32, "gpu">, memref<?x64xf32, "gpu">) -> memref<?x64xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return
}
// CHECK-LABEL: func.func @unknown
// CHECK:           "lmhlo.fusion"() <{fusion_name = "k_once", kind = "kLoop"}> ({
// CHECK-NEXT:        lmhlo.exponential %v -> %r
// CHECK-NEXT:        lmhlo.terminator
// CHECK:           "lmhlo.fusion"() <{fusion_name = "k", kind = "kStitch"}> ({
// CHECK-NEXT:        lmhlo.dynamic_broadcast_in_dim %r, %l -> %rs

// -----

// What stays: a value for each row, a cheap value, one that is the same everywhere, one for few rows, one that more is read for.
func.func @stay(%v: memref<64xf32, "gpu">, %w: memref<64x64xf32, "gpu">, %y: memref<64x64xf32, "gpu">, %few: memref<4x64xf32, "gpu">) {
  %a = memref.alloc() : memref<64xf32, "gpu">
  %as = memref.alloc() : memref<64x64xf32, "gpu">
  %b = memref.alloc() : memref<64xf32, "gpu">
  %bs = memref.alloc() : memref<64x64xf32, "gpu">
  %c = memref.alloc() : memref<64xf32, "gpu">
  %d = memref.alloc() : memref<64xf32, "gpu">
  %ds = memref.alloc() : memref<64x64xf32, "gpu">
  %zero = memref.alloc() : memref<f32, "gpu">
  %e = memref.alloc() : memref<64xf32, "gpu">
  %es = memref.alloc() : memref<64x64xf32, "gpu">
  %o = memref.alloc() : memref<64x64xf32, "gpu">
  %p = memref.alloc() : memref<64x64xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kStitch"}> ({
    lmhlo.exponential %v -> %a {disc.device = "gpu", name = "a"} : (memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.broadcast %a -> %as {dimensions = array<i64: 0>, disc.device = "gpu", name = "as"} : (memref<64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.add %v, %v -> %b {disc.device = "gpu", name = "b"} : (memref<64xf32, "gpu">, memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.broadcast %b -> %bs {dimensions = array<i64: 1>, disc.device = "gpu", name = "bs"} : (memref<64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.constant -> %c {disc.device = "gpu", name = "c", value = dense<3.000000e+00> : tensor<64xf32>} : () -> memref<64xf32, "gpu">
    lmhlo.sqrt %c -> %d {disc.device = "gpu", name = "d"} : (memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.broadcast %d -> %ds {dimensions = array<i64: 1>, disc.device = "gpu", name = "ds"} : (memref<64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.constant -> %zero {disc.device = "gpu", name = "zero", value = dense<0.000000e+00> : tensor<f32>} : () -> memref<f32, "gpu">
    lmhlo.reduce %w, %zero -> %e {dimensions = array<i64: 1>, disc.device = "gpu", name = "e", to_apply = @add} : (memref<64x64xf32, "gpu">, memref<f32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.sqrt %e -> %e {disc.device = "gpu", name = "s"} : (memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.broadcast %e -> %es {dimensions = array<i64: 1>, disc.device = "gpu", name = "es"} : (memref<64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.add %as, %bs -> %o {disc.device = "gpu", name = "o"} : (memref<64x64xf32, "gpu">, memref<64x64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.add %ds, %es -> %p {disc.device = "gpu", name = "p"} : (memref<64x64xf32, "gpu">, memref<64x64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.add %o, %p -> %y {disc.device = "gpu", name = "y"} : (memref<64x64xf32, "gpu">, memref<64x64xf32, "gpu">) -> memref<64x64xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  %f = memref.alloc() : memref<64xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "few", kind = "kLoop"}> ({
    lmhlo.sqrt %v -> %f {disc.device = "gpu", name = "f"} : (memref<64xf32, "gpu">) -> memref<64xf32, "gpu">
    lmhlo.broadcast %f -> %few {dimensions = array<i64: 1>, disc.device = "gpu", name = "fs"} : (memref<64xf32, "gpu">) -> memref<4x64xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return
}
hlo.computation @add {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<f32>
  %p1 = hlo.parameter 1 {name = "p1"} : tensor<f32>
  %s = hlo.add %p0, %p1 {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
// CHECK-LABEL: func.func @stay
// CHECK-NOT:   _once
// CHECK:       hlo.computation @add
