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
// CHECK:      %[[UP:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:      %[[HEIGHT:.*]] = arith.floordivsi %[[UP]], %c1024 : index
// CHECK:      %[[TILES:.*]] = arith.floordivsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %partials = memref.alloc(%[[TILES]], %{{.*}}) : memref<?x?xf32, "gpu">
// CHECK:      "lmhlo.fusion"
// CHECK-NOT:  atomic
// CHECK:      scf.parallel (%block, %thread)
// CHECK:        affine.delinearize_index %thread into (8, 32)
// CHECK:        scf.for {{.*}} step %c32{{.*}} -> (f32) {
// CHECK:          memref.load %x[%{{.*}}, %[[COLUMN:.*]]]
// CHECK:        scf.for %[[ROW:.*]] = {{.*}} step %c8{{.*}} -> (f32) {
// CHECK-NEXT:     memref.load %x[%[[ROW]], %[[COLUMN]]]
// CHECK:        memref.store %{{.*}}, %[[TILE:.*]][%thread] : memref<256xf32, #gpu.address_space<workgroup>>
// One thread combines what eight of a column have.
// CHECK-NEXT:   gpu.barrier
// CHECK:        arith.cmpi ult, %thread, %c32
// CHECK-NEXT:   scf.if
// CHECK-COUNT-8:  memref.load %[[TILE]]
// CHECK-COUNT-7:  arith.addf
// CHECK-NOT:    gpu.barrier
// CHECK-NOT:    %i[]
// CHECK:        memref.store %{{.*}}, %partials[%{{.*}}, %{{.*}}]
// CHECK:      } {disc.schedule = "column"}
// CHECK:      scf.parallel (%block{{.*}}, %thread{{.*}})
// CHECK:        memref.load %partials[
// CHECK:        %[[I:.*]] = memref.load %i[]
// CHECK-NEXT:   %[[ALL:.*]] = arith.addf %[[I]], %{{.*}} : f32
// CHECK-NEXT:   memref.store %[[ALL]], %y[
// CHECK:      } {disc.schedule = "column"}
// CHECK:      memref.dealloc %partials
