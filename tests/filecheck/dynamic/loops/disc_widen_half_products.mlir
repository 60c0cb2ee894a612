// RUN: xla-emitters-opt -p disc-widen-half-products %s | filecheck %s
// Factors of 16 bits become f32, one that is read twice once; a result of 16 bits is rounded. Other types stay, and products with an algorithm.
// CHECK-LABEL: func.func @product
// CHECK:         %[[A:.*]] = memref.alloc(%{{.*}}) {disc.sizes = ["n", "4"]} : memref<?x4xf32, "gpu">
// CHECK-NEXT:    "lmhlo.fusion"() <{fusion_name = "product_kLoop_convert_half_0_0", kind = "kLoop"}> ({
// CHECK-NEXT:      lmhlo.convert %x -> %[[A]] {{.*}} : (memref<?x4xbf16, "gpu">) -> memref<?x4xf32, "gpu">
// CHECK:         %[[B:.*]] = memref.alloc() : memref<4x3xf32, "gpu">
// CHECK:           lmhlo.convert %w -> %[[B]] {{.*}} : (memref<4x3xf16, "gpu">) -> memref<4x3xf32, "gpu">
// CHECK:         %[[Y:.*]] = memref.alloc(%{{.*}}) {disc.sizes = ["n", "3"]} : memref<?x3xf32, "gpu">
// CHECK-NEXT:    lmhlo.dot %[[A]], %[[B]] -> %[[Y]] {{.*}} : (memref<?x4xf32, "gpu">, memref<4x3xf32, "gpu">) -> memref<?x3xf32, "gpu">
// CHECK-NEXT:    "lmhlo.fusion"() <{fusion_name = "product_kLoop_convert_half_0_2", kind = "kLoop"}> ({
// CHECK-NEXT:      lmhlo.convert %[[Y]] -> %y {{.*}} : (memref<?x3xf32, "gpu">) -> memref<?x3xbf16, "gpu">
// CHECK:         memref.dealloc %[[A]]
// CHECK-NEXT:    memref.dealloc %[[B]]
// CHECK-NEXT:    memref.dealloc %[[Y]]
func.func @product(%x: memref<?x4xbf16, "gpu"> {disc.sizes = ["n", "4"]}, %w: memref<4x3xf16, "gpu">, %n: index) {
  %y = memref.alloc(%n) {disc.sizes = ["n", "3"]} : memref<?x3xbf16, "gpu">
  lmhlo.dot %x, %w -> %y {name = "y", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<?x4xbf16, "gpu">, memref<4x3xf16, "gpu">) -> memref<?x3xbf16, "gpu">
  return
}
// CHECK-LABEL: func.func @squared
// CHECK-COUNT-1: lmhlo.convert
// CHECK:         lmhlo.dot %[[A:.*]], %[[A]] -> %y
// CHECK-NOT:     lmhlo.convert
// CHECK:         memref.dealloc %[[A]]
func.func @squared(%x: memref<4x4xf16, "gpu">) {
  %y = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.dot %x, %x -> %y {name = "y", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<4x4xf16, "gpu">, memref<4x4xf16, "gpu">) -> memref<4x4xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @left
// CHECK-NOT:     lmhlo.convert
func.func @left(%x: memref<4x4xf16, "gpu">, %z: memref<4x4xf32, "gpu">) {
  %y = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.dot %x, %x -> %y {name = "y", algorithm = "dot_f16_f16_f32", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<4x4xf16, "gpu">, memref<4x4xf16, "gpu">) -> memref<4x4xf32, "gpu">
  %v = memref.alloc() : memref<4x4xf32, "gpu">
  lmhlo.dot %z, %z -> %v {name = "v", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<4x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<4x4xf32, "gpu">
  return
}
