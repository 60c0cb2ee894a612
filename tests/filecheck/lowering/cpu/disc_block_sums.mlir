// RUN: xla-emitters-opt -p disc-block-sums %s | filecheck %s
// A sum and a maximum of a row: the maximum is carried through, the sum of a block begins anew. Rows of 4096 or fewer keep their loop.
func.func @row(%x: memref<?xf32>, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero, %m = %zero) -> (f32, f32) {
    %v = memref.load %x[%j] : memref<?xf32>
    %b = arith.addf %a, %v fastmath<reassoc> : f32
    %k = arith.maximumf %m, %v : f32
    scf.yield %b, %k : f32, f32
  }
  return %s#0, %s#1 : f32, f32
}
// CHECK-LABEL: @row
// CHECK:         %[[LIMIT:.*]] = arith.constant 4096 : index
// CHECK:         %[[SHORT:.*]] = arith.cmpi sle, %{{.*}}, %[[LIMIT]] : index
// CHECK-NEXT:    %[[ALL:.*]]:2 = scf.if %[[SHORT]] -> (f32, f32) {
// CHECK-NEXT:      scf.for %{{.*}} = %c0 to %n step %c1 iter_args
// CHECK:         } else {
// CHECK:           %[[FAR:.*]] = arith.constant 262144 : index
// CHECK-NEXT:      scf.for %[[G:.*]] = %c0 to %n step %[[FAR]] iter_args(%[[TOTAL:.*]] = %zero, %[[M0:.*]] = %zero)
// CHECK:             %[[GEND:.*]] = arith.minsi
// CHECK:             %[[N0:.*]] = arith.constant -0.000000e+00 : f32
// CHECK-NEXT:        %[[GROUP:.*]]:2 = scf.for %[[B:.*]] = %[[G]] to %[[GEND]] step %{{.*}} iter_args(%[[T1:.*]] = %[[N0]], %[[M1:.*]] = %[[M0]])
// CHECK:               %[[BEND:.*]] = arith.minsi
// CHECK:               %[[N1:.*]] = arith.constant -0.000000e+00 : f32
// CHECK-NEXT:          %[[PART:.*]]:2 = scf.for %{{.*}} = %[[B]] to %[[BEND]] step %c1 iter_args(%{{.*}} = %[[N1]], %{{.*}} = %[[M1]])
// CHECK:                 fastmath<reassoc>
// CHECK:               %[[UP:.*]] = arith.addf %[[T1]], %[[PART]]#0 : f32
// CHECK-NEXT:          scf.yield %[[UP]], %[[PART]]#1

// A cumulative sum uses each sum; 64 elements are one block: both stay.
func.func @others(%x: memref<?xf32>, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero) -> (f32) {
    %v = memref.load %x[%j] : memref<?xf32>
    %b = arith.addf %a, %v : f32
    memref.store %b, %x[%j] : memref<?xf32>
    scf.yield %b : f32
  }
  %t = scf.for %j = %c0 to %c64 step %c1 iter_args(%a = %zero) -> (f32) {
    %v = memref.load %x[%j] : memref<?xf32>
    %b = arith.addf %a, %v : f32
    scf.yield %b : f32
  }
  return %s, %t : f32, f32
}
// CHECK-LABEL: @others
// CHECK-COUNT-2: scf.for
// CHECK-NOT:     scf.for
// CHECK:         return
