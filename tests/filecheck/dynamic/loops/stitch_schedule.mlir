// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop --split-input-file %s | filecheck %s

// Five forms by the length of rows. Threads that keep their row load it before the first of three loops; exp(x - m) takes its place.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
hlo.computation @max {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.maximum %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @softmax(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["r", "c"]}, %low: memref<f32, "gpu">, %zero: memref<f32, "gpu">) -> memref<?x?xf32, "gpu"> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.dim %x, %c0 : memref<?x?xf32, "gpu">
  %c = memref.dim %x, %c1 : memref<?x?xf32, "gpu">
  %m = memref.alloc(%r) {disc.sizes = ["r"]} : memref<?xf32, "gpu">
  %s = memref.alloc(%r) {disc.sizes = ["r"]} : memref<?xf32, "gpu">
  %mb = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %sb = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %d = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %e = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %y = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kStitch", fusion_name = "f"}> ({
    lmhlo.reduce %x, %low -> %m {dimensions = array<i64: 1>, name = "m", to_apply = @max} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %m -> %mb {dimensions = array<i64: 0>, name = "mb"} : (memref<?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.subtract %x, %mb -> %d {name = "d"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.exponential %d -> %e {name = "e"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.reduce %e, %zero -> %s {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %s -> %sb {dimensions = array<i64: 0>, name = "sb"} : (memref<?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.divide %e, %sb -> %y {name = "y"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) {disc.vector = 4 : i64} : () -> ()
  return %y : memref<?x?xf32, "gpu">
}
// CHECK:      %[[SHORTEST:.*]] = arith.cmpi sle, %c, %c64 : index
// CHECK:      scf.if %[[SHORTEST]] {
// CHECK:        fusion_name = "f_lanes"
// Two steps of four columns; both are loaded before the first is used.
// CHECK:          %[[KEPT:.*]] = memref.alloca() : memref<8xf32>
// CHECK:          scf.for %[[V:.*]] = %c0{{.*}} to %c4 step %c1
// CHECK:            %[[X:.*]] = memref.load %x[
// CHECK-NEXT:       memref.store %[[X]], %[[KEPT]][%[[V]]]
// CHECK:          } {disc.vector}
// CHECK:          %[[ROOM:.*]] = arith.addi %{{.*}}, %c32
// CHECK-NEXT:     %[[IS_STEP:.*]] = arith.cmpi ult, %[[ROOM]],
// CHECK-NEXT:     scf.if %[[IS_STEP]] {
// CHECK:            memref.load %x[
// CHECK-NOT:      memref.load %x[
// CHECK:            %[[X:.*]] = memref.load %[[KEPT]][
// CHECK-NEXT:       arith.maximumf %{{.*}}, %[[X]]
// CHECK:            gpu.shuffle down
// CHECK:            %[[M:.*]]:2 = gpu.shuffle idx
// CHECK:            %[[X:.*]] = memref.load %[[KEPT]][%[[AT:.*]]]
// CHECK-NEXT:       %[[D:.*]] = arith.subf %[[X]], %[[M]]#0
// CHECK-NEXT:       %[[E:.*]] = math.exp %[[D]]
// CHECK-NEXT:       memref.store %[[E]], %[[KEPT]][%[[AT]]]
// CHECK:            gpu.shuffle idx
// CHECK:            %[[E:.*]] = memref.load %[[KEPT]]
// CHECK-NEXT:       %[[Y:.*]] = arith.divf %[[E]],
// CHECK-NEXT:       memref.store %[[Y]], %y[
// CHECK:          {disc.schedule = "stitch"}
// CHECK-NOT:      gpu.barrier
// CHECK:      arith.cmpi sle, %c, %c1024 : index
// CHECK:        fusion_name = "f_warp"
// CHECK:          memref.alloca() : memref<32xf32>
// CHECK-NOT:      gpu.barrier
// CHECK:      } else {
// CHECK:        arith.cmpi sle, %c, %c4096 : index
// Four warps a row exchange what they have.
// CHECK:          fusion_name = "f_warps"
// CHECK:          scf.parallel (%[[ROW:.*]], %{{.*}}) = {{.*}} to (%r, %c128{{.*}})
// CHECK:            memref.alloca() : memref<32xf32>
// CHECK:            gpu.barrier
// CHECK:        arith.cmpi sle, %c, %c16384 : index
// CHECK:          fusion_name = "f_block"
// CHECK-NOT:      lmhlo.reduce
// CHECK:          scf.parallel (%[[ROW:.*]], %{{.*}}) = {{.*}} to (%r, %c512{{.*}})
// CHECK-COUNT-8:    memref.load %x[%[[ROW]],
// CHECK-NOT:        memref.load %x[
// CHECK:          } {disc.schedule = "stitch"}
// CHECK:        } else {
// CHECK-NOT:      memref.alloca
// CHECK-COUNT-6:  memref.load %x[
// CHECK-NOT:      memref.load %x[

// -----

// A hint leaves out warps: a block of 256 threads, 16 steps of single elements each.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
hlo.computation @max {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.maximum %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @hints(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["r", "c"]}, %low: memref<f32, "gpu">, %zero: memref<f32, "gpu">) -> memref<?x?xf32, "gpu"> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.dim %x, %c0 : memref<?x?xf32, "gpu">
  %c = memref.dim %x, %c1 : memref<?x?xf32, "gpu">
  %m = memref.alloc(%r) {disc.sizes = ["r"]} : memref<?xf32, "gpu">
  %s = memref.alloc(%r) {disc.sizes = ["r"]} : memref<?xf32, "gpu">
  %mb = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %sb = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %d = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %e = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %y = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kStitch", fusion_name = "f"}> ({
    lmhlo.reduce %x, %low -> %m {dimensions = array<i64: 1>, name = "m", to_apply = @max} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %m -> %mb {dimensions = array<i64: 0>, name = "mb"} : (memref<?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.subtract %x, %mb -> %d {name = "d"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.exponential %d -> %e {name = "e"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.reduce %e, %zero -> %s {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %s -> %sb {dimensions = array<i64: 0>, name = "sb"} : (memref<?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.divide %e, %sb -> %y {name = "y"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) {disc.row_schedule = 1 : i64} : () -> ()
  return %y : memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @hints
// CHECK-NOT:  f_warp
// CHECK:      arith.cmpi sle, %c, %c4096
// CHECK:      fusion_name = "f_block"
// CHECK:      fusion_name = "f"
// CHECK-NOT:  fusion_name

// -----

// Weights are read four columns at a time before a block's first row; a block takes several rows, one after the other. A thread holds four
// steps of a row of 2048 columns.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @weights(%x: memref<?x2048xf32, "gpu"> {disc.sizes = ["r", "2048"]}, %w: memref<2048xf32, "gpu">, %zero: memref<f32, "gpu">) -> memref<?x2048xf32, "gpu"> {
  %c0 = arith.constant 0 : index
  %r = memref.dim %x, %c0 : memref<?x2048xf32, "gpu">
  %s = memref.alloc(%r) {disc.sizes = ["r"]} : memref<?xf32, "gpu">
  %sb = memref.alloc(%r) {disc.sizes = ["r", "2048"]} : memref<?x2048xf32, "gpu">
  %wb = memref.alloc(%r) {disc.sizes = ["r", "2048"]} : memref<?x2048xf32, "gpu">
  %d = memref.alloc(%r) {disc.sizes = ["r", "2048"]} : memref<?x2048xf32, "gpu">
  %y = memref.alloc(%r) {disc.sizes = ["r", "2048"]} : memref<?x2048xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kStitch", fusion_name = "f"}> ({
    lmhlo.reduce %x, %zero -> %s {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (memref<?x2048xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %s -> %sb {dimensions = array<i64: 0>, name = "sb"} : (memref<?xf32, "gpu">) -> memref<?x2048xf32, "gpu">
    lmhlo.divide %x, %sb -> %d {name = "d"} : (memref<?x2048xf32, "gpu">, memref<?x2048xf32, "gpu">) -> memref<?x2048xf32, "gpu">
    lmhlo.broadcast %w -> %wb {dimensions = array<i64: 1>, name = "wb"} : (memref<2048xf32, "gpu">) -> memref<?x2048xf32, "gpu">
    lmhlo.multiply %d, %wb -> %y {name = "y"} : (memref<?x2048xf32, "gpu">, memref<?x2048xf32, "gpu">) -> memref<?x2048xf32, "gpu">
    lmhlo.terminator
  }) {disc.vector = 4 : i64} : () -> ()
  return %y : memref<?x2048xf32, "gpu">
}
// CHECK-LABEL: func.func @weights
// CHECK:      scf.parallel (%[[BLOCK:.*]], %[[THREAD:.*]]) = {{.*}}, %c128)
// CHECK:        %[[ROW:.*]] = memref.alloca() : memref<16xf32>
// CHECK:        %[[VECTOR:.*]] = memref.alloca() : memref<16xf32>
// CHECK-COUNT-4: memref.load %w[
// CHECK:        scf.for %[[GROUP:.*]] = %[[BLOCK]] to %{{.*}} step %
// CHECK-NOT:      memref.load %w
// CHECK-COUNT-4:  memref.load %x[%[[GROUP]],
// CHECK-NOT:      memref.load %x
// CHECK:          memref.load %[[VECTOR]]
// CHECK:          memref.store %{{.*}}, %y[%[[GROUP]],
// CHECK:          gpu.barrier
// CHECK-NEXT:   }
