// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop %s | filecheck %s

// Two passes in a fixed order: tiles of 32 columns give partial results, which the second loop adds to the initial value.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kColReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 0>, name = "y", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK:      %[[COLS:.*]] = memref.dim %x, %c1
// CHECK:      %[[UP:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:      %[[HEIGHT:.*]] = arith.floordivsi %[[UP]], %c1024 : index
// CHECK:      %[[TILES:.*]] = arith.floordivsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %partials = memref.alloc(%[[TILES]], %[[COLS]]) : memref<?x?xf32, "gpu">
// CHECK:      %[[ACROSS:.*]] = arith.floordivsi %{{.*}}, %c32 : index
// One tile has the results: the second pass is not launched.
// CHECK:      %[[SEVERAL:.*]] = arith.cmpi ne, %[[TILES]], %c1 : index
// CHECK:      %[[AGAIN:.*]] = arith.select %[[SEVERAL]], %[[ACROSS]], %c0 : index
// CHECK:      "lmhlo.fusion"
// CHECK-NOT:  atomic
// CHECK:      scf.parallel (%tile, %left, %thread) = (%c0, %c0, %c0) to (%[[TILES]], %[[ACROSS]], %c256)
// CHECK:        affine.delinearize_index %thread into (8, 32)
// A tile of the usual height: 16 times 2 rows a thread, 8 apart from each other.
// CHECK:        %[[USUAL:.*]] = arith.cmpi eq, %{{.*}}, %c256{{.*}} : index
// CHECK:        scf.if %[[USUAL]] -> (f32) {
// CHECK:          scf.for {{.*}} = %c0{{.*}} to %c16 step %c1{{.*}} -> (f32) {
// CHECK:            scf.for {{.*}} = %c0{{.*}} to %c2 step %c1{{.*}} -> (f32) {
// CHECK:              memref.load %x[%{{.*}}, %[[COLUMN:.*]]]
// CHECK:        } else {
// CHECK:          scf.for %[[ROW:.*]] = {{.*}} step %c8{{.*}} -> (f32) {
// CHECK-NEXT:       memref.load %x[%[[ROW]], %[[COLUMN]]]
// CHECK:        memref.store %{{.*}}, %[[TILE:.*]][%thread] : memref<256xf32, #gpu.address_space<workgroup>>
// One thread combines what eight of a column have.
// CHECK-NEXT:   gpu.barrier
// CHECK:        arith.cmpi ult, %thread, %c32
// CHECK-NEXT:   scf.if
// CHECK-COUNT-8:  memref.load %[[TILE]]
// CHECK-COUNT-7:  arith.addf
// CHECK-NOT:    gpu.barrier
// CHECK:        %[[ALONE:.*]] = arith.cmpi eq, %[[TILES]], %c1{{.*}} : index
// CHECK-NEXT:   scf.if %[[ALONE]] {
// CHECK-NEXT:     %[[FIRST:.*]] = memref.load %i[]
// CHECK-NEXT:     arith.addf %[[FIRST]]
// CHECK-NEXT:     memref.store %{{.*}}, %y[
// CHECK-NEXT:   } else {
// CHECK-NEXT:     memref.store %{{.*}}, %partials[%tile, %{{.*}}]
// CHECK:      } {disc.schedule = "column"}
// CHECK:      scf.parallel (%left{{.*}}, %thread{{.*}}) = (%c0, %c0) to (%[[AGAIN]], %c256)
// CHECK:        memref.load %partials[
// CHECK:        %[[I:.*]] = memref.load %i[]
// CHECK-NEXT:   %[[ALL:.*]] = arith.addf %[[I]], %{{.*}} : f32
// CHECK-NEXT:   memref.store %[[ALL]], %y[
// CHECK:      } {disc.schedule = "column"}
