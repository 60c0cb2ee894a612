// RUN: xla-emitters-opt --split-input-file -p disc-lower-to-buffer-alias %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-lower-to-buffer-alias --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// A copy, a reshape, and a reshape to sizes known at run time are second names.
func.func @main(%a: memref<?x4xf32, "gpu">, %s: memref<1xi32, "cpu">, %n: index) -> memref<?xf32, "gpu"> {
  %c = memref.alloc(%n) : memref<?x4xf32, "gpu">
  lmhlo.copy %a -> %c {name = "c"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
  %d = memref.alloc(%n) : memref<?xf32, "gpu">
  lmhlo.dynamic_reshape %c, %s -> %d {name = "d"} : (memref<?x4xf32, "gpu">, memref<1xi32, "cpu">) -> memref<?xf32, "gpu">
  %o = memref.alloc(%n) : memref<?xf32, "gpu">
  lmhlo.abs %d -> %o {name = "o"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
  memref.dealloc %c : memref<?x4xf32, "gpu">
  memref.dealloc %d : memref<?xf32, "gpu">
  return %o : memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %c = lmhlo.inc_ref %a(%n) : memref<?x4xf32, "gpu"> -> memref<?x4xf32, "gpu">
// CHECK-NEXT:    %d = lmhlo.inc_ref %c(%n) : memref<?x4xf32, "gpu"> -> memref<?xf32, "gpu">
// CHECK-NEXT:    %o = memref.alloc(%n)
// CHECK-NEXT:    lmhlo.abs %d -> %o
// CHECK-NEXT:    memref.dealloc %c
// CHECK-NEXT:    memref.dealloc %d

// -----

// What is returned must not be an argument, nor two results one buffer: both stay copies.
func.func @main(%a: memref<4xf32, "gpu">) -> (memref<4xf32, "gpu">, memref<4xf32, "gpu">, memref<4xf32, "gpu">) {
  %b = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.copy %a -> %b {name = "b"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %a -> %c {name = "c"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %d = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.copy %c -> %d {name = "d"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  return %b, %c, %d : memref<4xf32, "gpu">, memref<4xf32, "gpu">, memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.copy %a -> %b
// CHECK:         lmhlo.copy %c -> %d
// REMARK: skipped lmhlo.copy: its result is given away, and its operand is not free to be

// -----

// A copy that is given away, of a buffer that is only freed afterwards: the buffer itself is given.
func.func @main(%a: memref<4xf32, "gpu">) -> memref<4xf32, "gpu"> {
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %a -> %c {name = "c"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %d = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.copy %c -> %d {name = "d"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %c : memref<4xf32, "gpu">
  return %d : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %c = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %a -> %c
// CHECK-NEXT:    return %c

// -----

// Between memories, and of a buffer that is written again, data are copied.
func.func @main(%a: memref<4xf32, "gpu">, %o: memref<4xf32, "gpu">) {
  %h = memref.alloc() : memref<4xf32, "cpu">
  lmhlo.copy %a -> %h {name = "h"} : (memref<4xf32, "gpu">) -> memref<4xf32, "cpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.copy %a -> %c {name = "c"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.abs %c -> %a {name = "again"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.add %c, %a -> %o {name = "o"} : (memref<4xf32, "gpu">, memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %h : memref<4xf32, "cpu">
  memref.dealloc %c : memref<4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.copy %a -> %h
// CHECK:         lmhlo.copy %a -> %c
// REMARK: skipped lmhlo.copy: it moves data between memories
// REMARK: skipped lmhlo.copy: one of the two buffers is written again

// -----

// In a fusion a copy is part of the kernel.
func.func @main(%a: memref<4xf32, "gpu">) {
  %c = memref.alloc() : memref<4xf32, "gpu">
  "lmhlo.fusion"() ({
    lmhlo.copy %a -> %c {name = "c"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %c : memref<4xf32, "gpu">
  return
}
// CHECK: lmhlo.copy %a -> %c
// REMARK: skipped lmhlo.copy: it is part of a fusion
