// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop --split-input-file %s | filecheck %s

// Five forms by the length of rows. A block that keeps its row loads it in the first of three loops alone; exp(x - m) takes its place.
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
// CHECK:      %[[SHORTEST:.*]] = arith.cmpi sle, %c, %c128 : index
// CHECK:      scf.if %[[SHORTEST]] {
// CHECK:        %[[ALL:.*]] = arith.muli %c, %c32{{.*}} : index
// CHECK:        fusion_name = "f_lanes"
// CHECK:          memref.alloc(%[[ALL]]) : memref<?xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:      gpu.barrier
// CHECK:      %[[SHORT:.*]] = arith.cmpi sle, %c, %c512 : index
// CHECK:      scf.if %[[SHORT]] {
// CHECK:        %[[EIGHT:.*]] = arith.muli %c, %c8{{.*}} : index
// CHECK:        fusion_name = "f_warp"
// CHECK:          memref.alloc(%[[EIGHT]]) : memref<?xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:      gpu.barrier
// CHECK:      } else {
// CHECK:        arith.cmpi sle, %c, %c2560 : index
// Four warps a row exchange what they have; a thread without a row takes part.
// CHECK:          fusion_name = "f_warps"
// CHECK:          scf.parallel (%{{.*}}, %[[THREAD:.*]]) = {{.*}} to (%{{.*}}, %c512{{.*}})
// CHECK:            affine.delinearize_index %[[THREAD]] into (4, 128)
// CHECK:            %[[IS_ROW:.*]] = arith.cmpi ult, %{{.*}}, %r
// CHECK:            arith.minui
// CHECK:            scf.if %[[IS_ROW]] -> (f32)
// CHECK:            gpu.barrier
// CHECK:        %[[FITS:.*]] = arith.cmpi sle, %c, %c10240 : index
// CHECK:        scf.if %[[FITS]] {
// CHECK:          fusion_name = "f_block"
// CHECK-NOT:      lmhlo.reduce
// CHECK:          scf.parallel (%[[ROW:.*]], %[[THREAD:.*]]) = {{.*}} to (%r, %c512{{.*}})
// CHECK:            %[[KEPT:.*]] = memref.alloc(%c) : memref<?xf32, #gpu.address_space<workgroup>>
// CHECK:            %[[X:.*]] = memref.load %x[%[[ROW]], %[[J:.*]]]
// CHECK-NEXT:       memref.store %[[X]], %[[KEPT]][%[[J]]]
// CHECK-NEXT:       arith.maximumf
// CHECK:            gpu.barrier
// CHECK-NOT:        memref.load %x[
// CHECK:            %[[M:.*]]:2 = gpu.shuffle idx
// CHECK-NOT:        memref.load %x[
// CHECK:            %[[X:.*]] = memref.load %[[KEPT]]
// CHECK-NEXT:       %[[D:.*]] = arith.subf %[[X]], %[[M]]#0
// CHECK-NEXT:       %[[E:.*]] = math.exp %[[D]]
// CHECK-NEXT:       memref.store %[[E]], %[[KEPT]]
// CHECK:            gpu.barrier
// CHECK-NOT:        memref.load %x[
// CHECK:            %[[E:.*]] = memref.load %[[KEPT]]
// CHECK-NEXT:       %[[Y:.*]] = arith.divf %[[E]],
// CHECK-NEXT:       memref.store %[[Y]], %y[%[[ROW]], %{{.*}}]
// CHECK:          } {disc.schedule = "stitch"}
// CHECK:        } else {
// CHECK-NOT:      memref.alloc(%
// CHECK-COUNT-6:  memref.load %x[
// CHECK-NOT:      memref.load %x[

// -----

// Room for nothing: the first form is for rows of no column, and a hint leaves out warps.
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
  }) {disc.row_schedule = 1 : i64, disc.kept_bytes = 3 : i64} : () -> ()
  return %y : memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @hints
