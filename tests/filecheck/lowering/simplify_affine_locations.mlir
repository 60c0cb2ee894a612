// RUN: xla-emitters-opt -p xla-simplify-affine --split-input-file --print-debuginfo %s | filecheck %s
// RUN: xla-emitters-opt -p xla-simplify-affine --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// All that a map becomes is from the map's instruction; the last op has its name.
func.func @named(%x: index) -> (index, index) {
  %address = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 7]">(%x) loc("tanh_0"("gelu.hlo":19:3))
  %low = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 4), domain: d0 in [-7, 7]">(%x) loc("add_0"("gelu.hlo":20:3))
  func.return %address, %low : index, index
}
// REMARK:      xla-simplify-affine: skipped xla_gpu.apply_indexing: a dividend, or an operand of max or min, may be negative at add_0 (gelu.hlo:20:3)
// CHECK-LABEL: @named
// CHECK-NEXT:  arith.constant 4 : index loc("tanh_0"("gelu.hlo":19:3))
// CHECK-NEXT:  arith.muli {{.*}} loc("tanh_0"("gelu.hlo":19:3))
// CHECK-NEXT:  arith.constant 3 : index loc("tanh_0"("gelu.hlo":19:3))
// CHECK-NEXT:  %address = arith.addi {{.*}} loc("tanh_0"("gelu.hlo":19:3))
// CHECK-NEXT:  xla_gpu.apply_indexing

// -----

// What the block and blocks around it have is made once, and is from all instructions that need it.
func.func @around(%x: index, %c: i1) -> (index, index) {
  %a = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 7]">(%x) loc("one"("x.hlo":1:1))
  %r = scf.if %c -> (index) {
    %b = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 7]">(%x) loc("two"("x.hlo":2:1))
    scf.yield %b : index
  } else {
    %d = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 5 + 3), domain: d0 in [0, 7]">(%x) loc("three"("x.hlo":3:1))
    scf.yield %d : index
  }
  func.return %a, %r : index, index
}
// CHECK-LABEL: @around
// CHECK:       %[[P:.*]] = arith.muli {{.*}} loc(fused["one"("x.hlo":1:1), "two"("x.hlo":2:1)])
// CHECK:       %[[A:.*]] = arith.addi %[[P]], {{.*}} loc(fused["one"("x.hlo":1:1), "two"("x.hlo":2:1)])
// CHECK-NEXT:  scf.if
// CHECK-NEXT:    scf.yield %[[A]]
// CHECK:         arith.muli {{.*}} loc("three"("x.hlo":3:1))

// -----

// What one branch makes the other does not see.
func.func @beside(%x: index, %c: i1) -> (index, index) {
  %a = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 7]">(%x) loc("one"("x.hlo":1:1))
  %r = scf.if %c -> (index) {
    %b = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 5 + 3), domain: d0 in [0, 7]">(%x) loc("two"("x.hlo":2:1))
    scf.yield %b : index
  } else {
    %d = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 5 + 3), domain: d0 in [0, 7]">(%x) loc("three"("x.hlo":3:1))
    scf.yield %d : index
  }
  func.return %a, %r : index, index
}
// CHECK-LABEL: @beside
// CHECK:       scf.if
// CHECK:         arith.muli {{.*}} loc("two"("x.hlo":2:1))
// CHECK:       } else {
// CHECK:         arith.muli {{.*}} loc("three"("x.hlo":3:1))
