// RUN: xla-emitters-opt -p xla-simplify-affine --split-input-file %s | filecheck %s

// The seed's address: products first, in the map's order, each step with nsw since the result is below 2^31.
#map = #xla_gpu.indexing_map<"(th_x, bl_x) -> (th_x * 4 + bl_x * 512), domain: th_x in [0, 127], bl_x in [0, 24575]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @address() -> index {
    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
    %0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)
    func.return %0 : index
  }
}
// CHECK-LABEL: func.func @address
// CHECK:         %[[T:.*]] = gpu.thread_id x
// CHECK:         %[[B:.*]] = gpu.block_id x
// CHECK:         %[[C4:.*]] = arith.constant 4 : index
// CHECK:         %[[X:.*]] = arith.muli %[[T]], %[[C4]] overflow<nsw> : index
// CHECK:         %[[C512:.*]] = arith.constant 512 : index
// CHECK:         %[[Y:.*]] = arith.muli %[[B]], %[[C512]] overflow<nsw> : index
// CHECK-NEXT:    %[[S:.*]] = arith.addi %[[X]], %[[Y]] overflow<nsw> : index
// CHECK-NEXT:    return %[[S]]
// CHECK-NOT:     apply_indexing

// -----

// Division of what is never negative is unsigned.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 100]">
func.func @division(%x: index) -> (index, index) {
  %0:2 = xla_gpu.apply_indexing #map(%x)
  func.return %0#0, %0#1 : index, index
}
// CHECK-LABEL: func.func @division
// CHECK-SAME:    %[[X:.*]]: index
// CHECK:         %[[C8:.*]] = arith.constant 8 : index
// CHECK:         %[[Q:.*]] = arith.divui %[[X]], %[[C8]] : index
// CHECK:         %[[R:.*]] = arith.remui %[[X]], %[[C8]] : index
// CHECK:         return %[[Q]], %[[R]]

// -----

// A dividend that may be negative is left for xla-lower-affine.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8), domain: d0 in [-1, 100]">
func.func @maybe_negative(%x: index) -> index {
  %0 = xla_gpu.apply_indexing #map(%x)
  func.return %0 : index
}
// CHECK-LABEL: func.func @maybe_negative
// CHECK-NEXT:    %[[R:.*]] = xla_gpu.apply_indexing
// CHECK-NEXT:    return %[[R]]

// -----

// So is the minimum of something that may be negative, as an unsigned minimum would take the other one.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * (d1 - 5) mod 3), domain: d0 in [0, 3], d1 in [0, 7]">
func.func @negative_product(%x: index, %y: index) -> index {
  %0 = xla_gpu.apply_indexing #map(%x, %y)
  func.return %0 : index
}
// CHECK-LABEL: func.func @negative_product
// CHECK:         xla_gpu.apply_indexing
// CHECK-NOT:     arith.remui

// -----

// The operand's own range is tighter than the map's, and proves it.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8), domain: d0 in [-1, 100]">
func.func @range_of_operand() -> index {
  %x = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %0 = xla_gpu.apply_indexing #map(%x)
  func.return %0 : index
}
// CHECK-LABEL: func.func @range_of_operand
// CHECK:         arith.divui
// CHECK-NOT:     apply_indexing

// -----

// What comes from farther out is added first, so that the partial sum of %outer can leave the loops; the constant comes last.
#map = #xla_gpu.indexing_map<"(d0, d1, d2) -> (d0 + d1 * 2 + d2 * 3 + 7), domain: d0 in [0, 3], d1 in [0, 3], d2 in [0, 3]">
func.func @farthest_first(%outer: index, %use: memref<64xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %0 = xla_gpu.apply_indexing #map(%j, %i, %outer)
      memref.store %0, %use[%0] : memref<64xindex>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @farthest_first
// CHECK-SAME:    %[[OUTER:[a-z0-9]*]]: index
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           scf.for %[[J:.*]] =
// CHECK:             %[[FAR:.*]] = arith.muli %[[OUTER]], %{{.*}} overflow<nsw>
// CHECK:             %[[MIDDLE:.*]] = arith.muli %[[I]], %{{.*}} overflow<nsw>
// CHECK-NEXT:        %[[S:.*]] = arith.addi %[[FAR]], %[[MIDDLE]] overflow<nsw>
// CHECK-NEXT:        %[[S2:.*]] = arith.addi %[[S]], %[[J]] overflow<nsw>
// CHECK-NEXT:        %[[C7:.*]] = arith.constant 7 : index
// CHECK-NEXT:        arith.addi %[[S2]], %[[C7]] overflow<nsw>

// -----

// No nsw where a step leaves 32 bits.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 3), domain: d0 in [0, 1000000000]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @wraps(%x: index) -> index {
    %0 = xla_gpu.apply_indexing #map(%x)
    func.return %0 : index
  }
}
// CHECK-LABEL: func.func @wraps
// CHECK:         arith.muli %{{.*}}, %{{.*}} : index
// CHECK-NOT:     nsw

// -----

// A dividend that goes beyond 32 bits is not divided in 32: the map is left. One that fits only without a sign is divided without.
#beyond = #xla_gpu.indexing_map<"(d0) -> ((d0 * 3) floordiv 2), domain: d0 in [0, 2147483647]">
#unsigned = #xla_gpu.indexing_map<"(d0) -> ((d0 * 2 + 1) floordiv 3), domain: d0 in [0, 2147483647]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @wide_dividend(%x: index) -> (index, index) {
    %0 = xla_gpu.apply_indexing #beyond(%x)
    %1 = xla_gpu.apply_indexing #unsigned(%x)
    func.return %0, %1 : index, index
  }
}
// CHECK-LABEL: func.func @wide_dividend
// CHECK:         xla_gpu.apply_indexing
// CHECK:         arith.divui

// -----

// affine.apply, when the ranges of its operands are known; else it is left.
func.func @affine(%unknown: index) -> (index, index) {
  %x = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %0 = affine.apply affine_map<(d0) -> (d0 floordiv 8)> (%x)
  %1 = affine.apply affine_map<(d0) -> (d0 floordiv 8)> (%unknown)
  func.return %0, %1 : index, index
}
// CHECK-LABEL: func.func @affine
// CHECK:         arith.divui
// CHECK:         affine.apply

// -----

// The ends of int64 are no bounds: with 64 bits a sum that may pass them has no nsw and is not divided.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 + 5, (d0 + 5) floordiv 3), domain: d0 in [0, 9223372036854775807]">
func.func @end_of_int64(%x: index) -> (index, index) {
  %0:2 = xla_gpu.apply_indexing #map(%x)
  func.return %0#0, %0#1 : index, index
}
// CHECK-LABEL: func.func @end_of_int64
// CHECK:         xla_gpu.apply_indexing
// CHECK-NOT:     nsw
