// RUN: xla-emitters-opt -p xla-cse --split-input-file --print-debuginfo %s | filecheck %s

// Equal ops are one, which takes both locations; the order of the operands of a sum does not matter.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT:    %0 = arith.mulf %x, %y : f32 loc(fused["a", "b"])
// CHECK-NEXT:    %1 = arith.addf %0, %0 : f32
func.func @equal(%x: f32, %y: f32) -> f32 {
  %0 = arith.mulf %x, %y : f32 loc("a")
  %1 = arith.mulf %y, %x : f32 loc("b")
  %2 = arith.addf %0, %1 : f32 loc("c")
  return %2 : f32
}

// -----

// Not equal: other operands in an op where order matters, another attribute, another type.
// CHECK-LABEL: func.func @different
// CHECK-COUNT-2: arith.subf
// CHECK-COUNT-2: arith.cmpi
// CHECK-COUNT-2: arith.extui
func.func @different(%x: f32, %y: f32, %i: i8) -> (f32, f32, i1, i1, i32, i64) {
  %0 = arith.subf %x, %y : f32
  %1 = arith.subf %y, %x : f32
  %2 = arith.cmpi slt, %i, %i : i8
  %3 = arith.cmpi sle, %i, %i : i8
  %4 = arith.extui %i : i8 to i32
  %5 = arith.extui %i : i8 to i64
  return %0, %1, %2, %3, %4, %5 : f32, f32, i1, i1, i32, i64
}

// -----

// What is known around a region is known in it; what is found in one side of a branch is not known in the other, nor after.
// CHECK-LABEL: func.func @scopes
// CHECK:         %[[A:.*]] = arith.mulf %x, %x
// CHECK:         scf.if
// CHECK-NEXT:      %[[B:.*]] = arith.addf %[[A]], %x
// CHECK-NEXT:      scf.yield %[[B]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[C:.*]] = arith.addf %[[A]], %x
// CHECK-NEXT:      %[[D:.*]] = arith.negf %[[C]]
// CHECK:         }
// CHECK-NEXT:    arith.addf %[[A]], %x
func.func @scopes(%x: f32, %c: i1) -> (f32, f32) {
  %0 = arith.mulf %x, %x : f32
  %1 = scf.if %c -> (f32) {
    %2 = arith.mulf %x, %x : f32
    %3 = arith.addf %2, %x : f32
    scf.yield %3 : f32
  } else {
    %4 = arith.addf %0, %x : f32
    %5 = arith.negf %4 : f32
    scf.yield %5 : f32
  }
  %6 = arith.addf %0, %x : f32
  return %1, %6 : f32, f32
}

// -----

// Branches between blocks: a block knows what its dominators computed (^join that of the entry, not that of ^left).
// CHECK-LABEL: func.func @blocks
// CHECK:         %[[A:.*]] = arith.mulf %x, %x
// CHECK:         cf.cond_br
// CHECK:       ^left:
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[A]], %x
// CHECK-NEXT:    cf.br
// CHECK:       ^right:
// CHECK-NEXT:    cf.br
// CHECK:       ^join(%p
// CHECK-NEXT:    %[[C:.*]] = arith.addf %[[A]], %x
// CHECK-NEXT:    return %[[C]], %[[A]]
func.func @blocks(%x: f32, %c: i1) -> (f32, f32) {
  %0 = arith.mulf %x, %x : f32
  cf.cond_br %c, ^left, ^right
^left:
  %1 = arith.mulf %x, %x : f32
  %2 = arith.addf %1, %x : f32
  cf.br ^join(%2 : f32)
^right:
  %3 = arith.mulf %x, %x : f32
  cf.br ^join(%3 : f32)
^join(%p: f32):
  %4 = arith.mulf %x, %x : f32
  %5 = arith.addf %4, %x : f32
  return %5, %0 : f32, f32
}

// -----

// Loads of one address are merged until something may write: a store, a call, the loop around them.
// CHECK-LABEL: func.func @loads
// CHECK:         %[[A:.*]] = llvm.load %p
// CHECK-NEXT:    llvm.fadd %[[A]], %[[A]]
// CHECK-NEXT:    llvm.store
// CHECK-NEXT:    %[[B:.*]] = llvm.load %p
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      %[[C:.*]] = llvm.load %p
// CHECK-NEXT:      llvm.store %[[C]]
func.func @loads(%p: !llvm.ptr, %q: !llvm.ptr, %l: index, %u: index) -> (f32, f32) {
  %0 = llvm.load %p : !llvm.ptr -> f32
  %1 = llvm.load %p : !llvm.ptr -> f32
  %2 = llvm.fadd %0, %1 : f32
  llvm.store %2, %q : f32, !llvm.ptr
  %3 = llvm.load %p : !llvm.ptr -> f32
  scf.for %i = %l to %u step %u {
    %4 = llvm.load %p : !llvm.ptr -> f32
    llvm.store %4, %q : f32, !llvm.ptr
  }
  return %2, %3 : f32, f32
}

// -----

// Calls of a subgraph with the same arguments are one; ordinary calls are not.
// CHECK-LABEL: func.func @calls
// CHECK-COUNT-1: xla_gpu.pure_call @f(%x)
// CHECK-NEXT:    call @g(%x)
// CHECK-NEXT:    call @g(%x)
func.func private @f(f32) -> f32
func.func private @g(f32) -> f32
func.func @calls(%x: f32) -> (f32, f32, f32, f32) {
  %0 = xla_gpu.pure_call @f(%x) : (f32) -> f32
  %1 = xla_gpu.pure_call @f(%x) : (f32) -> f32
  %2 = func.call @g(%x) : (f32) -> f32
  %3 = func.call @g(%x) : (f32) -> f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// -----

// Equal branches with equal sides are one; what nobody uses goes, with what only it used.
// CHECK-LABEL: func.func @regions
// CHECK-NEXT:    %[[A:.*]] = scf.if %c -> (f32) {
// CHECK:         arith.addf %[[A]], %[[A]]
// CHECK-NOT:     arith.mulf
func.func @regions(%x: f32, %c: i1) -> f32 {
  %dead = arith.mulf %x, %x : f32
  %dead_too = arith.mulf %dead, %x : f32
  %0 = scf.if %c -> (f32) {
    %2 = arith.negf %x : f32
    scf.yield %2 : f32
  } else {
    scf.yield %x : f32
  }
  %1 = scf.if %c -> (f32) {
    %3 = arith.negf %x : f32
    scf.yield %3 : f32
  } else {
    scf.yield %x : f32
  }
  %4 = arith.addf %0, %1 : f32
  return %4 : f32
}

// -----

// A branch may name one block twice, with other values.
// CHECK-LABEL: func.func @both_ways
// CHECK-COUNT-1: arith.mulf %x, %x
// CHECK-NOT:     arith.mulf
// CHECK:         cf.cond_br %c, ^bb1(%x : f32), ^bb1(%[[S:.*]] : f32)
// CHECK:         arith.addf %{{.*}}, %[[S]]
func.func @both_ways(%x: f32, %c: i1) -> f32 {
  %0 = arith.mulf %x, %x : f32
  cf.cond_br %c, ^bb1(%x : f32), ^bb1(%0 : f32)
^bb1(%y: f32):
  %1 = arith.mulf %x, %x : f32
  %2 = arith.addf %y, %1 : f32
  return %2 : f32
}
