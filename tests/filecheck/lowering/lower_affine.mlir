// RUN: xla-emitters-opt -p xla-lower-affine --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p lower-affine --split-input-file %s | filecheck %s

// mod of something negative: the remainder with the sign of the dividend, corrected.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 mod 8), domain: d0 in [-3, 7]">
func.func @mod(%x: index) -> index {
  %0 = xla_gpu.apply_indexing #map(%x)
  func.return %0 : index
}
// CHECK-LABEL: func.func @mod
// CHECK-SAME:    %[[X:.*]]: index
// CHECK:         %[[C8:.*]] = arith.constant 8 : index
// CHECK:         %[[REST:.*]] = arith.remsi %[[X]], %[[C8]] : index
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK:         %[[NEGATIVE:.*]] = arith.cmpi slt, %[[REST]], %[[C0]] : index
// CHECK:         %[[UP:.*]] = arith.addi %[[REST]], %[[C8]] : index
// CHECK:         %[[R:.*]] = arith.select %[[NEGATIVE]], %[[UP]], %[[REST]] : index
// CHECK:         return %[[R]]
// CHECK-NOT:     apply_indexing

// -----

#map = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8), domain: d0 in [-3, 7]">
func.func @floordiv(%x: index) -> index {
  %0 = xla_gpu.apply_indexing #map(%x)
  func.return %0 : index
}
// CHECK-LABEL: func.func @floordiv
// CHECK-SAME:    %[[X:.*]]: index
// CHECK:         %[[NEGATIVE:.*]] = arith.cmpi slt, %[[X]], %{{.*}} : index
// CHECK:         %[[FLIPPED:.*]] = arith.subi %[[M1:.*]], %[[X]] : index
// CHECK:         %[[D:.*]] = arith.select %[[NEGATIVE]], %[[FLIPPED]], %[[X]] : index
// CHECK:         %[[Q:.*]] = arith.divsi %[[D]], %{{.*}} : index
// CHECK:         %[[BACK:.*]] = arith.subi %[[M1]], %[[Q]] : index
// CHECK:         arith.select %[[NEGATIVE]], %[[BACK]], %[[Q]] : index

// -----

// affine.apply, of whose operands nothing is known: no nsw.
func.func @affine(%x: index, %n: index) -> index {
  %0 = affine.apply affine_map<(d0)[s0] -> (d0 * 3 + s0)> (%x)[%n]
  func.return %0 : index
}
// CHECK-LABEL: func.func @affine
// CHECK-SAME:    %[[X:[a-z0-9]*]]: index, %[[N:[a-z0-9]*]]: index
// CHECK:         %[[P:.*]] = arith.muli %[[X]], %{{.*}} : index
// CHECK:         arith.addi %[[P]], %[[N]] : index
// CHECK-NOT:     nsw
