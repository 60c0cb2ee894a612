// RUN: xla-emitters-opt -p disc-flatten-memref --split-input-file %s | filecheck %s
// What a linearization undoes is not computed: the element's own number is the index; the first coordinate alone is a quotient.
func.func @own_number(%x: memref<?x32xf32, "gpu">, %r: memref<?xf32, "gpu">, %y: memref<?x32xf32, "gpu">, %n: index, %d: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %j, %k = affine.delinearize_index %i into (%d, 32) : index, index
      %v = memref.load %x[%j, %k] : memref<?x32xf32, "gpu">
      %a = memref.load %r[%j] : memref<?xf32, "gpu">
      %w = arith.addf %v, %a : f32
      memref.store %w, %y[%j, %k] : memref<?x32xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) {fusion_name = "f"} : () -> ()
  return
}
// CHECK-LABEL: @own_number
// CHECK:         %[[X:.*]] = memref.collapse_shape %x {{.*}} into memref<?xf32, "gpu">
// CHECK:         %[[Y:.*]] = memref.collapse_shape %y
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK-NEXT:      %[[J:.*]], %{{.*}} = affine.delinearize_index %[[I]] into (32) : index, index
// CHECK-NEXT:      memref.load %[[X]][%[[I]]]
// CHECK-NEXT:      memref.load %r[%[[J]]]
// CHECK:           memref.store %{{.*}}, %[[Y]][%[[I]]]

// -----

// Another order of coordinates is no number that is known: it is computed, with the size of the inner dimension.
func.func @turned(%x: memref<?x?xf32, "gpu">, %y: memref<?x?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.dim %y, %c0 : memref<?x?xf32, "gpu">
  %b = memref.dim %y, %c1 : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %j, %k = affine.delinearize_index %i into (%a, %b) : index, index
      %v = memref.load %x[%k, %j] : memref<?x?xf32, "gpu">
      memref.store %v, %y[%j, %k] : memref<?x?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) {fusion_name = "f"} : () -> ()
  return
}
// CHECK-LABEL: @turned
// CHECK:         %[[INNER:.*]] = memref.dim %x, %{{.*}}
// CHECK:         %[[J:.*]], %[[K:.*]] = affine.delinearize_index %[[I:.*]] into (%b)
// CHECK-NEXT:    %[[L:.*]] = affine.linearize_index disjoint [%[[K]], %[[J]]] by (%[[INNER]])
// CHECK-NEXT:    memref.load %{{.*}}[%[[L]]]
// CHECK-NEXT:    memref.store %{{.*}}, %{{.*}}[%[[I]]]

// -----

// The first coordinates of three are the number of a row: a quotient, and no product after it. Sizes are equal by the program's symbols.
func.func @rows(%x: memref<?x?x8xf32, "gpu"> {disc.sizes = ["b", "s", "8"]}, %m: memref<?x?xf32, "gpu"> {disc.sizes = ["b", "s"]}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %x, %c0 : memref<?x?x8xf32, "gpu">
  %s = memref.dim %x, %c1 : memref<?x?x8xf32, "gpu">
  "lmhlo.fusion"() ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %j, %k, %l = affine.delinearize_index %i into (%b, %s, 8) : index, index, index
      %v = memref.load %m[%j, %k] : memref<?x?xf32, "gpu">
      memref.store %v, %x[%j, %k, %l] : memref<?x?x8xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) {fusion_name = "f"} : () -> ()
  return
}
// CHECK-LABEL: @rows
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK-NEXT:      %[[ROW:.*]]:2 = affine.delinearize_index %[[I]] into (8) : index, index
// CHECK-NEXT:      memref.load %{{.*}}[%[[ROW]]#0]
// CHECK-NEXT:      memref.store %{{.*}}, %{{.*}}[%[[I]]]

// -----

// A square array, a row for each block: inside of the loop its size is the marked value, but the loop runs up to the host's.
func.func @square(%x: memref<?x?xf32, "gpu">, %y: memref<?x?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  "lmhlo.fusion"() ({
    scf.parallel (%i, %t) = (%c0, %c0) to (%n, %c64) step (%c1, %c1) {
      %c-4 = arith.constant -4 : index
      %m = arith.andi %n, %c-4 : index
      %v = memref.load %x[%i, %t] : memref<?x?xf32, "gpu">
      %more = arith.cmpi ult, %t, %n : index
      scf.if %more {
        memref.store %v, %y[%i, %t] : memref<?x?xf32, "gpu">
      }
      scf.reduce
    }
    lmhlo.terminator
  }) {fusion_name = "f"} : () -> ()
  return
}
// CHECK-LABEL: @square
// CHECK:         scf.parallel (%{{.*}}, %[[T:.*]]) = (%c0, %c0) to (%n, %c64)
// CHECK:           %[[M:.*]] = arith.andi %n, %{{.*}} : index
// CHECK:           arith.cmpi ult, %[[T]], %[[M]] : index
