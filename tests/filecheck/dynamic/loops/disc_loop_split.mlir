// RUN: xla-emitters-opt -p disc-loop-split --split-input-file %s | filecheck %s
// The listing of the seed document: blocks are counted on the host, rounding up, and a grid without blocks is no launch. Its two inner
// loops are one bounds check, as it asks for.
func.func @seed(%x: memref<?xf32, "gpu">, %lower: index, %upper: index, %step: index) {
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%lower) to (%upper) step (%step) {
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      memref.store %v, %x[%i] : memref<?xf32, "gpu">
      scf.reduce
    } {disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "main_kLoop_add_0"} : () -> ()
  return
}
// CHECK-LABEL: @seed
// CHECK-NEXT:    %[[T:.*]] = arith.constant 256 : index
// CHECK-NEXT:    %[[SPAN:.*]] = arith.muli %step, %[[T]] : index
// CHECK-NEXT:    %[[N:.*]] = arith.subi %upper, %lower : index
// CHECK-NEXT:    %[[REACH:.*]] = arith.addi %[[N]], %[[SPAN]] : index
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[REACH]], %[[ONE]] : index
// CHECK-NEXT:    %[[GRID:.*]] = arith.divui %[[LAST]], %[[SPAN]] : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[SOME:.*]] = arith.cmpi ne, %[[GRID]], %[[ZERO]] : index
// CHECK-NEXT:    scf.if %[[SOME]] {
// CHECK-NEXT:      gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[GRID]], %{{.*}} = %[[ONE]], %{{.*}} = %[[ONE]]) threads(%[[TH:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[T]], %{{.*}} = %[[ONE]], %{{.*}} = %[[ONE]]) {
// CHECK:             %[[BT:.*]] = arith.muli %[[B]], %{{.*}} : index
// CHECK-NEXT:        %[[ID:.*]] = arith.addi %[[BT]], %[[TH]] : index
// CHECK-NEXT:        %[[OFF:.*]] = arith.muli %[[ID]], %step : index
// CHECK-NEXT:        %[[I:.*]] = arith.addi %[[OFF]], %lower : index
// CHECK-NEXT:        %[[IN:.*]] = arith.cmpi slt, %[[I]], %upper : index
// CHECK-NEXT:        scf.if %[[IN]] {
// CHECK-NEXT:          memref.load %x[%[[I]]]
// CHECK-NEXT:          memref.store %{{.*}}, %x[%[[I]]]
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.terminator
// CHECK-NEXT:      } {disc.name = "main_kLoop_add_0", disc.schedule = "loop"}
// CHECK-NOT:     lmhlo.fusion

// -----

// Blocks and threads that a schedule says itself: every thread runs, for it may exchange values with the others.
func.func @cooperative(%x: memref<?xf32, "gpu">, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  "lmhlo.fusion"() ({
    scf.parallel (%row, %thread) = (%c0, %c0) to (%rows, %c64) step (%c1, %c1) {
      gpu.barrier
      %v = memref.load %x[%row] : memref<?xf32, "gpu">
      memref.store %v, %x[%thread] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) {fusion_name = "r"} : () -> ()
  return
}
// CHECK-LABEL: @cooperative
// CHECK:         arith.cmpi ne, %rows, %{{.*}} : index
// CHECK:         gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %rows, {{.*}}) threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[C64:.*]], {{.*}}) {
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      memref.load %x[%[[B]]]
// CHECK-NEXT:      memref.store %{{.*}}, %x[%[[T]]]

// -----

// Two loops are two launches, one after the other; what is between them is computed on the host.
func.func @two(%x: memref<?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) { scf.reduce }
    %m = arith.addi %n, %c1 : index
    scf.parallel (%i) = (%c0) to (%m) step (%c1) { scf.reduce }
    lmhlo.terminator
  }) {fusion_name = "f"} : () -> ()
  return
}
// CHECK-LABEL: @two
// CHECK:         disc.name = "f_0"
// CHECK:         %[[M:.*]] = arith.addi %n, %c1
// CHECK:         arith.addi %[[M]], %{{.*}}
// CHECK:         disc.name = "f_1"

// -----

// Blocks above each other, the first variable, are the second dimension of the grid.
func.func @tiles(%x: memref<?xf32, "gpu">, %tiles: index, %across: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  "lmhlo.fusion"() ({
    scf.parallel (%tile, %left, %thread) = (%c0, %c0, %c0) to (%tiles, %across, %c64) step (%c1, %c1, %c1) {
      %i = arith.addi %tile, %left : index
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      memref.store %v, %x[%thread] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) {fusion_name = "t"} : () -> ()
  return
}
// CHECK-LABEL: @tiles
// CHECK:         %[[COUNT:.*]] = arith.muli %across, %tiles : index
// CHECK:         %[[SOME:.*]] = arith.cmpi ne, %[[COUNT]], %{{.*}} : index
// CHECK:         scf.if %[[SOME]] {
// CHECK-NEXT:      gpu.launch blocks(%[[X:.*]], %[[Y:.*]], %{{.*}}) in (%{{.*}} = %across, %{{.*}} = %tiles, %{{.*}} = %{{.*}}) threads(%[[T:.*]], %{{.*}}, %{{.*}}) in
// CHECK:             arith.addi %[[Y]], %[[X]] : index
// CHECK:             memref.store %{{.*}}, %x[%[[T]]]

// -----

// The seed's kThreadPerBlockHint: threads of a block where the loop leaves them open; the launch keeps it.
func.func @hinted(%x: memref<?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c4) {
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      memref.store %v, %x[%i] : memref<?xf32, "gpu">
      scf.reduce
    } {disc.thread_per_block_hint = 64 : i64, disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "h"} : () -> ()
  return
}
// CHECK-LABEL: @hinted
// CHECK:         %[[SPAN:.*]] = arith.constant 256 : index
// CHECK:         arith.addi %n, %[[SPAN]]
// CHECK:         gpu.launch
// CHECK-SAME:    threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %[[T:c64[_0-9]*]],
// CHECK:         {disc.name = "h", disc.schedule = "loop", disc.thread_per_block_hint = 64 : i64}
