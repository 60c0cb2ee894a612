// RUN: xla-emitters-opt -p xla-simplify-arith --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p "xla-simplify-arith{fast_min_max=true}" --split-input-file %s | filecheck %s --check-prefix FAST
// RUN: xla-emitters-opt -p "xla-simplify-arith{explicit_nan_propagation=true}" --split-input-file %s | filecheck %s --check-prefix NAN

// Comparisons that ranges decide, in both directions, and the branch on them.
// CHECK-LABEL: func.func @comparisons
// CHECK-NEXT:    %true = arith.constant true
// CHECK-NEXT:    %false = arith.constant false
// CHECK-NEXT:    return %true, %false, %true, %false, %x : i1, i1, i1, i1, f32
func.func @comparisons(%i: index {xla.range = [0 : index, 127 : index]}, %x: f32, %y: f32) -> (i1, i1, i1, i1, f32) {
  %c0 = arith.constant 0 : index
  %c127 = arith.constant 127 : index
  %c128 = arith.constant 128 : index
  %0 = arith.cmpi sle, %i, %c127 : index
  %1 = arith.cmpi slt, %i, %c0 : index
  %2 = arith.cmpi ne, %i, %c128 : index
  %3 = arith.cmpi uge, %i, %c128 : index
  %4 = scf.if %0 -> (f32) {
    scf.yield %x : f32
  } else {
    scf.yield %y : f32
  }
  return %0, %1, %2, %3, %4 : i1, i1, i1, i1, f32
}

// -----

// Not decided: a value that may be on either side; unsigned, a value that may be negative (as unsigned it is huge).
// CHECK-LABEL: func.func @undecided
// CHECK:         arith.cmpi sle, %i, %c126
// CHECK:         arith.cmpi ult, %k, %c128
// CHECK:         arith.cmpi eq, %i, %c126
func.func @undecided(%i: index {xla.range = [0 : index, 127 : index]}, %k: index {xla.range = [-3 : index, 127 : index]}) -> (i1, i1, i1) {
  %c126 = arith.constant 126 : index
  %c128 = arith.constant 128 : index
  %0 = arith.cmpi sle, %i, %c126 : index
  %1 = arith.cmpi ult, %k, %c128 : index
  %2 = arith.cmpi eq, %i, %c126 : index
  return %0, %1, %2 : i1, i1, i1
}

// -----

// Clamps that never bind, and one that does. Unsigned, a negative value is the larger one.
// CHECK-LABEL: func.func @extrema
// CHECK-NEXT:    %c100 = arith.constant 100 : index
// CHECK-NEXT:    %c127 = arith.constant 127 : index
// CHECK-NEXT:    %[[M:.*]] = arith.minsi %i, %c100 {xla.range = [0 : index, 100 : index]} : index
// CHECK-NEXT:    %[[U:.*]] = arith.maxui %k, %c127 : index
// CHECK-NEXT:    return %i, %[[M]], %[[U]]
func.func @extrema(%i: index {xla.range = [0 : index, 127 : index]}, %k: index {xla.range = [-3 : index, 100 : index]}) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c100 = arith.constant 100 : index
  %c127 = arith.constant 127 : index
  %0 = arith.maxsi %i, %c0 : index
  %1 = arith.minsi %0, %c127 : index
  %2 = arith.minsi %i, %c100 : index
  %3 = arith.maxui %k, %c127 : index
  return %1, %2, %3 : index, index, index
}

// -----

// Ranges of results, and through them a comparison. A sum that may wrap in its type has no range: 120 + 120 is -16 as i8.
// CHECK-LABEL: func.func @ranges
// CHECK:         %[[A:.*]] = arith.addi %i, %c4 {xla.range = [4 : index, 131 : index]} : index
// CHECK:         %[[M:.*]] = arith.muli %i, %m3 {xla.range = [-381 : index, 0 : index]} : index
// CHECK:         %[[C:.*]] = arith.index_cast %i {xla.range = [0 : index, 127 : index]} : index to i32
// CHECK:         %[[W:.*]] = arith.addi %b, %b : i8
// CHECK:         return %[[A]], %[[M]], %[[C]], %[[W]], %true
func.func @ranges(%i: index {xla.range = [0 : index, 127 : index]}, %b: i8 {xla.range = [0 : index, 120 : index]}) -> (index, index, i32, i8, i1) {
  %c4 = arith.constant 4 : index
  %m3 = arith.constant -3 : index
  %c131 = arith.constant 131 : index
  %0 = arith.addi %i, %c4 : index
  %1 = arith.muli %i, %m3 : index
  %2 = arith.index_cast %i : index to i32
  %3 = arith.addi %b, %b : i8
  %4 = arith.cmpi sle, %0, %c131 : index
  return %0, %1, %2, %3, %4 : index, index, i32, i8, i1
}

