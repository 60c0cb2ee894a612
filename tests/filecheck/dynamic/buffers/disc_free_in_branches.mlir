// RUN: xla-emitters-opt --split-input-file -p disc-free-in-branches %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-free-in-branches,disc-update-in-place,disc-lower-to-buffer-alias %s | filecheck %s --check-prefix OWNED

// Nothing uses %x behind the choice: each branch frees it, then one yields it itself and the other updates it in place.
func.func @main(%a: memref<8xf32, "gpu">, %u: memref<1xf32, "gpu">, %i: memref<i32, "gpu">, %n: i32) -> memref<8xf32, "gpu"> {
  %x = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.abs %a -> %x {name = "x"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %r = "lmhlo.case"(%n) ({
    %o = memref.alloc() : memref<8xf32, "gpu">
    lmhlo.copy %x -> %o {name = "o"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
    lmhlo.terminator %o : memref<8xf32, "gpu">
  }, {
    %o = memref.alloc() : memref<8xf32, "gpu">
    lmhlo.dynamic_update_slice %x, %u, %i -> %o {name = "u"} : (memref<8xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
    lmhlo.terminator %o : memref<8xf32, "gpu">
  }) : (i32) -> memref<8xf32, "gpu">
  memref.dealloc %x : memref<8xf32, "gpu">
  return %r : memref<8xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:           lmhlo.copy %x
// CHECK-NEXT:      memref.dealloc %x
// CHECK-NEXT:      lmhlo.terminator
// CHECK:           lmhlo.dynamic_update_slice %x
// CHECK-NEXT:      memref.dealloc %x
// CHECK-NEXT:      lmhlo.terminator
// CHECK-NEXT:    })
// CHECK-NEXT:    return
// OWNED-LABEL: func.func @main
// OWNED:         "lmhlo.case"(%n) ({
// OWNED-NEXT:      lmhlo.terminator %x
// OWNED-NEXT:    }, {
// OWNED-NEXT:      lmhlo.dynamic_update_slice %x, %u, %i -> %x
// OWNED-NEXT:      lmhlo.terminator %x

// -----

// A buffer that is read behind the choice is freed there; an argument is not freed.
func.func @main(%a: memref<8xf32, "gpu">, %n: i32) -> (memref<8xf32, "gpu">, memref<8xf32, "gpu">) {
  %x = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.abs %a -> %x {name = "x"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %r = "lmhlo.case"(%n) ({
    %o = memref.alloc() : memref<8xf32, "gpu">
    lmhlo.add %x, %a -> %o {name = "o"} : (memref<8xf32, "gpu">, memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
    lmhlo.terminator %o : memref<8xf32, "gpu">
  }) : (i32) -> memref<8xf32, "gpu">
  %y = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.negate %x -> %y {name = "y"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  memref.dealloc %x : memref<8xf32, "gpu">
  return %r, %y : memref<8xf32, "gpu">, memref<8xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.case"
// CHECK-NOT:     dealloc
// CHECK:         lmhlo.negate %x
// CHECK-NEXT:    memref.dealloc %x
// CHECK-NEXT:    return

// -----

// A choice in a choice: the inner branches free what the outer branch would.
func.func @main(%a: memref<8xf32, "gpu">, %n: i32) -> memref<8xf32, "gpu"> {
  %x = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.abs %a -> %x {name = "x"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %r = "lmhlo.case"(%n) ({
    %s = "lmhlo.case"(%n) ({
      %o = memref.alloc() : memref<8xf32, "gpu">
      lmhlo.sine %x -> %o {name = "o"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
      lmhlo.terminator %o : memref<8xf32, "gpu">
    }) : (i32) -> memref<8xf32, "gpu">
    lmhlo.terminator %s : memref<8xf32, "gpu">
  }, {
    %p = memref.alloc() : memref<8xf32, "gpu">
    lmhlo.cosine %x -> %p {name = "p"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
    lmhlo.terminator %p : memref<8xf32, "gpu">
  }) : (i32) -> memref<8xf32, "gpu">
  memref.dealloc %x : memref<8xf32, "gpu">
  return %r : memref<8xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:             lmhlo.sine %x
// CHECK-NEXT:        memref.dealloc %x
// CHECK:           lmhlo.cosine %x
// CHECK-NEXT:      memref.dealloc %x
// CHECK-NOT:   dealloc
