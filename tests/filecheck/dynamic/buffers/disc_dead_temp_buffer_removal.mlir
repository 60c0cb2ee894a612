// RUN: xla-emitters-opt --split-input-file -p disc-dead-temp-buffer-removal %s | filecheck %s

// Written and never read; then what only the removed op read; an element that is loaded and not used.
func.func @main(%x: memref<4xf32, "gpu">, %i: index) {
  %a = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %b = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %a -> %b {name = "b"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %v = memref.load %b[%i] : memref<4xf32, "gpu">
  memref.dealloc %a : memref<4xf32, "gpu">
  memref.dealloc %b : memref<4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    return

// -----

// What is returned stays, and an assertion, and an op of which one result is read.
func.func @main(%k: memref<4xf32, "gpu">, %p: memref<i1, "cpu">) -> memref<2xf32, "gpu"> {
  lmhlo.shape_assertion %p {message = "no", name = "assert"} : (memref<i1, "cpu">) -> ()
  %v = memref.alloc() : memref<2xf32, "gpu">
  %i = memref.alloc() : memref<2xi32, "gpu">
  lmhlo.topk %k -> %v, %i {k = 2 : i64, name = "t"} : (memref<4xf32, "gpu">) -> (memref<2xf32, "gpu">, memref<2xi32, "gpu">)
  memref.dealloc %i : memref<2xi32, "gpu">
  return %v : memref<2xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    lmhlo.shape_assertion
// CHECK:         lmhlo.topk %k -> %v, %i
// CHECK-NEXT:    memref.dealloc %i
// CHECK-NEXT:    return %v

// -----

// A marker of the GPU's memory reads nothing.
func.func private @gpu_mem_marker_1df32_x(memref<?xf32, "gpu">)
func.func @marked(%x: memref<?xf32, "gpu">, %n: index) {
  %t = memref.alloc(%n) : memref<?xf32, "gpu">
  func.call @gpu_mem_marker_1df32_x(%t) : (memref<?xf32, "gpu">) -> ()
  lmhlo.abs %x -> %t {name = "a"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
  memref.dealloc %t : memref<?xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @marked
// CHECK-NEXT:    return

// -----

// An op that updates a buffer in place reads it for no one else; updated in place and returned, it stays.
func.func @in_place(%x: memref<4xf32, "gpu">, %u: memref<1xf32, "gpu">, %i: memref<i32, "cpu">) -> memref<4xf32, "gpu"> {
  %a = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.dynamic_update_slice %a, %u, %i -> %a {name = "dead"} : (memref<4xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "cpu">) -> memref<4xf32, "gpu">
  memref.dealloc %a : memref<4xf32, "gpu">
  %b = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %b {name = "b"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.dynamic_update_slice %b, %u, %i -> %b {name = "live"} : (memref<4xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "cpu">) -> memref<4xf32, "gpu">
  return %b : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @in_place
// CHECK-NEXT:    %b = memref.alloc()
// CHECK-NEXT:    lmhlo.abs %x -> %b
// CHECK-NEXT:    lmhlo.dynamic_update_slice %b, %u, %i -> %b {name = "live"}
// CHECK-NEXT:    return %b