// -----

// iota makes an i32 of an index, which as a start index becomes an index again: the clamp to 511 does not bind. -1, unsigned, is not -1.
// CHECK-LABEL: func.func @there_and_back
// CHECK-NEXT:    %[[U:.*]] = arith.index_castui %i {xla.range = [0 : index, 511 : index]} : index to i32
// CHECK-NEXT:    %[[B:.*]] = arith.index_cast %[[U]] {xla.range = [0 : index, 511 : index]} : i32 to index
// CHECK-NEXT:    %[[V:.*]] = arith.index_castui %k : index to i64
// CHECK-NEXT:    return %[[B]], %[[V]]
func.func @there_and_back(%i: index {xla.range = [0 : index, 511 : index]}, %k: index {xla.range = [-1 : index, 5 : index]}) -> (index, i64) {
  %c0 = arith.constant 0 : index
  %c511 = arith.constant 511 : index
  %0 = arith.index_castui %i : index to i32
  %1 = arith.index_cast %0 : i32 to index
  %2 = arith.minsi %1, %c511 : index
  %3 = arith.maxsi %2, %c0 : index
  %4 = arith.index_castui %k : index to i64
  return %3, %4 : index, i64
}

// -----

// An index of 32 bits wraps beyond 2^31 - 1; one of 64 bits does not.
// CHECK-LABEL: module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}
// CHECK:         arith.addi %i, %i : index
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @narrow(%i: index {xla.range = [0 : index, 2000000000 : index]}) -> index {
    %0 = arith.addi %i, %i : index
    return %0 : index
  }
}

// -----

// CHECK-LABEL: module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>}
// CHECK:         arith.addi %i, %i {xla.range = [0 : index, 4000000000 : index]} : index
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>} {
  func.func @wide(%i: index {xla.range = [0 : index, 2000000000 : index]}) -> index {
    %0 = arith.addi %i, %i : index
    return %0 : index
  }
}

// -----

// |x|; without a range of x it might be the smallest integer, which has no absolute value.
// CHECK-LABEL: func.func @absolute
// CHECK:         arith.select %{{.*}}, %x, %{{.*}} {xla.range = [0 : index, 7 : index]} : i32
// CHECK:         arith.select %{{.*}}, %y, %{{.*}} : i32
func.func @absolute(%x: i32 {xla.range = [-7 : index, 5 : index]}, %y: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %0 = arith.cmpi sge, %x, %c0 : i32
  %1 = arith.subi %c0, %x : i32
  %2 = arith.select %0, %x, %1 : i32
  %3 = arith.cmpi sge, %y, %c0 : i32
  %4 = arith.subi %c0, %y : i32
  %5 = arith.select %3, %y, %4 : i32
  return %2, %5 : i32, i32
}

// -----

// Truncations move below andi and ori; a side that is not truncated is extended. Different widths stay.
// CHECK-LABEL: func.func @predicates
// CHECK:         %[[E:.*]] = arith.extui %p : i1 to i32
// CHECK-NEXT:    %[[O:.*]] = arith.ori
// CHECK-NEXT:    %[[T:.*]] = arith.trunci %[[O]] : i32 to i1
// CHECK:         arith.andi %{{.*}}, %{{.*}} : i1
func.func @predicates(%a: i32, %b: i32, %p: i1, %w: i64) -> (i1, i1) {
  %0 = arith.trunci %a : i32 to i1
  %1 = arith.ori %0, %p : i1
  %2 = arith.trunci %b : i32 to i1
  %3 = arith.trunci %w : i64 to i1
  %4 = arith.andi %2, %3 : i1
  return %1, %4 : i1, i1
}

// -----

// A map over an induction variable has the loop's bounds, which may simplify it: i mod 8 with i < 4 is i.
// CHECK-LABEL: func.func @refined
// CHECK:         scf.for %i = %c0 to %c4
// CHECK-NEXT:      xla_gpu.apply_indexing #[[M:.*]](%t, %i)
#map = #xla_gpu.indexing_map<"(t, i) -> (t * 8 + i mod 8), domain: t in [0, 7], i in [0, 63]">
func.func @refined(%t: index, %x: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (index) {
    %1 = xla_gpu.apply_indexing #map(%t, %i)
    %2 = arith.addi %a, %1 : index
    scf.yield %2 : index
  }
  return %0 : index
}

// -----

