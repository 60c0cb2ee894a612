// RUN: xla-emitters-opt -p disc-dissolve-fusion,disc-buffer-optimization %s | filecheck %s

// Ops in order, and what is between two of them lives between them.
func.func @main(%x: memref<4xf32, "gpu">) -> memref<4xf32, "gpu"> {
  %t = memref.alloc() : memref<4xf32, "gpu">
  %u = memref.alloc() : memref<4xf32, "gpu">
  %y = memref.alloc() : memref<4xf32, "gpu">
  "lmhlo.fusion"() ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.negate %t -> %u {name = "u"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.exponential %u -> %y {name = "y"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %t : memref<4xf32, "gpu">
  memref.dealloc %u : memref<4xf32, "gpu">
  return %y : memref<4xf32, "gpu">
}
// CHECK:      %t = memref.alloc()
// CHECK-NEXT: lmhlo.abs %x -> %t
// CHECK-NEXT: %u = memref.alloc()
// CHECK-NEXT: lmhlo.negate %t -> %u
// CHECK-NEXT: memref.dealloc %t
// CHECK-NEXT: %y = memref.alloc()
// CHECK-NEXT: lmhlo.exponential %u -> %y
// CHECK-NEXT: memref.dealloc %u
// CHECK-NEXT: return %y
