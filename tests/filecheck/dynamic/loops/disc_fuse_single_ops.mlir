// RUN: xla-emitters-opt -p disc-fuse-single-ops{target=cpu} %s | filecheck %s
// RUN: xla-emitters-opt -p disc-fuse-single-ops %s | filecheck %s --check-prefix GPU
// What has loops of its own is a fusion of one op, also one that updates an array in place. Others stay: a scatter whose updates are not known to fit, what is in a fusion already, bits
// of a state in words of 32 bits. A GPU leaves a sort to the library, if that sorts by its comparator.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @before {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.compare %a, %b {name = "r", direction = "LT", type = "FLOAT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  hlo.return %r : tensor<i1>
}
func.func @more(%x: memref<5xf32, "gpu">, %long: memref<2xui64, "gpu">, %short: memref<4xui32, "gpu">) {
  %s = memref.alloc() : memref<5xf32, "gpu">
  lmhlo.sort %x -> %s {name = "s", dimensions = array<i64: 0>, is_stable = true, to_apply = @before} : (memref<5xf32, "gpu">) -> memref<5xf32, "gpu">
  %l = memref.alloc() : memref<2xui64, "gpu">
  %b = memref.alloc() : memref<7xui32, "gpu">
  lmhlo.rng_bit_generator %long -> %l, %b {name = "b", algorithm = "rng_philox"} : (memref<2xui64, "gpu">) -> (memref<2xui64, "gpu">, memref<7xui32, "gpu">)
  %m = memref.alloc() : memref<4xui32, "gpu">
  %c = memref.alloc() : memref<7xui32, "gpu">
  lmhlo.rng_bit_generator %short -> %m, %c {name = "c", algorithm = "rng_philox"} : (memref<4xui32, "gpu">) -> (memref<4xui32, "gpu">, memref<7xui32, "gpu">)
  return
}
func.func @main(%x: memref<5xf32, "gpu">, %i: memref<?x1xi32, "gpu"> {disc.sizes = ["n", "1"]}, %u: memref<?xf32, "gpu"> {disc.sizes = ["n"]}, %v: memref<?xf32, "gpu"> {disc.sizes = ["m"]}, %zero: memref<f32, "gpu">) {
  %w = memref.alloc() : memref<4xf32, "gpu">
  lmhlo.reduce_window %x, %zero -> %w {name = "w", to_apply = @add, window = #hlo.window<size = [2]>} : (memref<5xf32, "gpu">, memref<f32, "gpu">) -> memref<4xf32, "gpu">
  %y = memref.alloc() : memref<5xf32, "gpu">
  lmhlo.scatter %x, %i, %u -> %y {name = "y", to_apply = @add, update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (memref<5xf32, "gpu">, memref<?x1xi32, "gpu">, memref<?xf32, "gpu">) -> memref<5xf32, "gpu">
  %z = memref.alloc() : memref<5xf32, "gpu">
  lmhlo.scatter %x, %i, %v -> %z {name = "z", to_apply = @add, update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (memref<5xf32, "gpu">, memref<?x1xi32, "gpu">, memref<?xf32, "gpu">) -> memref<5xf32, "gpu">
  %n = memref.alloc() : memref<5xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
    lmhlo.negate %x -> %n {name = "n"} : (memref<5xf32, "gpu">) -> memref<5xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
func.func @in_place(%x: memref<5xf32, "gpu">, %i: memref<3x1xi32, "gpu">, %u: memref<3xf32, "gpu">) {
  lmhlo.scatter %x, %i, %u -> %x {name = "y", to_apply = @add, update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (memref<5xf32, "gpu">, memref<3x1xi32, "gpu">, memref<3xf32, "gpu">) -> memref<5xf32, "gpu">
  return
}
func.func @into_an_argument(%x: memref<5xf32, "gpu">, %i: memref<3x1xi32, "gpu">, %u: memref<3xf32, "gpu">, %y: memref<5xf32, "gpu">) {
  lmhlo.scatter %x, %i, %u -> %y {name = "y", to_apply = @add, update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (memref<5xf32, "gpu">, memref<3x1xi32, "gpu">, memref<3xf32, "gpu">) -> memref<5xf32, "gpu">
  return
}
// CHECK-LABEL: func.func @more
// CHECK:         "lmhlo.fusion"() <{fusion_name = "more_kSingleOp_sort_0", kind = "kSingleOp"}> ({
// CHECK-NEXT:      lmhlo.sort %x -> %s
// CHECK:         "lmhlo.fusion"() <{fusion_name = "more_kSingleOp_rng_bit_generator_1", kind = "kSingleOp"}> ({
// CHECK-NEXT:      lmhlo.rng_bit_generator %long -> %l, %b
// CHECK:         %c = memref.alloc()
// CHECK-NEXT:    lmhlo.rng_bit_generator %short -> %m, %c
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.fusion"() <{fusion_name = "main_kSingleOp_reduce_window_0", kind = "kSingleOp"}> ({
// CHECK-NEXT:      lmhlo.reduce_window %x, %zero -> %w
// CHECK-NEXT:      lmhlo.terminator
// CHECK-NEXT:    }) {disc.device = "gpu"} : () -> ()
// CHECK:         "lmhlo.fusion"() <{fusion_name = "main_kSingleOp_scatter_1", kind = "kSingleOp"}> ({
// CHECK-NEXT:      lmhlo.scatter %x, %i, %u -> %y
// CHECK-NEXT:      lmhlo.terminator
// CHECK:         %z = memref.alloc()
// CHECK-NEXT:    lmhlo.scatter %x, %i, %v -> %z
// CHECK:         "lmhlo.fusion"() <{fusion_name = "k", kind = "kLoop"}> ({
// CHECK-NEXT:      lmhlo.negate
// CHECK-LABEL: func.func @in_place
// CHECK:         "lmhlo.fusion"() <{fusion_name = "in_place_kSingleOp_scatter_0", kind = "kSingleOp"}> ({
// CHECK-NEXT:      lmhlo.scatter %x, %i, %u -> %x
// CHECK-LABEL: func.func @into_an_argument
// CHECK-NEXT:    lmhlo.scatter %x, %i, %u -> %y
// GPU-LABEL: func.func @more
// GPU:         %s = memref.alloc()
// GPU-NEXT:    lmhlo.sort %x -> %s
// GPU:         "lmhlo.fusion"() <{fusion_name = "more_kSingleOp_rng_bit_generator_0", kind = "kSingleOp"}> ({
// GPU-LABEL: func.func @main
// GPU:         "lmhlo.fusion"() <{fusion_name = "main_kSingleOp_reduce_window_0", kind = "kSingleOp"}> ({
// GPU:         "lmhlo.fusion"() <{fusion_name = "main_kSingleOp_scatter_1", kind = "kSingleOp"}> ({
