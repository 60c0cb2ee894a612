// RUN: xla-emitters-opt --split-input-file -p disc-lower-to-library-calls %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-lower-to-library-calls --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The seed's product: two flags say which side is transposed, the third whether the right side is a constant.
func.func @main(%ctx: !disc_ral.context, %a: memref<?x?xf32, "gpu">, %b: memref<?x?xf32, "gpu">, %o: memref<?x?xf32, "gpu">) {
  lmhlo.dot %a, %b -> %o {name = "d", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  return
}
// CHECK:      %stream = disc_ral.stream %ctx
// CHECK-NEXT: %[[L:.*]] = arith.constant false
// CHECK-NEXT: %[[R:.*]] = arith.constant false
// CHECK-NEXT: %[[C:.*]] = arith.constant false
// CHECK-NEXT: disc_ral.dispatch "ral_gemm" on "gpu"(%ctx, %stream, %a, %b, %o, %[[L]], %[[R]], %[[C]]) : (!disc_ral.context, !disc_ral.stream, memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">, i1, i1, i1) -> ()

// -----

// Both sides transposed, in batches, and a constant on the right.
func.func @main(%ctx: !disc_ral.context, %a: memref<2x3x?xf16, "gpu">, %o: memref<2x?x4xf16, "gpu">) {
  %b = memref.alloc() : memref<2x4x3xf16, "gpu">
  lmhlo.constant -> %b {name = "b", value = dense<1.0> : tensor<2x4x3xf16>} : () -> memref<2x4x3xf16, "gpu">
  lmhlo.dot %a, %b -> %o {name = "d", lhs_batch_dims = array<i64: 0>, rhs_batch_dims = array<i64: 0>, lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 2>} : (memref<2x3x?xf16, "gpu">, memref<2x4x3xf16, "gpu">) -> memref<2x?x4xf16, "gpu">
  return
}
// CHECK:      arith.constant true
// CHECK-NEXT: arith.constant true
// CHECK-NEXT: arith.constant true
// CHECK-NEXT: disc_ral.dispatch "ral_gemm"

// -----

// Two dimensions that are summed, and batches that are not first, are no product of matrices.
func.func @main(%ctx: !disc_ral.context, %a: memref<2x3x4xf32, "gpu">, %o: memref<2x2xf32, "gpu">, %q: memref<4x2x2xf32, "gpu">) {
  lmhlo.dot %a, %a -> %o {name = "two", lhs_contracting_dims = array<i64: 1, 2>, rhs_contracting_dims = array<i64: 1, 2>} : (memref<2x3x4xf32, "gpu">, memref<2x3x4xf32, "gpu">) -> memref<2x2xf32, "gpu">
  lmhlo.dot %a, %a -> %q {name = "last", lhs_batch_dims = array<i64: 2>, rhs_batch_dims = array<i64: 2>, lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 1>} : (memref<2x3x4xf32, "gpu">, memref<2x3x4xf32, "gpu">) -> memref<4x2x2xf32, "gpu">
  return
}
// CHECK:      lmhlo.dot
// CHECK-NEXT: lmhlo.dot
// REMARK:     skipped lmhlo.dot: its batch dimensions are not all but the last two

// -----

// A convolution's metadata: where batch, features and spatial dimensions are in input, kernel and result; strides, dilations, constant or not.
func.func @main(%ctx: !disc_ral.context, %x: memref<?x8x8x3xf32, "gpu">, %w: memref<3x3x3x4xf32, "gpu">, %p: memref<2x2xi32, "cpu">, %o: memref<?x?x?x4xf32, "gpu">) {
  lmhlo.dynamic_conv %x, %w, %p -> %o {name = "c", dim_labels = "b01f_01io->b01f", window = #hlo.window<size = [3, 3], stride = [2, 1]>} : (memref<?x8x8x3xf32, "gpu">, memref<3x3x3x4xf32, "gpu">, memref<2x2xi32, "cpu">) -> memref<?x?x?x4xf32, "gpu">
  return
}
// CHECK: disc_ral.dispatch "ral_conv" on "gpu"(%ctx, %stream, %x, %w, %p, %o) config array<i64: 0, 3, 1, 2, 2, 3, 0, 1, 0, 3, 1, 2, 2, 1, 1, 1, 0>

// -----

// Copies by where they go: between host and device the stream is waited for. A second name is counted by the runtime.
func.func @main(%ctx: !disc_ral.context, %g: memref<4xf32, "gpu">, %h: memref<4xf32, "cpu">, %n: index) {
  lmhlo.copy %h -> %g {name = "up"} : (memref<4xf32, "cpu">) -> memref<4xf32, "gpu">
  lmhlo.copy %g -> %h {name = "down"} : (memref<4xf32, "gpu">) -> memref<4xf32, "cpu">
  lmhlo.copy %g -> %g {name = "on"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  %v = lmhlo.inc_ref %g(%n) : memref<4xf32, "gpu"> -> memref<?x2xf32, "gpu">
  return
}
// CHECK:      disc_ral.dispatch "h2d" on "gpu"(%ctx, %stream, %h, %g)
// CHECK-NEXT: disc_ral.dispatch "sync_on_stream" on "gpu"(%ctx, %stream)
// CHECK-NEXT: disc_ral.dispatch "d2h" on "gpu"(%ctx, %stream, %g, %h)
// CHECK-NEXT: disc_ral.dispatch "sync_on_stream" on "gpu"(%ctx, %stream)
// CHECK-NEXT: disc_ral.dispatch "d2d" on "gpu"(%ctx, %stream, %g, %g)
// CHECK-NEXT: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT: %v = disc_ral.dispatch "inc_ref" on "gpu"(%ctx, %g, %n, %[[TWO]]) : (!disc_ral.context, memref<4xf32, "gpu">, index, index) -> memref<?x2xf32, "gpu">
