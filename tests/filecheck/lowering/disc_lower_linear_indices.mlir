// RUN: xla-emitters-opt -p disc-lower-linear-indices %s | filecheck %s
// Sizes of all dimensions but the first are divided by, unsigned; a sum of products is the inverse.
func.func @coordinates(%i: index, %n: index) -> (index, index, index, index) {
  %a, %b, %c = affine.delinearize_index %i into (%n, 8) : index, index, index
  %l = affine.linearize_index disjoint [%a, %b, %c] by (%n, 8) : index
  return %a, %b, %c, %l : index, index, index, index
}
// CHECK:         %[[C8:.*]] = arith.constant 8 : index
// CHECK-NEXT:    %c = arith.remui %i, %[[C8]] : index
// CHECK-NEXT:    %[[Q:.*]] = arith.divui %i, %[[C8]] : index
// CHECK-NEXT:    %b = arith.remui %[[Q]], %n : index
// CHECK-NEXT:    %a = arith.divui %[[Q]], %n : index
// CHECK-NEXT:    %[[D8:.*]] = arith.constant 8 : index
// CHECK-NEXT:    %[[AN:.*]] = arith.muli %a, %n : index
// CHECK-NEXT:    %[[AB:.*]] = arith.addi %[[AN]], %b : index
// CHECK-NEXT:    %[[AB8:.*]] = arith.muli %[[AB]], %[[D8]] : index
// CHECK-NEXT:    %l = arith.addi %[[AB8]], %c : index
