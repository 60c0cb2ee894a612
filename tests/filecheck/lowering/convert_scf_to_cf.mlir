// RUN: xla-emitters-opt -p xla-convert-scf-to-cf --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p convert-scf-to-cf --split-input-file %s | filecheck %s

func.func @for(%lb: index, %ub: index, %step: index, %init: f32) -> f32 {
  %r = scf.for %i = %lb to %ub step %step iter_args(%a = %init) -> (f32) {
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  }
  func.return %r : f32
}
// CHECK-LABEL: func.func @for
// CHECK-SAME:    %[[LB:[a-z0-9]*]]: index, %[[UB:[a-z0-9]*]]: index, %[[STEP:[a-z0-9]*]]: index, %[[INIT:[a-z0-9]*]]: f32
// CHECK-NEXT:    cf.br ^[[HEAD:.*]](%[[LB]], %[[INIT]] : index, f32)
// CHECK-NEXT:  ^[[HEAD]](%[[I:.*]]: index, %[[A:.*]]: f32):
// CHECK-NEXT:    %[[ON:.*]] = arith.cmpi slt, %[[I]], %[[UB]] : index
// CHECK-NEXT:    cf.cond_br %[[ON]], ^[[BODY:.*]], ^[[REST:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[A]], %[[A]] : f32
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[I]], %[[STEP]] : index
// CHECK-NEXT:    cf.br ^[[HEAD]](%[[NEXT]], %[[B]] : index, f32)
// CHECK-NEXT:  ^[[REST]]:
// CHECK-NEXT:    return %[[A]] : f32

// -----

// A loop's annotation is that of the branch back, where LLVM reads it.
func.func @annotated(%lb: index, %ub: index, %step: index, %init: f32) -> f32 {
  %r = scf.for %i = %lb to %ub step %step iter_args(%a = %init) -> (f32) {
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  } {loop_annotation = #llvm.loop_annotation<unroll = <full = true>>}
  func.return %r : f32
}
// CHECK-LABEL: func.func @annotated
// CHECK:         cf.br ^[[HEAD:[a-z0-9]*]]({{.*}} : index, f32)
// CHECK-NEXT:  ^[[HEAD]]
// CHECK:         cf.br ^[[HEAD]]({{.*}} : index, f32) {loop_annotation = #llvm.loop_annotation<{{.*}}full = true>>}

// -----

func.func @if(%c: i1, %x: f32, %y: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    scf.yield %y : f32
  }
  func.return %r : f32
}
// CHECK-LABEL: func.func @if
// CHECK:         cf.cond_br %{{.*}}, ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK-NEXT:  ^[[THEN]]:
// CHECK-NEXT:    cf.br ^[[REST:.*]](%{{.*}} : f32)
// CHECK-NEXT:  ^[[ELSE]]:
// CHECK-NEXT:    cf.br ^[[REST]](%{{.*}} : f32)
// CHECK-NEXT:  ^[[REST]](%[[R:.*]]: f32):
// CHECK-NEXT:    return %[[R]] : f32

// -----

