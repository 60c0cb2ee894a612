// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop %s | filecheck %s

// A warp a row, eight rows a block: one round, no shared memory, no barrier. A maximum may begin with the initial value in every thread.
hlo.computation @max {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.maximum %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kRowReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 1>, name = "y", to_apply = @max} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.row_schedule = 2 : i64} : () -> ()
  return
}
// CHECK:      %[[ROWS:.*]] = memref.dim %x, %{{.*}}
// CHECK:      %[[UP:.*]] = arith.addi %[[ROWS]], %c7 : index
// CHECK:      %[[BLOCKS:.*]] = arith.floordivsi %[[UP]], %c8 : index
// CHECK:      scf.parallel (%block, %thread) = (%{{.*}}, %{{.*}}) to (%[[BLOCKS]], %c256)
// CHECK-NOT:    memref.alloc
// CHECK:        %[[D:.*]]:2 = affine.delinearize_index %thread into (8, 32)
// CHECK:        %[[ROW:.*]] = arith.addi %{{.*}}, %[[D]]#0
// CHECK:        %[[IS_ROW:.*]] = arith.cmpi ult, %[[ROW]], %[[ROWS]]
// CHECK-NEXT:   scf.if %[[IS_ROW]] {
// CHECK:          %[[I:.*]] = memref.load %i[]
// CHECK:          %[[FOURS:.*]] = scf.for %{{.*}} = %[[D]]#1 to %{{.*}} step %c128{{.*}} iter_args(%{{.*}} = %[[I]])
// CHECK:          scf.for {{.*}} step %c32{{.*}} iter_args(%[[MOST:.*]] = %[[FOURS]])
// CHECK:            arith.maximumf %[[MOST]], %{{.*}} : f32
// CHECK-COUNT-5:  gpu.shuffle down
// CHECK-NOT:      gpu.shuffle
// CHECK-NOT:      gpu.barrier
// CHECK:          memref.store %{{.*}}, %y[%[[ROW]]]
// CHECK:      } {disc.schedule = "row2"}
