// RUN: xla-emitters-opt -p xla-gpu-peel-loops %s | filecheck %s

// The last of four steps is not whole: it is checked by itself.
// CHECK-DAG: #[[MAIN:.*]] = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 * 64 + d0), domain: d0 in [0, 63], s0 in [0, 2]">
// CHECK-DAG: #[[TAIL:.*]] = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 + 192), domain: d0 in [0, 57], s0 in [3, 3]">
// CHECK-LABEL: func.func @last_step
// CHECK:         %[[A:.*]] = xla_gpu.loop (%arg0)[%{{.*}}] -> (%[[I:.*]]) in #[[MAIN]] iter_args(%[[X:.*]] = %arg1) -> (index) {
// CHECK-NEXT:      %[[S:.*]] = arith.addi %[[X]], %[[I]] : index
// CHECK-NEXT:      xla_gpu.yield %[[S]]
// CHECK:         %[[B:.*]] = xla_gpu.loop (%arg0)[%{{.*}}] -> (%[[J:.*]]) in #[[TAIL]] iter_args(%[[Y:.*]] = %[[A]]) -> (index) {
// CHECK-NEXT:      %[[T:.*]] = arith.addi %[[Y]], %[[J]] : index
// CHECK-NEXT:      xla_gpu.yield %[[T]]
// CHECK:         return %[[B]]
#last = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 * 64 + d0), domain: d0 in [0, 63], s0 in [0, 3], s0 * 64 + d0 in [0, 249]">
func.func @last_step(%arg0: index {xla.range = [0 : index, 63 : index]}, %arg1: index) -> index {
  %0 = xla_gpu.loop (%arg0)[%s] -> (%i) in #last iter_args(%x = %arg1) -> (index) {
    %1 = arith.addi %x, %i : index
    xla_gpu.yield %1 : index
  }
  return %0 : index
}

// Without its last two iterations the loop would be whole, but not without one: left as it is.
// CHECK-LABEL: func.func @two_last
// CHECK:         xla_gpu.loop
// CHECK-NOT:     xla_gpu.loop
#two = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 * 64 + d0), domain: d0 in [0, 63], s0 in [0, 3], s0 * 64 + d0 in [0, 190]">
func.func @two_last(%arg0: index {xla.range = [0 : index, 63 : index]}, %arg1: index) -> index {
  %0 = xla_gpu.loop (%arg0)[%s] -> (%i) in #two iter_args(%x = %arg1) -> (index) {
    xla_gpu.yield %i : index
  }
  return %0 : index
}

// What no constraint mentions is whole.
// CHECK-LABEL: func.func @whole
// CHECK:         xla_gpu.loop
// CHECK-NOT:     xla_gpu.loop
#whole = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 * 64 + d0), domain: d0 in [0, 63], s0 in [0, 3], d0 mod 4 in [0, 2]">
func.func @whole(%arg0: index {xla.range = [0 : index, 63 : index]}, %arg1: index) -> index {
  %0 = xla_gpu.loop (%arg0)[%s] -> (%i) in #whole iter_args(%x = %arg1) -> (index) {
    xla_gpu.yield %i : index
  }
  return %0 : index
}

// 64 iterations inside are too many to copy.
// CHECK-LABEL: func.func @long
// CHECK:         xla_gpu.loop
// CHECK-NOT:     xla_gpu.loop
#long = #xla_gpu.indexing_map<"(d0)[s0, s1] -> (s0 * 64 + d0, s1), domain: d0 in [0, 63], s0 in [0, 3], s1 in [0, 63], s0 * 64 + d0 in [0, 249]">
func.func @long(%arg0: index {xla.range = [0 : index, 63 : index]}, %arg1: index) -> index {
  %0 = xla_gpu.loop (%arg0)[%s, %t] -> (%i, %j) in #long iter_args(%x = %arg1) -> (index) {
    xla_gpu.yield %i : index
  }
  return %0 : index
}
