// RUN: xla-emitters-opt -p disc-remove-dead-buffer %s | filecheck %s

// %t is only named and freed; %u is read.
func.func @main(%x: memref<4xf32, "gpu">) {
  %t = memref.alloc() : memref<4xf32, "gpu">
  %v = lmhlo.inc_ref %t() : memref<4xf32, "gpu"> -> memref<2x2xf32, "gpu">
  %u = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %u -> %x {name = "x"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %v : memref<2x2xf32, "gpu">
  memref.dealloc %t : memref<4xf32, "gpu">
  memref.dealloc %u : memref<4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %u = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %u -> %x
// CHECK-NEXT:    memref.dealloc %u
// CHECK-NEXT:    return

// A marker of the GPU's memory is no use of a buffer: it goes with it. (The seed runs this pass behind disc-insert-memory-marker.)
func.func private @gpu_mem_marker_1df32_x(memref<?xf32, "gpu">)
func.func @marked(%n: index) {
  %t = memref.alloc(%n) : memref<?xf32, "gpu">
  func.call @gpu_mem_marker_1df32_x(%t) : (memref<?xf32, "gpu">) -> ()
  memref.dealloc %t : memref<?xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @marked
// CHECK-NEXT:    return
