// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop %s | filecheck %s

// 96 columns of a warp in single steps: each thread keeps three elements in an array of its own, at constant places. With 80 columns half of
// the lanes have no third one.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @shares(%x: memref<8x80xf32, "gpu">, %zero: memref<f32, "gpu">) -> memref<8x80xf32, "gpu"> {
  %s = memref.alloc() : memref<8xf32, "gpu">
  %b = memref.alloc() : memref<8x80xf32, "gpu">
  %y = memref.alloc() : memref<8x80xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "shares", kind = "kStitch"}> ({
    lmhlo.reduce %x, %zero -> %s {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (memref<8x80xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
    lmhlo.broadcast %s -> %b {dimensions = array<i64: 0>, name = "b"} : (memref<8xf32, "gpu">) -> memref<8x80xf32, "gpu">
    lmhlo.divide %x, %b -> %y {name = "y"} : (memref<8x80xf32, "gpu">, memref<8x80xf32, "gpu">) -> memref<8x80xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu", disc.row_form = [32 : i64, 256 : i64, "registers", "block"]} : () -> ()
  return %y : memref<8x80xf32, "gpu">
}

// CHECK-LABEL: func.func @shares
// CHECK:       scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%{{.*}}, %{{.*}})
// CHECK-NEXT:    %[[OWN:.*]] = memref.alloca() : memref<3xf32>
// CHECK:         memref.load %x[
// CHECK:         memref.store %{{.*}}, %[[OWN]][%c0
// CHECK:         memref.load %x[
// CHECK:         memref.store %{{.*}}, %[[OWN]][%c1
// CHECK:         %[[HAS:.*]] = arith.cmpi ult
// CHECK:         scf.if %[[HAS]]
// CHECK:           memref.load %x[
// CHECK:           memref.store %{{.*}}, %[[OWN]][%c2
// CHECK:         gpu.shuffle down
// CHECK-NOT:     memref.load %x[
// CHECK:         memref.load %[[OWN]][%c0
// CHECK:         memref.store %{{.*}}, %y[
// CHECK:         memref.load %[[OWN]][%c1
// CHECK:         memref.store %{{.*}}, %y[
// CHECK:         scf.if %[[HAS]]
// CHECK:           memref.load %[[OWN]][%c2
// CHECK:           memref.store %{{.*}}, %y[