// CHECK-NOT:  f_warp
// CHECK:      arith.cmpi sle, %c, %c0
// CHECK:      fusion_name = "f_block"
// CHECK:      fusion_name = "f"
// CHECK-NOT:  fusion_name

// -----

// Weights are read once a block, four columns at a time, before its rows; a block takes several rows, one after the other. A row of 2048
// columns is two steps of 256 threads, and a block has two.
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
// CHECK:      scf.parallel (%[[BLOCK:.*]], %[[THREAD:.*]]) =
// CHECK:        memref.alloc() : memref<4096
// CHECK-NEXT:   %[[VECTOR:.*]] = memref.alloc() : memref<2048xf32, #gpu.address_space<workgroup>>
// CHECK:        scf.for %[[V:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK:          %[[W:.*]] = memref.load %w[%[[J:.*]]]
// CHECK-NEXT:     memref.store %[[W]], %[[VECTOR]][%[[J]]]
// CHECK:        gpu.barrier
// CHECK-NEXT:   scf.for %[[GROUP:.*]] = %[[BLOCK]] to %{{.*}} step %
// CHECK-NOT:      memref.load %w
// CHECK:          %[[ROW:.*]] = arith.minui
// CHECK-NOT:      memref.load %w
// CHECK:            memref.load %x[%[[ROW]],
// CHECK-NOT:      memref.load %w
// CHECK:            memref.load %[[VECTOR]]
// CHECK:            memref.store %{{.*}}, %y[%[[ROW]],
// CHECK-NOT:      memref.load %w
// CHECK:          gpu.barrier
// CHECK-NEXT:   }

// -----

// Vectors do not divide the columns: a row is copied from the sector where it begins on, single elements at its ends, four at once between
// them. The result takes the place of what is kept, and is copied in the same way.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @run(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["r", "c"]}, %zero: memref<f32, "gpu">) -> memref<?x?xf32, "gpu"> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.dim %x, %c0 : memref<?x?xf32, "gpu">
  %c = memref.dim %x, %c1 : memref<?x?xf32, "gpu">
  %s = memref.alloc(%r) {disc.sizes = ["r"]} : memref<?xf32, "gpu">
  %sb = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  %y = memref.alloc(%r, %c) {disc.sizes = ["r", "c"]} : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kStitch", fusion_name = "f"}> ({
    lmhlo.reduce %x, %zero -> %s {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %s -> %sb {dimensions = array<i64: 0>, name = "sb"} : (memref<?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.divide %x, %sb -> %y {name = "y"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) {disc.row_schedule = 1 : i64} : () -> ()
  return %y : memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @run
// CHECK:      fusion_name = "f_block"
// CHECK:        %[[FIRST:.*]] = arith.muli %block, %c : index
// CHECK:        %[[START:.*]] = arith.andi %[[FIRST]], %cm8
// CHECK:        %[[PADDING:.*]] = arith.remui %[[FIRST]], %c8
// CHECK:        scf.if
// CHECK:          memref.load %x[
// CHECK-NEXT:     memref.store %{{.*}}, %[[KEPT:.*]][%thread]
// CHECK:        scf.for
// CHECK:              memref.load %x[
// CHECK-NEXT:         memref.store %{{.*}}, %[[KEPT]][
// CHECK:            } {disc.vector}
// CHECK:        gpu.barrier
// CHECK-NOT:    memref.load %x[
// CHECK:        %[[J:.*]] = arith.addi %{{.*}}, %[[PADDING]]
// CHECK-NEXT:   memref.load %[[KEPT]][%[[J]]]
// CHECK:        %[[Y:.*]] = arith.divf
// CHECK-NEXT:   memref.store %[[Y]], %[[KEPT]]
// CHECK:        gpu.barrier
// CHECK:        memref.load %[[KEPT]][%thread]
// CHECK-NEXT:   memref.store %{{.*}}, %y[
// CHECK:      {disc.schedule = "stitch"}
