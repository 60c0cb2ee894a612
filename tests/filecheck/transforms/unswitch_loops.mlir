// RUN: xla-emitters-opt -p xla-unswitch-loops --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-unswitch-loops --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The branch goes around the loop; the loop of the side that hands its value on is that value.
// CHECK-LABEL: func.func @around
// CHECK:         %[[R:.*]] = scf.if %c -> (f32) {
// CHECK-NEXT:      %[[L:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %x) -> (f32) {
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[A]], %y
// CHECK-NEXT:        scf.yield %[[S]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[L]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %x
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @around(%c: i1, %x: f32, %y: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %1 = scf.if %c -> (f32) {
      %2 = arith.addf %a, %y : f32
      scf.yield %2 : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %1 : f32
  }
  return %0 : f32
}

// -----

// Ranges decide the condition: no branch is left. An id of 127 at most is below 128, also unsigned; of one that may be negative
// nothing is known unsigned.
// CHECK-LABEL: func.func @decided
// CHECK-NOT:     scf.if
// CHECK:         return
// CHECK-LABEL: func.func @undecided
// CHECK:         arith.cmpi ult, %i, %c128
// CHECK:         scf.if
func.func @decided(%x: f32, %y: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %low = arith.cmpi sge, %t, %c0 : index
  %high = arith.cmpi ult, %t, %c128 : index
  %c = arith.andi %low, %high : i1
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %1 = scf.if %c -> (f32) {
      %2 = arith.addf %a, %y : f32
      scf.yield %2 : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %1 : f32
  }
  return %0 : f32
}
func.func @undecided(%x: f32, %y: f32, %i: index {xla.range = [-1 : index, 5 : index]}) -> f32 {
  %c128 = arith.constant 128 : index
  %c = arith.cmpi ult, %i, %c128 : index
  %0 = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    scf.yield %y : f32
  }
  return %0 : f32
}

// -----

// Through two loops; what is pure and serves only the branch goes along.
// CHECK-LABEL: func.func @nested
// CHECK:         scf.if %c
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          %[[K:.*]] = arith.addi
// CHECK-NEXT:          tensor.insert %x into %{{.*}}[%[[K]]]
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %t
func.func @nested(%c: i1, %x: f32, %t: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> (tensor<8xf32>) {
    %1 = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (tensor<8xf32>) {
      %k = arith.addi %i, %j : index
      %2 = scf.if %c -> (tensor<8xf32>) {
        %3 = tensor.insert %x into %b[%k] : tensor<8xf32>
        scf.yield %3 : tensor<8xf32>
      } else {
        scf.yield %b : tensor<8xf32>
      }
      scf.yield %2 : tensor<8xf32>
    }
    scf.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

// Left alone: a condition that changes in the loop; a loop that does more than branch.
// CHECK-LABEL: func.func @kept
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:         scf.for
// CHECK:           scf.if
// REMARK-DAG:  xla-unswitch-loops: skipped scf.for: the condition of its branch changes in the loop
// REMARK-DAG:  xla-unswitch-loops: skipped scf.for: its body has more than the branch (arith.mulf)
func.func @kept(%c: i1, %x: f32, %y: f32, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %p = arith.cmpi eq, %i, %c1 : index
    %2 = scf.if %p -> (f32) {
      %3 = arith.addf %a, %y : f32
      scf.yield %3 : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %2 : f32
  }
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %2 = scf.if %c -> (f32) {
      %3 = arith.addf %a, %y : f32
      scf.yield %3 : f32
    } else {
      scf.yield %a : f32
    }
    %4 = arith.mulf %2, %y : f32
    scf.yield %4 : f32
  }
  return %0, %1 : f32, f32
}

// -----

// Left alone: an op with an effect beside the branch, also when it has no result.
// CHECK-LABEL: func.func @effect_beside
// CHECK:         scf.for
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.if
// CHECK-NOT:     gpu.barrier
// CHECK:         return
// REMARK:      xla-unswitch-loops: skipped scf.for: its body has more than the branch (gpu.barrier)
func.func @effect_beside(%c: i1, %x: f32, %y: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    gpu.barrier
    %1 = scf.if %c -> (f32) {
      %2 = arith.addf %a, %y : f32
      scf.yield %2 : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %1 : f32
  }
  return %0 : f32
}
