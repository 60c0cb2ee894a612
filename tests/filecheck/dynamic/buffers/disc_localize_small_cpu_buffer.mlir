// RUN: xla-emitters-opt --split-input-file -p disc-localize-small-cpu-buffer %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-localize-small-cpu-buffer --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// 16 indices are 128 bytes: on the stack. 17 are not, nor what is a GPU's, of unknown size, or returned.
func.func @main(%x: memref<16xindex, "cpu">, %n: index) -> memref<2xi32, "cpu"> {
  %s = memref.alloc() : memref<16xindex, "cpu">
  memref.dealloc %s : memref<16xindex, "cpu">
  %t = memref.alloc() : memref<17xindex, "cpu">
  memref.dealloc %t : memref<17xindex, "cpu">
  %g = memref.alloc() : memref<2xi32, "gpu">
  memref.dealloc %g : memref<2xi32, "gpu">
  %u = memref.alloc(%n) : memref<?xi32, "cpu">
  memref.dealloc %u : memref<?xi32, "cpu">
  %r = memref.alloc() : memref<2xi32, "cpu">
  return %r : memref<2xi32, "cpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %s = memref.alloca() : memref<16xindex, "cpu">
// CHECK-NEXT:    %t = memref.alloc() : memref<17xindex, "cpu">
// CHECK-NEXT:    memref.dealloc %t
// CHECK-NEXT:    %g = memref.alloc() : memref<2xi32, "gpu">
// CHECK-NEXT:    memref.dealloc %g
// CHECK-NEXT:    %u = memref.alloc(%n)
// CHECK-NEXT:    memref.dealloc %u
// CHECK-NEXT:    %r = memref.alloc()
// REMARK: skipped memref.alloc: it may take more than 128 bytes
// REMARK: skipped memref.alloc: it is given away

// -----

// In a loop each iteration would take more of the stack.
func.func @main(%p: memref<i1, "cpu">) {
  %c = memref.alloc() : memref<i1, "cpu">
  %r = "lmhlo.while"(%c) ({
  ^bb0(%a: memref<i1, "cpu">):
    %v = memref.load %a[] : memref<i1, "cpu">
    lmhlo.condition %v
  }, {
  ^bb0(%a: memref<i1, "cpu">):
    %s = memref.alloc() : memref<2xi32, "cpu">
    memref.dealloc %s : memref<2xi32, "cpu">
    lmhlo.terminator %a : memref<i1, "cpu">
  }) : (memref<i1, "cpu">) -> memref<i1, "cpu">
  memref.dealloc %r : memref<i1, "cpu">
  return
}
// CHECK-LABEL: func.func @main
// CHECK:         %c = memref.alloc()
// CHECK:         %s = memref.alloc()
// REMARK: skipped memref.alloc: it is made inside a loop
