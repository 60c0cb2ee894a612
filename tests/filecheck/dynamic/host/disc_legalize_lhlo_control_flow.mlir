// RUN: xla-emitters-opt --split-input-file -p disc-legalize-lhlo-control-flow %s | filecheck %s

// A loop: its buffers go from block to block; the body's block leads back to the condition's.
func.func @main(%p: memref<i1, "cpu">) -> memref<i1, "cpu"> {
  %r = "lmhlo.while"(%p) ({
  ^bb0(%a: memref<i1, "cpu">):
    %v = memref.load %a[] : memref<i1, "cpu">
    lmhlo.condition %v
  }, {
  ^bb0(%b: memref<i1, "cpu">):
    %n = memref.alloc() : memref<i1, "cpu">
    lmhlo.not %b -> %n {name = "n"} : (memref<i1, "cpu">) -> memref<i1, "cpu">
    memref.dealloc %b : memref<i1, "cpu">
    lmhlo.terminator %n : memref<i1, "cpu">
  }) : (memref<i1, "cpu">) -> memref<i1, "cpu">
  return %r : memref<i1, "cpu">
}
// CHECK-LABEL: func.func @main(%p: memref<i1, "cpu">)
// CHECK-NEXT:    cf.br ^[[HEAD:.*]](%p : memref<i1, "cpu">)
// CHECK-NEXT:  ^[[HEAD]](%[[HELD:.*]]: memref<i1, "cpu">):
// CHECK-NEXT:    %[[V:.*]] = memref.load %[[HELD]][]
// CHECK-NEXT:    cf.cond_br %[[V]], ^[[BODY:.*]], ^[[END:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK-NEXT:    %n = memref.alloc()
// CHECK-NEXT:    lmhlo.not %[[HELD]] -> %n
// CHECK-NEXT:    memref.dealloc %[[HELD]]
// CHECK-NEXT:    cf.br ^[[HEAD]](%n : memref<i1, "cpu">)
// CHECK-NEXT:  ^[[END]]:
// CHECK-NEXT:    return %[[HELD]]

// -----

// A branch inside a branch: blocks of the function; the last branch is the default.
func.func @main(%i: i32, %x: memref<4xf32, "gpu">, %y: memref<4xf32, "gpu">) -> memref<4xf32, "gpu"> {
  %r = "lmhlo.case"(%i) ({
    lmhlo.terminator %x : memref<4xf32, "gpu">
  }, {
    %s = "lmhlo.case"(%i) ({
      lmhlo.terminator %y : memref<4xf32, "gpu">
    }) : (i32) -> memref<4xf32, "gpu">
    lmhlo.terminator %s : memref<4xf32, "gpu">
  }) : (i32) -> memref<4xf32, "gpu">
  return %r : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         cf.switch %i : i32, [
// CHECK-NEXT:      default: ^[[SECOND:.*]],
// CHECK-NEXT:      0: ^[[FIRST:.*]]
// CHECK-NEXT:    ]
// CHECK-NEXT:  ^[[FIRST]]:
// CHECK-NEXT:    cf.br ^[[END:.*]](%x
// CHECK-NEXT:  ^[[SECOND]]:
// CHECK-NEXT:    cf.br ^[[INNER:.*]]
// CHECK-NEXT:  ^[[INNER]]:
// CHECK-NEXT:    cf.br ^[[JOIN:.*]](%y
// CHECK-NEXT:  ^[[JOIN]](%[[S:.*]]: memref
// CHECK-NEXT:    cf.br ^[[END]](%[[S]]
// CHECK-NEXT:  ^[[END]](%[[R:.*]]: memref
// CHECK-NEXT:    return %[[R]]

// -----

// A choice of the host, with one inside; a choice that is part of a kernel stays.
func.func @main(%x: memref<4xf32, "gpu">, %p: i1, %q: i1) {
  scf.if %p {
    scf.if %q {
      lmhlo.abs %x -> %x {name = "a"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    }
  } else {
    "lmhlo.fusion"() ({
      scf.if %q {
        %c0 = arith.constant 0 : index
        %v = memref.load %x[%c0] : memref<4xf32, "gpu">
        memref.store %v, %x[%c0] : memref<4xf32, "gpu">
      }
      lmhlo.terminator
    }) : () -> ()
  }
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    cf.cond_br %p, ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK-NEXT:  ^[[THEN]]:
// CHECK-NEXT:    cf.cond_br %q, ^[[INNER:.*]], ^[[NEXT:.*]]
// CHECK-NEXT:  ^[[INNER]]:
// CHECK-NEXT:    lmhlo.abs
// CHECK-NEXT:    cf.br ^[[NEXT]]
// CHECK-NEXT:  ^[[NEXT]]:
// CHECK-NEXT:    cf.br ^[[END:.*]]
// CHECK-NEXT:  ^[[ELSE]]:
// CHECK-NEXT:    "lmhlo.fusion"()
// CHECK-NEXT:      scf.if %q
// CHECK:         cf.br ^[[END]]
// CHECK-NEXT:  ^[[END]]:
// CHECK-NEXT:    return
