// RUN: xla-emitters-opt --split-input-file -p disc-fold-transposes %s | filecheck %s
// A filter and an image that are transposed for convolutions alone are read where they are; what has nothing left in it goes.
func.func @main(%x: memref<1x5x6x3xf32, "gpu">, %w: memref<2x3x3x4xf32, "gpu">, %p: memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu"> {
  %xt = memref.alloc() : memref<1x3x5x6xf32, "gpu">
  %wt = memref.alloc() : memref<4x3x2x3xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.transpose %x -> %xt {dimensions = array<i64: 0, 3, 1, 2>, name = "xt"} : (memref<1x5x6x3xf32, "gpu">) -> memref<1x3x5x6xf32, "gpu">
    lmhlo.transpose %w -> %wt {dimensions = array<i64: 3, 2, 0, 1>, name = "wt"} : (memref<2x3x3x4xf32, "gpu">) -> memref<4x3x2x3xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  %y = memref.alloc() : memref<1x4x4x4xf32, "gpu">
  lmhlo.dynamic_conv %xt, %wt, %p -> %y {name = "y", dim_labels = "bf01_oi01->bf01", window = #hlo.window<size = [2, 3]>} : (memref<1x3x5x6xf32, "gpu">, memref<4x3x2x3xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu">
  memref.dealloc %wt : memref<4x3x2x3xf32, "gpu">
  memref.dealloc %xt : memref<1x3x5x6xf32, "gpu">
  return %y : memref<1x4x4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:      %y = memref.alloc
// CHECK-NEXT:      lmhlo.dynamic_conv %x, %w, %p -> %y {{.*}}dim_labels = "b01f_01io->bf01"
// CHECK-NEXT:      return

// -----

// What is freed after the transpose is freed after the convolution.
func.func @later(%a: memref<1x5x6x3xf32, "gpu">, %w: memref<4x3x2x3xf32, "gpu">, %p: memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu"> {
  %x = memref.alloc() : memref<1x5x6x3xf32, "gpu">
  lmhlo.abs %a -> %x {name = "x"} : (memref<1x5x6x3xf32, "gpu">) -> memref<1x5x6x3xf32, "gpu">
  %xt = memref.alloc() : memref<1x3x5x6xf32, "gpu">
  lmhlo.transpose %x -> %xt {dimensions = array<i64: 0, 3, 1, 2>, name = "xt"} : (memref<1x5x6x3xf32, "gpu">) -> memref<1x3x5x6xf32, "gpu">
  memref.dealloc %x : memref<1x5x6x3xf32, "gpu">
  %y = memref.alloc() : memref<1x4x4x4xf32, "gpu">
  lmhlo.dynamic_conv %xt, %w, %p -> %y {name = "y", dim_labels = "bf01_oi01->bf01", window = #hlo.window<size = [2, 3]>} : (memref<1x3x5x6xf32, "gpu">, memref<4x3x2x3xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu">
  memref.dealloc %xt : memref<1x3x5x6xf32, "gpu">
  return %y : memref<1x4x4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @later
// CHECK:           lmhlo.abs
// CHECK-NEXT:      %y = memref.alloc
// CHECK-NEXT:      lmhlo.dynamic_conv %x, %w, %p -> %y {{.*}}dim_labels = "b01f_oi01->bf01"
// CHECK-NEXT:      memref.dealloc %x
// CHECK-NEXT:      return

// -----

// These stay: an argument that the program owns may be written into before the convolution; a filter that something else reads as well; what
// is written again behind the transpose.
func.func @stay(%x: memref<1x5x6x3xf32, "gpu"> {disc.donated}, %w: memref<2x3x3x4xf32, "gpu">, %p: memref<2x2xi32, "cpu">, %o: memref<4x3x2x3xf32, "gpu">) -> memref<1x4x4x4xf32, "gpu"> {
  %xt = memref.alloc() : memref<1x3x5x6xf32, "gpu">
  lmhlo.transpose %x -> %xt {dimensions = array<i64: 0, 3, 1, 2>, name = "xt"} : (memref<1x5x6x3xf32, "gpu">) -> memref<1x3x5x6xf32, "gpu">
  %wt = memref.alloc() : memref<4x3x2x3xf32, "gpu">
  lmhlo.transpose %w -> %wt {dimensions = array<i64: 3, 2, 0, 1>, name = "wt"} : (memref<2x3x3x4xf32, "gpu">) -> memref<4x3x2x3xf32, "gpu">
  lmhlo.abs %wt -> %o {name = "o"} : (memref<4x3x2x3xf32, "gpu">) -> memref<4x3x2x3xf32, "gpu">
  %y = memref.alloc() : memref<1x4x4x4xf32, "gpu">
  lmhlo.dynamic_conv %xt, %wt, %p -> %y {name = "y", dim_labels = "bf01_oi01->bf01", window = #hlo.window<size = [2, 3]>} : (memref<1x3x5x6xf32, "gpu">, memref<4x3x2x3xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu">
  memref.dealloc %wt : memref<4x3x2x3xf32, "gpu">
  memref.dealloc %xt : memref<1x3x5x6xf32, "gpu">
  %v = memref.alloc() : memref<2x3x3x4xf32, "gpu">
  lmhlo.abs %w -> %v {name = "v"} : (memref<2x3x3x4xf32, "gpu">) -> memref<2x3x3x4xf32, "gpu">
  %vt = memref.alloc() : memref<4x3x2x3xf32, "gpu">
  lmhlo.transpose %v -> %vt {dimensions = array<i64: 3, 2, 0, 1>, name = "vt"} : (memref<2x3x3x4xf32, "gpu">) -> memref<4x3x2x3xf32, "gpu">
  lmhlo.negate %w -> %v {name = "v2"} : (memref<2x3x3x4xf32, "gpu">) -> memref<2x3x3x4xf32, "gpu">
  lmhlo.dynamic_conv %y, %vt, %p -> %y {name = "z", dim_labels = "bf01_oi01->bf01", window = #hlo.window<size = [2, 3]>} : (memref<1x4x4x4xf32, "gpu">, memref<4x3x2x3xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu">
  return %y : memref<1x4x4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @stay
// CHECK:           lmhlo.transpose %x
// CHECK:           lmhlo.transpose %w
// CHECK:           lmhlo.dynamic_conv %xt, %wt
// CHECK:           lmhlo.transpose %v
// CHECK:           lmhlo.dynamic_conv %y, %vt

// -----

// The transpose of a result alone: the convolution writes it. The buffer is allocated earlier; readers behind are as they were.
func.func @result(%x: memref<1x5x7x3xf32, "gpu">, %w: memref<2x3x3x4xf32, "gpu">, %p: memref<2x2xi32, "cpu">) -> memref<1x4x5x4xf32, "gpu"> {
  %y = memref.alloc() : memref<1x4x4x5xf32, "gpu">
  lmhlo.dynamic_conv %x, %w, %p -> %y {name = "y", dim_labels = "b01f_01io->bf01", window = #hlo.window<size = [2, 3]>} : (memref<1x5x7x3xf32, "gpu">, memref<2x3x3x4xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x5xf32, "gpu">
  %yt = memref.alloc() : memref<1x4x5x4xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.transpose %y -> %yt {dimensions = array<i64: 0, 2, 3, 1>, name = "yt"} : (memref<1x4x4x5xf32, "gpu">) -> memref<1x4x5x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %y : memref<1x4x4x5xf32, "gpu">
  return %yt : memref<1x4x5x4xf32, "gpu">
}
// CHECK-LABEL: func.func @result
// CHECK-NEXT:      %yt = memref.alloc
// CHECK-NEXT:      lmhlo.dynamic_conv %x, %w, %p -> %yt {{.*}}dim_labels = "b01f_01io->b01f"
// CHECK-NEXT:      return %yt

// -----

// A result that something else reads too stays in its layout.
func.func @read(%x: memref<1x5x6x3xf32, "gpu">, %w: memref<2x3x3x4xf32, "gpu">, %p: memref<2x2xi32, "cpu">, %z: memref<1x4x4x4xf32, "gpu">) -> memref<1x4x4x4xf32, "gpu"> {
  %y = memref.alloc() : memref<1x4x4x4xf32, "gpu">
  lmhlo.dynamic_conv %x, %w, %p -> %y {name = "y", dim_labels = "b01f_01io->bf01", window = #hlo.window<size = [2, 3]>} : (memref<1x5x6x3xf32, "gpu">, memref<2x3x3x4xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu">
  %yt = memref.alloc() : memref<1x4x4x4xf32, "gpu">
  lmhlo.transpose %y -> %yt {dimensions = array<i64: 0, 2, 3, 1>, name = "yt"} : (memref<1x4x4x4xf32, "gpu">) -> memref<1x4x4x4xf32, "gpu">
  lmhlo.abs %y -> %z {name = "z"} : (memref<1x4x4x4xf32, "gpu">) -> memref<1x4x4x4xf32, "gpu">
  memref.dealloc %y : memref<1x4x4x4xf32, "gpu">
  return %yt : memref<1x4x4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @read
// CHECK:           lmhlo.transpose %y -> %yt

// -----

// The convolution reads what the same fusion pads; the buffer is freed behind it.
func.func @padded(%x: memref<1x4x6x3xf32, "gpu">, %w: memref<2x3x3x4xf32, "gpu">, %p: memref<2x2xi32, "cpu">, %z: memref<f32, "gpu">) -> memref<1x4x4x4xf32, "gpu"> {
  %xp = memref.alloc() : memref<1x5x6x3xf32, "gpu">
  %xt = memref.alloc() : memref<1x3x5x6xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.pad %x, %z -> %xp {name = "xp", padding = [array<i64: 0, 0, 0>, array<i64: 0, 1, 0>, array<i64: 0, 0, 0>, array<i64: 0, 0, 0>]} : (memref<1x4x6x3xf32, "gpu">, memref<f32, "gpu">) -> memref<1x5x6x3xf32, "gpu">
    lmhlo.transpose %xp -> %xt {dimensions = array<i64: 0, 3, 1, 2>, name = "xt"} : (memref<1x5x6x3xf32, "gpu">) -> memref<1x3x5x6xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %xp : memref<1x5x6x3xf32, "gpu">
  %y = memref.alloc() : memref<1x4x4x4xf32, "gpu">
  lmhlo.dynamic_conv %xt, %w, %p -> %y {name = "y", dim_labels = "bf01_01io->b01f", window = #hlo.window<size = [2, 3]>} : (memref<1x3x5x6xf32, "gpu">, memref<2x3x3x4xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<1x4x4x4xf32, "gpu">
  memref.dealloc %xt : memref<1x3x5x6xf32, "gpu">
  return %y : memref<1x4x4x4xf32, "gpu">
}
// CHECK-LABEL: func.func @padded
// CHECK:           lmhlo.pad %x, %z -> %xp
// CHECK-NEXT:      lmhlo.terminator
// CHECK:           lmhlo.dynamic_conv %xp, %w, %p -> %y {{.*}}dim_labels = "b01f_01io->b01f"
// CHECK-NEXT:      memref.dealloc %xp
// CHECK-NEXT:      return

// -----

// The transpose of a product: the operands change places, and their lists of dimensions with them.
func.func @product(%a: memref<5x7xf32, "gpu">, %b: memref<7x3xf32, "gpu">) -> memref<3x5xf32, "gpu"> {
  %c = memref.alloc() : memref<5x3xf32, "gpu">
  lmhlo.dot %a, %b -> %c {name = "c", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<5x7xf32, "gpu">, memref<7x3xf32, "gpu">) -> memref<5x3xf32, "gpu">
  %d = memref.alloc() : memref<3x5xf32, "gpu">
  lmhlo.transpose %c -> %d {dimensions = array<i64: 1, 0>, name = "d"} : (memref<5x3xf32, "gpu">) -> memref<3x5xf32, "gpu">
  memref.dealloc %c : memref<5x3xf32, "gpu">
  return %d : memref<3x5xf32, "gpu">
}
// CHECK-LABEL: func.func @product
// CHECK-NEXT:      %d = memref.alloc
// CHECK-NEXT:      lmhlo.dot %b, %a -> %d {{.*}}lhs_contracting_dims = array<i64: 0>{{.*}}rhs_contracting_dims = array<i64: 1>
// CHECK-NEXT:      return %d

// -----

// A product of batches has its batch first, so a result in which it is not stays; heads that only a product reads are read where they are.
func.func @heads(%q: memref<2x6x4x8xf32, "gpu">, %k: memref<2x4x6x8xf32, "gpu">) -> memref<2x6x4x6xf32, "gpu"> {
  %h = memref.alloc() : memref<2x4x6x8xf32, "gpu">
  lmhlo.transpose %q -> %h {dimensions = array<i64: 0, 2, 1, 3>, name = "h"} : (memref<2x6x4x8xf32, "gpu">) -> memref<2x4x6x8xf32, "gpu">
  %s = memref.alloc() : memref<2x4x6x6xf32, "gpu">
  lmhlo.dot %h, %k -> %s {name = "s", lhs_batch_dims = array<i64: 0, 1>, rhs_batch_dims = array<i64: 0, 1>, lhs_contracting_dims = array<i64: 3>, rhs_contracting_dims = array<i64: 3>} : (memref<2x4x6x8xf32, "gpu">, memref<2x4x6x8xf32, "gpu">) -> memref<2x4x6x6xf32, "gpu">
  memref.dealloc %h : memref<2x4x6x8xf32, "gpu">
  %t = memref.alloc() : memref<2x6x4x6xf32, "gpu">
  lmhlo.transpose %s -> %t {dimensions = array<i64: 0, 2, 1, 3>, name = "t"} : (memref<2x4x6x6xf32, "gpu">) -> memref<2x6x4x6xf32, "gpu">
  memref.dealloc %s : memref<2x4x6x6xf32, "gpu">
  return %t : memref<2x6x4x6xf32, "gpu">
}
// CHECK-LABEL: func.func @heads
// CHECK-NEXT:      %s = memref.alloc
// CHECK-NEXT:      lmhlo.dot %q, %k -> %s {{.*}}lhs_batch_dims = array<i64: 0, 2>, lhs_contracting_dims = array<i64: 3>
// CHECK:           lmhlo.transpose %s -> %t

// -----

// A loop over as many elements computes the transpose that it alone reads; what the transpose reads is freed behind the loop.
func.func @loop(%x: memref<4x6xf32, "gpu">, %z: memref<6x4xf32, "gpu">) {
  %a = memref.alloc() : memref<4x6xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<4x6xf32, "gpu">) -> memref<4x6xf32, "gpu">
  %t = memref.alloc() : memref<6x4xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "t", kind = "kLoop"}> ({
    lmhlo.transpose %a -> %t {dimensions = array<i64: 1, 0>, name = "t"} : (memref<4x6xf32, "gpu">) -> memref<6x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %a : memref<4x6xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.negate %t -> %z {name = "n"} : (memref<6x4xf32, "gpu">) -> memref<6x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %t : memref<6x4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @loop
// CHECK-NOT:       fusion_name = "t"
// CHECK:           "lmhlo.fusion"() <{fusion_name = "k"
// CHECK-NEXT:        lmhlo.transpose %a -> %t
// CHECK-NEXT:        lmhlo.negate %t -> %z
// CHECK-NEXT:        lmhlo.terminator
// CHECK:           memref.dealloc %a

// -----

// A reader of other elements, or of more of them, does not.
func.func @more(%x: memref<4x6xf32, "gpu">, %z: memref<2x6x4xf32, "gpu">) {
  %t = memref.alloc() : memref<6x4xf32, "gpu">
  lmhlo.transpose %x -> %t {dimensions = array<i64: 1, 0>, name = "t"} : (memref<4x6xf32, "gpu">) -> memref<6x4xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.broadcast %t -> %z {name = "n", dimensions = array<i64: 1, 2>} : (memref<6x4xf32, "gpu">) -> memref<2x6x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  memref.dealloc %t : memref<6x4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @more
// CHECK:           lmhlo.transpose %x -> %t
// CHECK-NEXT:      "lmhlo.fusion"()
