// RUN: xla-emitters-opt --split-input-file -p disc-buffer-optimization %s | filecheck %s

// Allocated before the first use, freed behind the last; another name holds a reference of its own.
func.func @main(%x: memref<4xf32, "gpu">) -> memref<4xf32, "gpu"> {
  %a = memref.alloc() : memref<4xf32, "gpu">
  %b = memref.alloc() : memref<4xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %v = lmhlo.inc_ref %a() : memref<4xf32, "gpu"> -> memref<4xf32, "gpu">
  lmhlo.abs %v -> %b {name = "b"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.abs %b -> %c {name = "c"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %v : memref<4xf32, "gpu">
  memref.dealloc %a : memref<4xf32, "gpu">
  memref.dealloc %b : memref<4xf32, "gpu">
  return %c : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %a = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %x -> %a
// CHECK-NEXT:    %v = lmhlo.inc_ref %a()
// CHECK-NEXT:    memref.dealloc %a
// CHECK-NEXT:    %b = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %v -> %b
// CHECK-NEXT:    memref.dealloc %v
// CHECK-NEXT:    %c = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %b -> %c
// CHECK-NEXT:    memref.dealloc %b
// CHECK-NEXT:    return %c

// -----

// Uses in branches are uses of the op around them.
func.func @main(%x: memref<4xf32, "gpu">, %i: i32) {
  %a = memref.alloc() : memref<4xf32, "gpu">
  %b = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %b {name = "b"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  "lmhlo.case"(%i) ({
    lmhlo.abs %b -> %a {name = "in"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.terminator
  }) : (i32) -> ()
  lmhlo.abs %x -> %x {name = "last"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %a : memref<4xf32, "gpu">
  memref.dealloc %b : memref<4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %b = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %x -> %b
// CHECK-NEXT:    %a = memref.alloc()
// CHECK-NEXT:    "lmhlo.case"(%i) ({
// CHECK:         }) : (i32) -> ()
// CHECK-NEXT:    memref.dealloc %{{a|b}}
// CHECK-NEXT:    memref.dealloc %{{a|b}}
// CHECK-NEXT:    lmhlo.abs %x -> %x