// Without an else the branch goes straight on; a loop inside the branch is lowered too.
func.func @if_for(%c: i1, %n: index, %m: memref<8xindex>) {
  scf.if %c {
    %c1 = arith.constant 1 : index
    scf.for %i = %n to %n step %c1 {
      memref.store %i, %m[%i] : memref<8xindex>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @if_for
// CHECK-NEXT:    cf.cond_br %{{.*}}, ^[[THEN:.*]], ^[[REST:.*]]
// CHECK-NEXT:  ^[[THEN]]:
// CHECK:         cf.br ^[[HEAD:.*]](
// CHECK-NEXT:  ^[[HEAD]](
// CHECK:         cf.cond_br %{{.*}}, ^[[BODY:.*]], ^[[AFTER:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK:         memref.store
// CHECK:         cf.br ^[[HEAD]]
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK-NEXT:    cf.br ^[[REST]]
// CHECK-NEXT:  ^[[REST]]:
// CHECK-NEXT:    return
// CHECK-NOT:     scf.

// -----

func.func @while(%x: i32, %n: i32) -> i32 {
  %r = scf.while (%a = %x) : (i32) -> i32 {
    %c = arith.cmpi slt, %a, %n : i32
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%b: i32):
    %d = arith.addi %b, %b : i32
    scf.yield %d : i32
  }
  func.return %r : i32
}
// CHECK-LABEL: func.func @while
// CHECK-NEXT:    cf.br ^[[TEST:.*]](%{{.*}} : i32)
// CHECK-NEXT:  ^[[TEST]](%[[A:.*]]: i32):
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi slt, %[[A]]
// CHECK-NEXT:    cf.cond_br %[[C]], ^[[BODY:.*]](%[[A]] : i32), ^[[REST:.*]]
// CHECK-NEXT:  ^[[BODY]](%[[B:.*]]: i32):
// CHECK-NEXT:    %[[D:.*]] = arith.addi %[[B]], %[[B]] : i32
// CHECK-NEXT:    cf.br ^[[TEST]](%[[D]] : i32)
// CHECK-NEXT:  ^[[REST]]:
// CHECK-NEXT:    return %[[A]] : i32

// -----

func.func @switch(%x: index) -> i32 {
  %r = scf.index_switch %x -> i32
  case 2 {
    %a = arith.constant 20 : i32
    scf.yield %a : i32
  }
  case 5 {
    %a = arith.constant 50 : i32
    scf.yield %a : i32
  }
  default {
    %a = arith.constant 0 : i32
    scf.yield %a : i32
  }
  func.return %r : i32
}
// CHECK-LABEL: func.func @switch
// CHECK:         %[[FLAG:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK:         cf.switch %[[FLAG]] : i64, [
// CHECK-NEXT:      default: ^[[DEFAULT:[a-z0-9]*]],
// CHECK-NEXT:      2: ^[[TWO:[a-z0-9]*]],
// CHECK-NEXT:      5: ^[[FIVE:[a-z0-9]*]]
// CHECK:       ^[[TWO]]:
// CHECK:         cf.br ^[[REST:.*]](%{{.*}} : i32)
// CHECK:       ^[[FIVE]]:
// CHECK:         cf.br ^[[REST]](%{{.*}} : i32)
// CHECK:       ^[[DEFAULT]]:
// CHECK:         cf.br ^[[REST]](%{{.*}} : i32)
// CHECK-NEXT:  ^[[REST]](%[[R:.*]]: i32):
// CHECK-NEXT:    return %[[R]]

// -----

// The blocks of a region move in front of what follows it; every yield leaves it. Another region in it is lowered too.
func.func @execute_region(%c: i1, %x: i32) -> i32 {
  %r = scf.execute_region -> i32 {
    cf.cond_br %c, ^one, ^two
  ^one:
    scf.yield %x : i32
  ^two:
    %d = scf.if %c -> i32 {
      scf.yield %x : i32
    } else {
      %e = arith.addi %x, %x : i32
      scf.yield %e : i32
    }
    scf.yield %d : i32
  }
  return %r : i32
}
// CHECK-LABEL: func.func @execute_region
// CHECK-NEXT:    cf.br ^[[FIRST:.*]]
// CHECK-NEXT:  ^[[FIRST]]:
// CHECK-NEXT:    cf.cond_br %c, ^[[ONE:.*]], ^[[TWO:.*]]
// CHECK-NEXT:  ^[[ONE]]:
// CHECK-NEXT:    cf.br ^[[REST:.*]](%x : i32)
// CHECK-NEXT:  ^[[TWO]]:
// CHECK-NEXT:    cf.cond_br %c, ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK:       ^[[REST]](%[[R:.*]]: i32):
// CHECK-NEXT:    return %[[R]]

// -----

// Blocks are in the order in which they run: no jump but a loop's goes backwards.
func.func @nested(%n: index, %c: i1, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %s = scf.if %c -> (f32) {
      %t = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> (f32) {
        %d = arith.addf %b, %x : f32
        scf.yield %d : f32
      }
      scf.yield %t : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %s : f32
  }
  func.return %r : f32
}
// CHECK-LABEL: func.func @nested
// CHECK:         cf.br ^[[OUTER:bb[0-9]+]](
// CHECK-NEXT:  ^[[OUTER]](
// CHECK:         cf.cond_br %{{.*}}, ^[[BODY:.*]], ^[[END:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK-NEXT:    cf.cond_br %{{.*}}, ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK-NEXT:  ^[[THEN]]:
// CHECK-NEXT:    cf.br ^[[INNER:bb[0-9]+]](
// CHECK-NEXT:  ^[[INNER]](
// CHECK:         cf.cond_br %{{.*}}, ^[[SUM:.*]], ^[[DONE:.*]]
// CHECK-NEXT:  ^[[SUM]]:
// CHECK:         cf.br ^[[INNER]](
// CHECK-NEXT:  ^[[DONE]]:
// CHECK-NEXT:    cf.br ^[[REST:bb[0-9]+]](
// CHECK-NEXT:  ^[[ELSE]]:
// CHECK-NEXT:    cf.br ^[[REST]](
// CHECK-NEXT:  ^[[REST]](
// CHECK:         cf.br ^[[OUTER]](
// CHECK-NEXT:  ^[[END]]:
// CHECK-NEXT:    return
