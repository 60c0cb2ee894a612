// RUN: xla-emitters-opt --split-input-file -p disc-fuse-on-buffer %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-fuse-on-buffer --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// Softmax: both reductions of rows and all that reads them; %m and %s are kept by the block that has the row.
hlo.computation @max {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.maximum %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["b", "s"]}, %i: memref<f32, "gpu">, %n: index, %k: index, %shape: memref<2xi32, "cpu">) -> memref<?x?xf32, "gpu"> {
  %m = memref.alloc(%n) {disc.sizes = ["b"]} : memref<?xf32, "gpu">
  lmhlo.reduce %x, %i -> %m {name = "m", dimensions = array<i64: 1>, to_apply = @max} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
  %mb = memref.alloc(%n, %k) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  lmhlo.dynamic_broadcast_in_dim %m, %shape -> %mb {name = "mb", dimensions = array<i64: 0>} : (memref<?xf32, "gpu">, memref<2xi32, "cpu">) -> memref<?x?xf32, "gpu">
  %d = memref.alloc(%n, %k) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  lmhlo.subtract %x, %mb -> %d {name = "d"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  %e = memref.alloc(%n, %k) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  lmhlo.exponential %d -> %e {name = "e"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  %s = memref.alloc(%n) {disc.sizes = ["b"]} : memref<?xf32, "gpu">
  lmhlo.reduce %e, %i -> %s {name = "s", dimensions = array<i64: 1>, to_apply = @sum} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
  %sb = memref.alloc(%n, %k) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  lmhlo.dynamic_broadcast_in_dim %s, %shape -> %sb {name = "sb", dimensions = array<i64: 0>} : (memref<?xf32, "gpu">, memref<2xi32, "cpu">) -> memref<?x?xf32, "gpu">
  %y = memref.alloc(%n, %k) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  lmhlo.divide %e, %sb -> %y {name = "y"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
  memref.dealloc %m : memref<?xf32, "gpu">
  return %y : memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.fusion"() <{fusion_name = "main_kStitch_reduce_0", kind = "kStitch"}> ({
// CHECK-NEXT:      lmhlo.reduce %x, %i -> %m
// CHECK:           lmhlo.divide
// CHECK-NEXT:      lmhlo.terminator
// CHECK-NEXT:    }) {disc.device = "gpu", disc.shared = ["m", "s"]}

// -----

// A mean: the quotient reads the sum of its own row.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> memref<8xf32, "gpu"> {
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %c = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.constant -> %c {name = "c", value = dense<4.0> : tensor<8xf32>} : () -> memref<8xf32, "gpu">
  %q = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.divide %r, %c -> %q {name = "q"} : (memref<8xf32, "gpu">, memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  memref.dealloc %r : memref<8xf32, "gpu">
  memref.dealloc %c : memref<8xf32, "gpu">
  return %q : memref<8xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         kind = "kStitch"
// CHECK-NEXT:      lmhlo.reduce
// CHECK-NEXT:      lmhlo.constant
// CHECK-NEXT:      lmhlo.divide
// CHECK-NEXT:      lmhlo.terminator
// CHECK-NEXT:    }) {disc.device = "gpu", disc.shared = ["r"]}

// -----

// A row's sum along the wrong dimension: element (i, j) would need the sum of row j.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<4x4xf32, "gpu">, %i: memref<f32, "gpu">) -> memref<4x4xf32, "gpu"> {
  %r = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<4x4xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  %b = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.broadcast %r -> %b {name = "b", dimensions = array<i64: 1>} : (memref<4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  %q = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.divide %x, %b -> %q {name = "q"} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  memref.dealloc %r : memref<4xf32, "gpu">
  memref.dealloc %b : memref<4x4xf32, "gpu">
  return %q : memref<4x4xf32, "gpu">
}
// REMARK: not fused with r, which it reads: b (broadcast) moves what a row gave out of its row
// CHECK-LABEL: func.func @main
// CHECK:         kind = "kRowReduction"
// CHECK:         kind = "kLoop"
// CHECK-NEXT:      lmhlo.broadcast
// CHECK-NEXT:      lmhlo.divide

// -----

// Reversed rows read other rows' sums; so do sums of two rows each, whose rows are others.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> (memref<8xf32, "gpu">, memref<4xf32, "gpu">) {
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %v = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reverse %r -> %v {name = "v", dimensions = array<i64: 0>} : (memref<8xf32, "gpu">) -> memref<8xf32, "gpu">
  %f = memref.alloc() : memref<4x2xf32, "gpu">
  lmhlo.reshape %r -> %f {name = "f"} : (memref<8xf32, "gpu">) -> memref<4x2xf32, "gpu">
  %q = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce %f, %i -> %q {name = "q", dimensions = array<i64: 1>, to_apply = @sum} : (memref<4x2xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %r : memref<8xf32, "gpu">
  memref.dealloc %f : memref<4x2xf32, "gpu">
  return %v, %q : memref<8xf32, "gpu">, memref<4xf32, "gpu">
}
// REMARK: v (reverse) moves what a row gave out of its row
// REMARK: the rows of q are not known to be those of r: 8 x 4
// CHECK-LABEL: func.func @main
// CHECK:         fusion_name = "main_kRowReduction_reduce_0"
// CHECK-NOT:     kStitch

// -----

// A reduction of columns is in no stitched kernel: no block has all rows.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> memref<4xf32, "gpu"> {
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %b = memref.alloc() : memref<8x4xf32, "gpu">
  lmhlo.broadcast %r -> %b {name = "b", dimensions = array<i64: 0>} : (memref<8xf32, "gpu">) -> memref<8x4xf32, "gpu">
  %c = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce %b, %i -> %c {name = "c", dimensions = array<i64: 0>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  memref.dealloc %r : memref<8xf32, "gpu">
  memref.dealloc %b : memref<8x4xf32, "gpu">
  return %c : memref<4xf32, "gpu">
}
// REMARK: a reduction of columns needs all rows, which no one block has
// CHECK-LABEL: func.func @main
// CHECK:         kind = "kRowReduction"
// CHECK:         kind = "kColReduction"

// -----

// A reduction that is returned in another shape stays one of rows: its second name needs no kernel.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<8x4xf32, "gpu">, %i: memref<f32, "gpu">) -> memref<2x4xf32, "gpu"> {
  %r = memref.alloc() : memref<8xf32, "gpu">
  lmhlo.reduce %x, %i -> %r {name = "r", dimensions = array<i64: 1>, to_apply = @sum} : (memref<8x4xf32, "gpu">, memref<f32, "gpu">) -> memref<8xf32, "gpu">
  %f = memref.alloc() : memref<2x4xf32, "gpu">
  lmhlo.reshape %r -> %f {name = "f"} : (memref<8xf32, "gpu">) -> memref<2x4xf32, "gpu">
  memref.dealloc %r : memref<8xf32, "gpu">
  return %f : memref<2x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         kind = "kRowReduction"
// CHECK-NEXT:      lmhlo.reduce
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         lmhlo.reshape %r -> %f
