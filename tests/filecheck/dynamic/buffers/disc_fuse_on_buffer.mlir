// RUN: xla-emitters-opt --split-input-file -p disc-fuse-on-buffer %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-fuse-on-buffer --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The seed's kLoop: elementwise ops, of which two give results of one shape. What is between two of them stays outside as a buffer.
func.func @main(%x: memref<?x4xf32, "gpu">, %n: index) -> (memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) {
  %a = memref.alloc(%n) : memref<?x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
  %b = memref.alloc(%n) : memref<?x4xf32, "gpu">
  lmhlo.negate %a -> %b {name = "b"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
  %c = memref.alloc(%n) : memref<?x4xf32, "gpu">
  lmhlo.add %a, %b -> %c {name = "c"} : (memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
  memref.dealloc %a : memref<?x4xf32, "gpu">
  return %b, %c : memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %a = memref.alloc(%n)
// CHECK-NEXT:    %b = memref.alloc(%n)
// CHECK-NEXT:    %c = memref.alloc(%n)
// CHECK-NEXT:    "lmhlo.fusion"() <{fusion_name = "main_kLoop_add_0", kind = "kLoop"}> ({
// CHECK-NEXT:      lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.negate %a -> %b
// CHECK-NEXT:      lmhlo.add %a, %b -> %c
// CHECK-NEXT:      lmhlo.terminator
// CHECK-NEXT:    }) {disc.device = "gpu"}
// CHECK-NEXT:    memref.dealloc %a
// CHECK-NEXT:    return %b, %c

// -----

// Sizes are equal by their names where the SSA values differ, and results with as many elements need not have one shape.
func.func @main(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["b", "s"]}, %n: index, %m: index, %k: index, %s: memref<1xi32, "cpu">) -> (memref<?x?xf32, "gpu">, memref<?xf32, "gpu">) {
  %a = memref.alloc(%n, %m) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  %f = memref.alloc(%k) {disc.sizes = ["b*s"]} : memref<?xf32, "gpu">
  lmhlo.dynamic_reshape %x, %s -> %f {name = "f"} : (memref<?x?xf32, "gpu">, memref<1xi32, "cpu">) -> memref<?xf32, "gpu">
  %g = memref.alloc(%k) {disc.sizes = ["b*s"]} : memref<?xf32, "gpu">
  lmhlo.negate %f -> %g {name = "g"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
  memref.dealloc %f : memref<?xf32, "gpu">
  return %a, %g : memref<?x?xf32, "gpu">, memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.fusion"()
// CHECK-NEXT:      lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.dynamic_reshape %x, %s -> %f
// CHECK-NEXT:      lmhlo.negate %f -> %g
// CHECK-NEXT:      lmhlo.terminator

// -----

// Results that are not known to have as many elements are two kernels: a kernel computes an element of each.
func.func @main(%x: memref<?xf32, "gpu">, %n: index, %m: index, %s: memref<2xi32, "cpu">) -> (memref<?xf32, "gpu">, memref<?x?xf32, "gpu">) {
  %a = memref.alloc(%n) : memref<?xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
  %b = memref.alloc(%m, %n) : memref<?x?xf32, "gpu">
  lmhlo.dynamic_broadcast_in_dim %a, %s -> %b {name = "b", dimensions = array<i64: 1>} : (memref<?xf32, "gpu">, memref<2xi32, "cpu">) -> memref<?x?xf32, "gpu">
  return %a, %b : memref<?xf32, "gpu">, memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_abs_0"
// CHECK:         fusion_name = "main_kLoop_dynamic_broadcast_in_dim_1"
// REMARK: disc-fuse-on-buffer: skipped lmhlo.dynamic_broadcast_in_dim: not fused with a, which it reads: the results a and b are not known to have as many elements

// -----

// No cycle: the library call needs the first op and gives to the last one.
func.func @main(%x: memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu"> {
  %a = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %d = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.dot %a, %a -> %d {name = "d", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %c = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.add %a, %d -> %c {name = "c"} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  memref.dealloc %a : memref<4x4xf32, "gpu">
  memref.dealloc %d : memref<4x4xf32, "gpu">
  return %c : memref<4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_abs_0"
// CHECK:         lmhlo.dot
// CHECK:         fusion_name = "main_kLoop_add_1"
// REMARK: skipped lmhlo.add: not fused with a, which it reads: an op that must run between them reads the one and is read by the other

// -----

// What a cluster needs is before it, what needs it is behind: the call moves behind the fusion of the ops around it.
func.func @main(%x: memref<4x4xf32, "gpu">) -> (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) {
  %a = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %d = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.dot %a, %x -> %d {name = "d", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %c = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.negate %a -> %c {name = "c"} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  memref.dealloc %a : memref<4x4xf32, "gpu">
  return %c, %d : memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.negate %a -> %c
// CHECK:         lmhlo.dot %a, %x -> %d

// -----

// A constant of equal elements is no operand and no result of a kernel: each that reads it has its own. What only the library reads stays.
func.func @main(%x: memref<4x4xf32, "gpu">) -> (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) {
  %one = memref.alloc() : memref<f32, "gpu">
  lmhlo.constant -> %one {name = "one", value = dense<1.0> : tensor<f32>} : () -> memref<f32, "gpu">
  %ones = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.broadcast %one -> %ones {name = "ones", dimensions = array<i64>} : (memref<f32, "gpu">) -> memref<4x4xf32, "gpu">
  %a = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.add %x, %ones -> %a {name = "a"} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %d = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.dot %a, %ones -> %d {name = "d", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %c = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.multiply %d, %ones -> %c {name = "c"} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  memref.dealloc %one : memref<f32, "gpu">
  memref.dealloc %ones : memref<4x4xf32, "gpu">
  memref.dealloc %d : memref<4x4xf32, "gpu">
  return %a, %c : memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.fusion"() <{fusion_name = "main_kLoop_broadcast_0", kind = "kLoop"}> ({
// CHECK-NEXT:      lmhlo.constant -> %{{.*}} {name = "one"
// CHECK-NEXT:      lmhlo.broadcast %{{.*}} -> %ones
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         "lmhlo.fusion"() <{fusion_name = "main_kLoop_add_1", kind = "kLoop"}> ({
// CHECK-NEXT:      lmhlo.constant -> %[[ONE:.*]] {name = "one"
// CHECK-NEXT:      lmhlo.broadcast %[[ONE]] -> %[[ONES:.*]] {{{.*}}name = "ones"}
// CHECK-NEXT:      lmhlo.add %x, %[[ONES]] -> %a
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         lmhlo.dot %a, %ones -> %d
// CHECK:         fusion_name = "main_kLoop_multiply_2"

// -----

// Ops that have nothing to do with each other, with as many elements each, are one kernel.
func.func @main(%x: memref<8x2xf32, "gpu">, %y: memref<16xf32, "gpu">, %z: memref<15xf32, "gpu">) -> (memref<8x2xf32, "gpu">, memref<16xf32, "gpu">, memref<15xf32, "gpu">) {
  %a = memref.alloc() : memref<8x2xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<8x2xf32, "gpu">) -> memref<8x2xf32, "gpu">
  %b = memref.alloc() : memref<16xf32, "gpu">
  lmhlo.negate %y -> %b {name = "b"} : (memref<16xf32, "gpu">) -> memref<16xf32, "gpu">
  %c = memref.alloc() : memref<15xf32, "gpu">
  lmhlo.negate %z -> %c {name = "c"} : (memref<15xf32, "gpu">) -> memref<15xf32, "gpu">
  return %a, %b, %c : memref<8x2xf32, "gpu">, memref<16xf32, "gpu">, memref<15xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_negate_0"
// CHECK-NEXT:      lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.negate %y -> %b
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         fusion_name = "main_kLoop_negate_1"
// CHECK-NEXT:      lmhlo.negate %z -> %c

// -----

// Nothing before an assertion moves behind it, and what is behind stays there; ops on the host are in no fusion.
func.func @main(%x: memref<4xf32, "gpu">, %p: memref<i1, "cpu">, %h: memref<4xf32, "cpu">) -> (memref<4xf32, "gpu">, memref<4xf32, "cpu">) {
  %a = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.shape_assertion %p {name = "said", message = "no"} : (memref<i1, "cpu">) -> ()
  %b = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.negate %a -> %b {name = "b"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "cpu">
  lmhlo.negate %h -> %c {name = "c"} : (memref<4xf32, "cpu">) -> memref<4xf32, "cpu">
  memref.dealloc %a : memref<4xf32, "gpu">
  return %b, %c : memref<4xf32, "gpu">, memref<4xf32, "cpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.shape_assertion
// CHECK:         "lmhlo.fusion"()
// CHECK-NEXT:      lmhlo.abs
// CHECK-NEXT:      lmhlo.negate %a -> %b
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         lmhlo.negate %h -> %c

// -----

// One element of the host's memory is a number of the kernel; more is a copy before it.
func.func @main(%x: memref<4xf32, "gpu">, %n: memref<f32, "cpu">, %m: memref<4xf32, "cpu">) -> memref<4xf32, "gpu"> {
  %a = memref.alloc() : memref<f32, "gpu">
  lmhlo.h2d %n -> %a {name = "a"} : (memref<f32, "cpu">) -> memref<f32, "gpu">
  %b = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.h2d %m -> %b {name = "b"} : (memref<4xf32, "cpu">) -> memref<4xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.broadcast %a -> %c {name = "c", dimensions = array<i64>} : (memref<f32, "gpu">) -> memref<4xf32, "gpu">
  %d = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.add %b, %c -> %d {name = "d"} : (memref<4xf32, "gpu">, memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %a : memref<f32, "gpu">
  memref.dealloc %b : memref<4xf32, "gpu">
  memref.dealloc %c : memref<4xf32, "gpu">
  return %d : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.h2d %m -> %b
// CHECK:         "lmhlo.fusion"()
// CHECK-NEXT:      lmhlo.h2d %n -> %[[A:.*]] {name = "a"}
// CHECK-NEXT:      lmhlo.broadcast %[[A]] -> %[[C:.*]] {
// CHECK-NEXT:      lmhlo.add %b, %[[C]] -> %d

// -----

// A reshape that is alone is no kernel; nor is one beside what it reshapes, which is a result itself.
func.func @main(%x: memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu"> {
  %a = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %r = memref.alloc() : memref<2x8xf32, "gpu">
  lmhlo.reshape %a -> %r {name = "r"} : (memref<4x4xf32, "gpu">) -> memref<2x8xf32, "gpu">
  %q = memref.alloc() : memref<8x2xf32, "gpu">
  lmhlo.reshape %x -> %q {name = "q"} : (memref<4x4xf32, "gpu">) -> memref<8x2xf32, "gpu">
  %d = memref.alloc() : memref<2x2xf32, "gpu">
  lmhlo.dot %r, %q -> %d {name = "d", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<2x8xf32, "gpu">, memref<8x2xf32, "gpu">) -> memref<2x2xf32, "gpu">
  memref.dealloc %r : memref<2x8xf32, "gpu">
  memref.dealloc %q : memref<8x2xf32, "gpu">
  memref.dealloc %d : memref<2x2xf32, "gpu">
  return %a : memref<4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_abs_0"
// CHECK-NEXT:      lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         lmhlo.reshape %a -> %r
// CHECK:         lmhlo.reshape %x -> %q

// -----

// A transpose of a matrix is a kernel of its own; one of four dimensions is not. What no kernel of ours computes is left.
func.func @main(%x: memref<4x4xf32, "gpu">, %y: memref<2x2x2x2xf32, "gpu">) -> (memref<4x4xf32, "gpu">, memref<2x2x2x2xf32, "gpu">, memref<4x4xf32, "gpu">) {
  %a = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %t = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.transpose %a -> %t {name = "t", dimensions = array<i64: 1, 0>} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %b = memref.alloc() : memref<2x2x2x2xf32, "gpu">
  lmhlo.exponential %y -> %b {name = "b"} : (memref<2x2x2x2xf32, "gpu">) -> memref<2x2x2x2xf32, "gpu">
  %u = memref.alloc() : memref<2x2x2x2xf32, "gpu">
  lmhlo.transpose %b -> %u {name = "u", dimensions = array<i64: 0, 2, 1, 3>} : (memref<2x2x2x2xf32, "gpu">) -> memref<2x2x2x2xf32, "gpu">
  %z = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.cholesky %x -> %z {name = "z", lower = true} : (memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  memref.dealloc %a : memref<4x4xf32, "gpu">
  memref.dealloc %b : memref<2x2x2x2xf32, "gpu">
  return %t, %u, %z : memref<4x4xf32, "gpu">, memref<2x2x2x2xf32, "gpu">, memref<4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: lmhlo.abs
// CHECK:         fusion_name = "main_kLoop_transpose_1"
// CHECK-NEXT:      lmhlo.transpose %a -> %t
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         lmhlo.cholesky
// REMARK: skipped lmhlo.cholesky: it is not computed element by element
// REMARK: skipped lmhlo.transpose: not fused with a, which it reads: the transpose t is a kernel of its own

// -----

// In a loop's body: a constant from outside is copied into it.
func.func @main(%x: memref<4xf32, "gpu">, %more: i1) -> memref<4xf32, "gpu"> {
  %two = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.constant -> %two {name = "two", value = dense<2.0> : tensor<4xf32>} : () -> memref<4xf32, "gpu">
  %s = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.copy %x -> %s {name = "s"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %w = "lmhlo.while"(%s) ({
  ^bb0(%c: memref<4xf32, "gpu">):
    lmhlo.condition %more
  }, {
  ^bb0(%b: memref<4xf32, "gpu">):
    %n = memref.alloc() : memref<4xf32, "gpu">
    lmhlo.multiply %b, %two -> %n {name = "n"} : (memref<4xf32, "gpu">, memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    memref.dealloc %b : memref<4xf32, "gpu">
    lmhlo.terminator %n : memref<4xf32, "gpu">
  }) : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %two : memref<4xf32, "gpu">
  return %w : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     constant
// CHECK:         lmhlo.copy
// CHECK:         "lmhlo.while"
// CHECK:           "lmhlo.fusion"()
// CHECK-NEXT:        lmhlo.constant -> %[[TWO:.*]] {
// CHECK-NEXT:        lmhlo.multiply %{{.*}}, %[[TWO]] -> %n
// CHECK:           memref.dealloc %[[TWO]]

// -----

// A reshape of an argument that is returned is a kernel: the argument is not the program's to give away.
func.func @main(%x: memref<4x4xf32, "gpu">) -> memref<2x8xf32, "gpu"> {
  %r = memref.alloc() : memref<2x8xf32, "gpu">
  lmhlo.reshape %x -> %r {name = "r"} : (memref<4x4xf32, "gpu">) -> memref<2x8xf32, "gpu">
  return %r : memref<2x8xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_reshape_0"
// CHECK-NEXT:      lmhlo.reshape %x -> %r

// -----

// What reads arguments only is where it is needed first: the second filter does not live beside the first. What is returned stays.
func.func @main(%f: memref<2x3xf32, "gpu">, %g: memref<4x2xf32, "gpu">, %x: memref<?x3xf32, "gpu">, %n: index) -> (memref<?x4xf32, "gpu">, memref<5xf32, "gpu">, memref<5xf32, "gpu">) {
  %z = memref.alloc() : memref<5xf32, "gpu">
  lmhlo.iota -> %z {name = "z", iota_dimension = 0 : i64} : () -> memref<5xf32, "gpu">
  %a = memref.alloc() : memref<3x2xf32, "gpu">
  lmhlo.transpose %f -> %a {name = "a", dimensions = array<i64: 1, 0>} : (memref<2x3xf32, "gpu">) -> memref<3x2xf32, "gpu">
  %b = memref.alloc() : memref<2x4xf32, "gpu">
  lmhlo.transpose %g -> %b {name = "b", dimensions = array<i64: 1, 0>} : (memref<4x2xf32, "gpu">) -> memref<2x4xf32, "gpu">
  %p = memref.alloc(%n) : memref<?x2xf32, "gpu">
  lmhlo.dot %x, %a -> %p {name = "p", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<?x3xf32, "gpu">, memref<3x2xf32, "gpu">) -> memref<?x2xf32, "gpu">
  %q = memref.alloc(%n) : memref<?x4xf32, "gpu">
  lmhlo.dot %p, %b -> %q {name = "q", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<?x2xf32, "gpu">, memref<2x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
  return %q, %z, %z : memref<?x4xf32, "gpu">, memref<5xf32, "gpu">, memref<5xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.transpose %f -> %a
// CHECK-NOT:     lmhlo.transpose
// CHECK:         lmhlo.dot %x, %a -> %p
// CHECK:         lmhlo.transpose %g -> %b
// CHECK:         lmhlo.dot %p, %b -> %q

// -----

// Ops that have nothing to do with each other stay two kernels where they are known to be large: in one, both would need their memory at once.
func.func @main(%x: memref<256x256xf32, "gpu">, %y: memref<256x256xf32, "gpu">) -> (memref<256x256xf32, "gpu">, memref<256x256xf32, "gpu">) {
  %a = memref.alloc() : memref<256x256xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<256x256xf32, "gpu">) -> memref<256x256xf32, "gpu">
  %b = memref.alloc() : memref<256x256xf32, "gpu">
  lmhlo.negate %y -> %b {name = "b"} : (memref<256x256xf32, "gpu">) -> memref<256x256xf32, "gpu">
  return %a, %b : memref<256x256xf32, "gpu">, memref<256x256xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_abs_0"
// CHECK:         fusion_name = "main_kLoop_negate_1"

// -----

// An op may change a part of a buffer in place; one that overwrites all of what it reads is not fused, here or with others.
func.func @main(%x: memref<4xf32, "gpu">) -> memref<4xf32, "gpu"> {
  %a = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.negate %a -> %a {name = "overwrites"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  return %a : memref<4xf32, "gpu">
}
// CHECK-LABEL: func.func @main(%x: memref<4xf32, "gpu">)
// CHECK:         lmhlo.negate %a -> %a {name = "overwrites"}
// CHECK-NEXT:    return %a
// REMARK: disc-fuse-on-buffer: skipped lmhlo.negate: {{.*}}it overwrites what it reads
