// RUN: xla-emitters-opt --split-input-file -p 'disc-fuse-on-buffer{stitch=false}' %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p 'disc-fuse-on-buffer{stitch=false}' --remarks %s 2>&1 | filecheck %s --check-prefix REMARK
// RUN: xla-emitters-opt --split-input-file -p 'disc-fuse-on-buffer{stitch=false mix_reductions=true}' %s | filecheck %s --check-prefix MIXED

// The seed's kInput: an elementwise op whose result two reductions read, and which is a result itself.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %n: index, %m: index) -> (memref<?x?xf32, "gpu">, memref<?xf32, "gpu">, memref<?xf32, "gpu">) {
  %a = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  %r = memref.alloc(%n) : memref<?xf32, "gpu">
  lmhlo.reduce %a, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
  %e = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  lmhlo.exponential %a -> %e {name = "e"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  %q = memref.alloc(%n) : memref<?xf32, "gpu">
  lmhlo.reduce %e, %i -> %q {name = "q", dimensions = array<i64: 1>, to_apply = @sum} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
  memref.dealloc %e : memref<?x?xf32, "gpu">
  return %a, %r, %q : memref<?x?xf32, "gpu">, memref<?xf32, "gpu">, memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.fusion"() <{fusion_name = "main_kRowReduction_reduce_0", kind = "kRowReduction"}> ({
// CHECK-NEXT:      lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.reduce %a, %i -> %r
// CHECK-NEXT:      lmhlo.exponential %a -> %e
// CHECK-NEXT:      lmhlo.reduce %e, %i -> %q
// CHECK-NEXT:      lmhlo.terminator
// CHECK-NOT:     "lmhlo.fusion"()

// -----

// A reduction has no reader inside: a block has not the other blocks' rows, and of its own only the last thread knows the sum.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> memref<8xf32, "gpu"> {
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %e = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.exponential %r -> %e {name = "e"} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  memref.dealloc %r : memref<8xf32, "gpu">
  return %e : memref<8xf32, "gpu">
}
// REMARK: skipped lmhlo.exponential: not fused with r, which it reads: the reduction r would have a reader inside
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kRowReduction_reduce_0"
// CHECK:         fusion_name = "main_kLoop_exponential_1"

// -----

// Rows and columns are two kernels, unless the option says otherwise.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> (memref<8xf32, "gpu">, memref<4xf32, "gpu">) {
  %a = memref.alloc() : memref<8x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<8x4xf32, "gpu">) -> memref<8x4xf32, "gpu">
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %a, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce %a, %i -> %c {name = "c", dimensions = array<i64: 0>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %a : memref<8x4xf32, "gpu">
  return %r, %c : memref<8xf32, "gpu">, memref<4xf32, "gpu">
}
// REMARK: skipped lmhlo.reduce: not fused with a, which it reads: one kernel does not reduce rows and columns
// CHECK-LABEL: func.func @main
// CHECK:         kind = "kColReduction"
// CHECK-NEXT:      lmhlo.abs
// CHECK:         kind = "kRowReduction"
// MIXED-LABEL: func.func @main
// MIXED-LABEL: func.func @main
// MIXED-LABEL: func.func @main
// MIXED:         "lmhlo.fusion"() <{fusion_name = "main_kRowReduction_reduce_0", kind = "kRowReduction"}> ({
// MIXED-NEXT:      lmhlo.abs
// MIXED-NEXT:      lmhlo.reduce
// MIXED-NEXT:      lmhlo.reduce
// MIXED-NEXT:      lmhlo.terminator

// -----

// Two reductions are one kernel only if what they read has one shape: as many elements are not enough.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> (memref<8xf32, "gpu">, memref<4xf32, "gpu">) {
  %a = memref.alloc() : memref<8x4xf32, "gpu">
  lmhlo.abs %x -> %a {name = "a"} : (memref<8x4xf32, "gpu">) -> memref<8x4xf32, "gpu">
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %a, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %f = memref.alloc() : memref<4x8xf32, "gpu">
  lmhlo.reshape %a -> %f {name = "f"} : (memref<8x4xf32, "gpu">) -> memref<4x8xf32, "gpu">
  %g = memref.alloc() : memref<4x8xf32, "gpu">
  lmhlo.negate %f -> %g {name = "g"} : (memref<4x8xf32, "gpu">) -> memref<4x8xf32, "gpu">
  %q = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce %g, %i -> %q {name = "q", dimensions = array<i64: 1>, to_apply = @sum} : (memref<4x8xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %a : memref<8x4xf32, "gpu">
  memref.dealloc %f : memref<4x8xf32, "gpu">
  memref.dealloc %g : memref<4x8xf32, "gpu">
  return %r, %q : memref<8xf32, "gpu">, memref<4xf32, "gpu">
}
// REMARK: the reductions r and q read matrices that are not known to have one shape
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: kind = "kRowReduction"
// CHECK-NOT:     kind =

// -----

// A reduction of columns has no transpose as a second result, one of rows has.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<2x2x2x2xf32, "gpu">, %i: memref<f32, "gpu">) -> (memref<2x2x2x2xf32, "gpu">, memref<4xf32, "gpu">) {
  %t = memref.alloc() : memref<2x2x2x2xf32, "gpu">
  lmhlo.transpose %x -> %t {name = "t", dimensions = array<i64: 0, 2, 1, 3>} : (memref<2x2x2x2xf32, "gpu">) -> memref<2x2x2x2xf32, "gpu">
  %f = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.reshape %t -> %f {name = "f"} : (memref<2x2x2x2xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce %f, %i -> %c {name = "c", dimensions = array<i64: 0>, to_apply = @sum} : (memref<4x4xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %f : memref<4x4xf32, "gpu">
  return %t, %c : memref<2x2x2x2xf32, "gpu">, memref<4xf32, "gpu">
}
// REMARK: a reduction of columns has no transpose beside it
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kLoop_transpose_0"
// CHECK:         fusion_name = "main_kColReduction_reduce_1"

// -----

// A whole array of rank 1 is one row. Neither rows nor columns: no kernel of ours.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8xf32, "gpu">, %y: memref<2x2x2xf32, "gpu">, %i: memref<f32, "gpu">) -> (memref<f32, "gpu">, memref<2x2xf32, "gpu">) {
  %r = memref.alloc() : memref<f32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 0>, to_apply = @sum} : (memref<8xf32, "gpu">, memref<f32, "gpu">) -> memref<f32, "gpu">
  %m = memref.alloc() : memref<2x2xf32, "gpu">
  lmhlo.reduce %y, %i -> %m {name = "m", dimensions = array<i64: 1>, to_apply = @sum} : (memref<2x2x2xf32, "gpu">, memref<f32, "gpu">) -> memref<2x2xf32, "gpu">
  return %r, %m : memref<f32, "gpu">, memref<2x2xf32, "gpu">
}
// REMARK: skipped lmhlo.reduce: it reduces neither rows nor columns of a matrix
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kRowReduction_reduce_0"
// CHECK-NEXT:      lmhlo.reduce %x
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         lmhlo.reduce %y
