// RUN: xla-emitters-opt -p xla-loop-invariant-code-motion --split-input-file --print-debuginfo %s | filecheck %s

// What does not depend on the loop leaves it, through both loops, and keeps its location.
// CHECK-LABEL: func.func @nested
// CHECK:         %[[A:.*]] = arith.mulf %x, %x : f32 loc("a")
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        arith.addf %{{.*}}, %[[A]]
func.func @nested(%x: f32, %l: index, %u: index, %s: index) -> f32 {
  %0 = scf.for %i = %l to %u step %s iter_args(%p = %x) -> (f32) {
    %1 = scf.for %j = %l to %u step %s iter_args(%q = %p) -> (f32) {
      %2 = arith.mulf %x, %x : f32 loc("a")
      %3 = arith.addf %q, %2 : f32
      scf.yield %3 : f32
    }
    scf.yield %1 : f32
  }
  return %0 : f32
}

// -----

// An element is read ahead of a loop that is sure to run, not of one that may have no iteration: its index may be outside the tensor.
// CHECK-LABEL: func.func @elements
// CHECK:         tensor.extract %t[%k]
// CHECK-NEXT:    scf.for %{{.*}} = %c0 to %c4
// CHECK:         scf.for %{{.*}} = %c0 to %n
// CHECK-NEXT:      tensor.extract %t[%k]
func.func @elements(%t: tensor<8xf32>, %k: index, %n: index, %x: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %2 = tensor.extract %t[%k] : tensor<8xf32>
    %3 = arith.addf %a, %2 : f32
    scf.yield %3 : f32
  }
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %2 = tensor.extract %t[%k] : tensor<8xf32>
    %3 = arith.addf %a, %2 : f32
    scf.yield %3 : f32
  }
  return %0, %1 : f32, f32
}

// -----

// A quotient whose divisor may be zero stays; so does what has an effect, and what depends on the loop through an op that stays.
// CHECK-LABEL: func.func @kept
// CHECK:         %[[R:.*]] = arith.remui %k, %c3
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      arith.divui %k, %m
// CHECK-NEXT:      func.call @effect()
// CHECK-NEXT:      arith.addi %{{.*}}, %[[R]]
func.func private @effect() -> index
func.func @kept(%l: index, %u: index, %s: index, %k: index, %m: index, %p: !llvm.ptr) {
  %c3 = arith.constant 3 : index
  scf.for %i = %l to %u step %s {
    %0 = arith.divui %k, %m : index
    %1 = func.call @effect() : () -> index
    %2 = arith.remui %k, %c3 : index
    %3 = arith.addi %1, %2 : index
    %4 = arith.addi %0, %3 : index
    %5 = arith.index_cast %4 : index to i32
    llvm.store %5, %p : i32, !llvm.ptr
  }
  return
}

// -----

// A whole branch leaves if all of it may; one that reads an element only under its condition does not.
// CHECK-LABEL: func.func @branches
// CHECK:         scf.if %c
// CHECK:         scf.for
// CHECK:           scf.if %c
// CHECK:             tensor.extract
func.func @branches(%c: i1, %x: f32, %t: tensor<8xf32>, %k: index, %l: index, %u: index, %s: index) -> f32 {
  %0 = scf.for %i = %l to %u step %s iter_args(%a = %x) -> (f32) {
    %1 = scf.if %c -> (f32) {
      %4 = arith.negf %x : f32
      scf.yield %4 : f32
    } else {
      scf.yield %x : f32
    }
    %2 = scf.if %c -> (f32) {
      %5 = tensor.extract %t[%k] : tensor<8xf32>
      scf.yield %5 : f32
    } else {
      scf.yield %1 : f32
    }
    %3 = arith.addf %a, %2 : f32
    scf.yield %3 : f32
  }
  return %0 : f32
}

// -----

// The condition of a while runs at least once, its body perhaps never.
// CHECK-LABEL: func.func @while
// CHECK-NEXT:    tensor.extract %t[%k]
// CHECK-NEXT:    arith.mulf %x, %x
// CHECK-NEXT:    scf.while
// CHECK:         } do {
// CHECK:           tensor.extract %t[%j]
func.func @while(%x: f32, %t: tensor<8xf32>, %k: index, %j: index) -> f32 {
  %0 = scf.while (%a = %x) : (f32) -> f32 {
    %1 = tensor.extract %t[%k] : tensor<8xf32>
    %2 = arith.cmpf olt, %a, %1 : f32
    scf.condition(%2) %a : f32
  } do {
  ^bb0(%b: f32):
    %3 = arith.mulf %x, %x : f32
    %4 = tensor.extract %t[%j] : tensor<8xf32>
    %5 = arith.addf %3, %4 : f32
    %6 = arith.addf %b, %5 : f32
    scf.yield %6 : f32
  }
  return %0 : f32
}

// -----

// An unsigned loop from -1, the largest number, never runs; from -8 to -1 it does.
// CHECK-LABEL: func.func @unsigned
// CHECK:         scf.for unsigned
// CHECK-NEXT:      tensor.extract %t[%k]
// CHECK:         tensor.extract %t[%j]
// CHECK-NEXT:    scf.for unsigned
func.func @unsigned(%x: f32, %t: tensor<8xf32>, %k: index, %j: index) -> (f32, f32) {
  %m1 = arith.constant -1 : index
  %m8 = arith.constant -8 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %0 = scf.for unsigned %i = %m1 to %c5 step %c1 iter_args(%a = %x) -> (f32) {
    %1 = tensor.extract %t[%k] : tensor<8xf32>
    %2 = arith.addf %a, %1 : f32
    scf.yield %2 : f32
  }
  %3 = scf.for unsigned %i = %m8 to %m1 step %c1 iter_args(%a = %x) -> (f32) {
    %4 = tensor.extract %t[%j] : tensor<8xf32>
    %5 = arith.addf %a, %4 : f32
    scf.yield %5 : f32
  }
  return %0, %3 : f32, f32
}