// By option, what chips without minimum and maximum of their own want.
// CHECK-LABEL: func.func @min_max
// CHECK-NEXT:    arith.minimumf
// CHECK-NEXT:    arith.maximumf
// FAST-LABEL:  func.func @min_max
// FAST-NEXT:     %[[C:.*]] = arith.cmpf ule, %x, %y : f32
// FAST-NEXT:     %[[L:.*]] = arith.select %[[C]], %x, %y : f32
// FAST-NEXT:     %[[D:.*]] = arith.cmpf uge, %x, %y : f32
// FAST-NEXT:     %[[G:.*]] = arith.select %[[D]], %x, %y : f32
// FAST-NEXT:     return %[[L]], %[[G]]
// NAN-LABEL:   func.func @min_max
// NAN-NEXT:      %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// NAN-NEXT:      %[[O:.*]] = arith.cmpf ord, %x, %y : f32
// NAN-NEXT:      %[[M:.*]] = arith.minnumf %x, %y : f32
// NAN-NEXT:      arith.select %[[O]], %[[M]], %[[NAN]] : f32
func.func @min_max(%x: f32, %y: f32) -> (f32, f32) {
  %0 = arith.minimumf %x, %y : f32
  %1 = arith.maximumf %x, %y : f32
  return %0, %1 : f32, f32
}

// -----

// What folds once a range has decided something is folded too, on whichever side the constant stands.
// CHECK-LABEL: func.func @folded
// CHECK-NEXT:    return %c : i1
func.func @folded(%i: index {xla.range = [0 : index, 3 : index]}, %c: i1) -> i1 {
  %c3 = arith.constant 3 : index
  %0 = arith.cmpi sle, %i, %c3 : index
  %1 = arith.andi %0, %c : i1
  return %1 : i1
}

// -----

// A cut-off word is shuffled whole; one that was narrower than a word before is left as it is.
// CHECK-LABEL: func.func @shuffled
// CHECK:         %[[S:.*]], %{{.*}} = gpu.shuffle down %a
// CHECK-NEXT:    %[[T:.*]] = arith.trunci %[[S]] : i32 to i1
// CHECK-NEXT:    %[[R:.*]] = arith.extui %[[T]] : i1 to i32
// CHECK-NEXT:    %[[N:.*]] = arith.trunci %b : i8 to i1
// CHECK-NEXT:    %[[W:.*]] = arith.extui %[[N]] : i1 to i32
// CHECK-NEXT:    %[[U:.*]], %{{.*}} = gpu.shuffle down %[[W]]
// CHECK-NEXT:    return %[[R]], %[[U]]
func.func @shuffled(%a: i32, %b: i8) -> (i32, i32) {
  %distance = arith.constant 4 : i32
  %width = arith.constant 32 : i32
  %0 = arith.trunci %a : i32 to i1
  %1 = arith.extui %0 : i1 to i32
  %2, %valid = gpu.shuffle down %1, %distance, %width : i32
  %3 = arith.trunci %b : i8 to i1
  %4 = arith.extui %3 : i1 to i32
  %5, %valid_0 = gpu.shuffle down %4, %distance, %width : i32
  return %2, %5 : i32, i32
}

// -----

// A clamp of anything is between its bounds; one bound alone says nothing of the other side.
// CHECK-LABEL: func.func @clamped
// CHECK-NEXT:    %c0 =
// CHECK-NEXT:    %c95 =
// CHECK-NEXT:    %true =
// CHECK-NEXT:    %[[L:.*]] = arith.minsi %i, %c95 {xla.range = [-9223372036854775808 : index, 95 : index]} : index
// CHECK-NEXT:    %[[R:.*]] = arith.maxsi %[[L]], %c0 {xla.range = [0 : index, 95 : index]} : index
// CHECK-NEXT:    %[[N:.*]] = arith.cmpi sge, %[[L]], %c0 : index
// CHECK-NEXT:    return %[[R]], %true, %[[N]]
func.func @clamped(%i: index) -> (index, i1, i1) {
  %c0 = arith.constant 0 : index
  %c95 = arith.constant 95 : index
  %0 = arith.minsi %i, %c95 : index
  %1 = arith.maxsi %0, %c0 : index
  %2 = arith.cmpi ule, %1, %c95 : index
  %3 = arith.cmpi sge, %0, %c0 : index
  return %1, %2, %3 : index, i1, i1
}

// -----

// A map whose bounds the loop never meets keeps them: no value is in both.
// CHECK:       #[[M:.*]] = #xla_gpu.indexing_map<"(i) -> (i * 3), domain: i in [10, 20]">
// CHECK-LABEL: func.func @never
// CHECK:         scf.for %i = %c0 to %c4
// CHECK-NEXT:      xla_gpu.apply_indexing #[[M]](%i)
#outside = #xla_gpu.indexing_map<"(i) -> (i * 3), domain: i in [10, 20]">
func.func @never(%x: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (index) {
    %1 = xla_gpu.apply_indexing #outside(%i)
    %2 = arith.addi %a, %1 : index
    scf.yield %2 : index
  }
  return %0 : index
}
