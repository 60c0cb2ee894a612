// RUN: xla-emitters-opt -p disc-nest-loops --split-input-file %s | filecheck %s
// Rows, and columns inside: the coordinates that the body asks for are the variables; the number of the element is computed for who needs it.
func.func @rows(%x: memref<?x32xf32, "gpu">, %y: memref<?x32xf32, "gpu">, %z: memref<?xindex, "gpu">, %b: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %n = arith.muli %b, %c32 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %d:2 = affine.delinearize_index %i into (%b, 32) : index, index
      %v = memref.load %x[%d#0, %d#1] : memref<?x32xf32, "gpu">
      memref.store %v, %y[%d#0, %d#1] : memref<?x32xf32, "gpu">
      memref.store %i, %z[%i] : memref<?xindex, "gpu">
      scf.reduce
    } {disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "k"} : () -> ()
  return
}
// CHECK-LABEL: @rows
// CHECK:         %n = arith.muli %b, %c32 : index
// CHECK:         %[[COLS:.*]] = arith.constant 32 : index
// CHECK:         scf.parallel (%[[ROW:.*]], %{{.*}}) = (%{{.*}}, %{{.*}}) to (%b, %{{.*}}) step (%{{.*}}, %{{.*}}) {
// CHECK:           %[[START:.*]] = arith.muli %[[ROW]], %[[COLS]] : index
// CHECK-NEXT:      scf.for %[[COL:.*]] = %{{.*}} to %[[COLS]] step %{{.*}} {
// CHECK-NEXT:        %[[I:.*]] = arith.addi %[[START]], %[[COL]] : index
// CHECK-NEXT:        %[[V:.*]] = memref.load %x[%[[ROW]], %[[COL]]]
// CHECK-NEXT:        memref.store %[[V]], %y[%[[ROW]], %[[COL]]]
// CHECK-NEXT:        memref.store %[[I]], %z[%[[I]]]
// CHECK-NEXT:      }
// CHECK:         } {disc.schedule = "loop"}

// -----

// Three coordinates: rows are those of the first two. Another shape's coordinates are computed from the number of the element.
func.func @planes(%x: memref<?x3x?xf32, "gpu">, %y: memref<?x6xf32, "gpu">, %b: index, %s: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %planes = arith.muli %c3, %s : index
  %n = arith.muli %planes, %b : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %d:3 = affine.delinearize_index %i into (%b, 3, %s) : index, index, index
      %e:2 = affine.delinearize_index %i into (%m, 6) : index, index
      %v = memref.load %x[%d#0, %d#1, %d#2] : memref<?x3x?xf32, "gpu">
      memref.store %v, %y[%e#0, %e#1] : memref<?x6xf32, "gpu">
      scf.reduce
    } {disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "k"} : () -> ()
  return
}
// CHECK-LABEL: @planes
// CHECK:         scf.parallel (%[[ROW:[a-z]+]], %{{.*}})
// CHECK-NEXT:      arith.constant 0 : index
// CHECK-NEXT:      arith.constant 1 : index
// CHECK-NEXT:      %[[P:.*]]:2 = affine.delinearize_index %[[ROW]] into (%b, 3)
// CHECK-NEXT:      %[[START:.*]] = arith.muli %[[ROW]], %s : index
// CHECK-NEXT:      scf.for %[[COL:.*]] = %{{.*}} to %s step
// CHECK-NEXT:        %[[I:.*]] = arith.addi %[[START]], %[[COL]] : index
// CHECK-NEXT:        %[[E:.*]]:2 = affine.delinearize_index %[[I]] into (%m, 6)
// CHECK-NEXT:        %[[V:.*]] = memref.load %x[%[[P]]#0, %[[P]]#1, %[[COL]]]
// CHECK-NEXT:        memref.store %[[V]], %y[%[[E]]#0, %[[E]]#1]

// -----

// A loop that may have more or fewer iterations than the array has elements, 17 of them for one: it stays one loop.
func.func @any_bound(%x: memref<?x32xf32, "gpu">, %b: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %d:2 = affine.delinearize_index %i into (%b, 32) : index, index
      %v = memref.load %x[%d#0, %d#1] : memref<?x32xf32, "gpu">
      memref.store %v, %x[%d#0, %d#1] : memref<?x32xf32, "gpu">
      scf.reduce
    } {disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "k"} : () -> ()
  return
}
// CHECK-LABEL: @any_bound
// CHECK:         scf.parallel (%[[I:.*]], %{{.*}}) = (%{{.*}}, %{{.*}}) to (%n, %{{.*}})
// CHECK-NOT:     scf.for
// CHECK:         affine.delinearize_index %[[I]] into (%b, 32)
// CHECK-NOT:     scf.for

// -----

// No coordinates: one loop, whose blocks are single threads.
func.func @vector(%x: memref<?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      memref.store %v, %x[%i] : memref<?xf32, "gpu">
      scf.reduce
    } {disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "k"} : () -> ()
  return
}
// CHECK-LABEL: @vector
// CHECK:         %c1 = arith.constant 1 : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK:         scf.parallel (%[[I:.*]], %{{.*}}) = (%[[ZERO]], %[[ZERO]]) to (%n, %[[ONE]]) step (%[[ONE]], %[[ONE]]) {
// CHECK-NEXT:      %[[V:.*]] = memref.load %x[%[[I]]]
// CHECK-NEXT:      memref.store %[[V]], %x[%[[I]]]
// CHECK-NEXT:      scf.reduce

// -----

// A transpose: blocks of 16 rows, in tiles of 16 columns.
func.func @transpose(%x: memref<?x?xf32, "gpu">, %y: memref<?x?xf32, "gpu">, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.muli %m, %n : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%count) step (%c1) {
      %d:2 = affine.delinearize_index %i into (%m, %n) : index, index
      %v = memref.load %x[%d#1, %d#0] : memref<?x?xf32, "gpu">
      memref.store %v, %y[%d#0, %d#1] : memref<?x?xf32, "gpu">
      scf.reduce
    } {disc.schedule = "loop"}
    lmhlo.terminator
  }) {fusion_name = "k"} : () -> ()
  return
}
// CHECK-LABEL: @transpose
// CHECK:         %[[BLOCKS:.*]] = arith.floordivsi
// CHECK:         scf.parallel (%[[BLOCK:.*]], %{{.*}}) = (%{{.*}}, %{{.*}}) to (%[[BLOCKS]], %{{.*}})
// CHECK:           %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c16
// CHECK:           %[[END:.*]] = arith.minsi %{{.*}}, %m
// CHECK:           scf.for %[[LEFT:.*]] = %{{.*}} to %n step %c16
// CHECK:             %[[RIGHT:.*]] = arith.minsi %{{.*}}, %n
// CHECK:             scf.for %[[ROW:.*]] = %[[FIRST]] to %[[END]] step %c1
// CHECK:               scf.for %[[COLUMN:.*]] = %[[LEFT]] to %[[RIGHT]] step %c1
// CHECK:                 memref.load %x[%[[COLUMN]], %[[ROW]]]
// CHECK:                 memref.store %{{.*}}, %y[%[[ROW]], %[[COLUMN]]]
