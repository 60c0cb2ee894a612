// RUN: xla-emitters-opt --split-input-file -p disc-update-in-place %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-update-in-place --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// A loop's own buffer is updated where it is: the body frees it, and nothing uses it behind the update.
func.func @main(%x: memref<?x4xf32, "gpu">, %row: memref<1x4xf32, "gpu">, %i: memref<i32, "gpu">, %p: memref<i1, "cpu">) -> memref<?x4xf32, "gpu"> {
  %r = "lmhlo.while"(%x) ({
  ^bb0(%a: memref<?x4xf32, "gpu">):
    %v = memref.load %p[] : memref<i1, "cpu">
    lmhlo.condition %v
  }, {
  ^bb0(%b: memref<?x4xf32, "gpu">):
    %c0 = arith.constant 0 : index
    %n = memref.dim %b, %c0 : memref<?x4xf32, "gpu">
    %o = memref.alloc(%n) : memref<?x4xf32, "gpu">
    lmhlo.dynamic_update_slice %b, %row, %i, %i -> %o {name = "o"} : (memref<?x4xf32, "gpu">, memref<1x4xf32, "gpu">, memref<i32, "gpu">, memref<i32, "gpu">) -> memref<?x4xf32, "gpu">
    memref.dealloc %b : memref<?x4xf32, "gpu">
    lmhlo.terminator %o : memref<?x4xf32, "gpu">
  }) : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
  return %r : memref<?x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:           lmhlo.condition
// CHECK-NOT:   alloc
// CHECK:           lmhlo.dynamic_update_slice %b, %row, %i, %i -> %b
// CHECK-NEXT:      lmhlo.terminator %b

// -----

// The old value is returned too: a copy is needed. An argument, and a constant, are not ours to write into.
func.func @main(%x: memref<8xf32, "gpu">, %u: memref<1xf32, "gpu">, %i: memref<i32, "gpu">) -> (memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">) {
  %y = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.sort %x -> %y {name = "y", dimensions = array<i64: 0>, to_apply = @less} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %o = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.dynamic_update_slice %y, %u, %i -> %o {name = "o"} : (memref<8xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
  %p = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.dynamic_update_slice %x, %u, %i -> %p {name = "p"} : (memref<8xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
  %c = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.constant -> %c {name = "c", value = dense<1.0> : tensor<8xf32>} : () -> memref<8xf32, "gpu">
  %q = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.dynamic_update_slice %c, %u, %i -> %q {name = "q"} : (memref<8xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
  memref.dealloc %c : memref<8xf32, "gpu">
  return %y, %o, %p, %q : memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">
}
hlo.computation @less {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %l = hlo.compare %a, %b {direction = "LT", name = "l"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  hlo.return %l : tensor<i1>
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.dynamic_update_slice %y, %u, %i -> %o
// CHECK:         lmhlo.dynamic_update_slice %x, %u, %i -> %p
// CHECK:         lmhlo.dynamic_update_slice %c, %u, %i -> %q
// REMARK: skipped lmhlo.dynamic_update_slice: the array belongs to another block
// REMARK: skipped lmhlo.dynamic_update_slice: the array is a constant

// -----

// Read before the update, and freed here: in place. What one kernel computes and updates stays one kernel; an array updates no part of itself.
func.func @main(%x: memref<8xf32, "gpu">, %u: memref<1xf32, "gpu">, %i: memref<i32, "gpu">) -> (memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">) {
  %y = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.abs %x -> %y {name = "y"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %s = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.sine %y -> %s {name = "s"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %o = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.dynamic_update_slice %y, %u, %i -> %o {name = "o"} : (memref<8xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
  %z = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.negate %x -> %z {name = "z"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %p = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.dynamic_update_slice %z, %u, %i -> %p {name = "p"} : (memref<8xf32, "gpu">, memref<1xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
  %w = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.cosine %x -> %w {name = "w"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %q = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.dynamic_update_slice %w, %w, %i -> %q {name = "q"} : (memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<i32, "gpu">) -> memref<8xf32, "gpu">
  memref.dealloc %y : memref<8xf32, "gpu">
  memref.dealloc %z : memref<8xf32, "gpu">
  memref.dealloc %w : memref<8xf32, "gpu">
  return %s, %o, %p, %q : memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">, memref<8xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.dynamic_update_slice %y, %u, %i -> %y
// CHECK:         lmhlo.dynamic_update_slice %z, %u, %i -> %p
// CHECK:         lmhlo.dynamic_update_slice %w, %w, %i -> %q
// CHECK:         return %s, %y, %p, %q
// REMARK: skipped lmhlo.dynamic_update_slice: one kernel computes the array and updates it
// REMARK: skipped lmhlo.dynamic_update_slice: it reads the array that it updates
