// memref.global
memref.global "private" constant @g : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]> {alignment = 64}
memref.global "private" @u : memref<4xf32> = uninitialized
func.func @f() -> memref<4xf32> {
  %0 = memref.get_global @g : memref<4xf32>
  return %0 : memref<4xf32>
}
// -----
// memref: load, store, alloc, alloca
func.func @f(%x: index, %f: f32, %m: memref<64xf32>) {
  %0 = memref.load %m[%x] : memref<64xf32>
  %1 = memref.load %m[%x] {nontemporal = true} : memref<64xf32>
  %2 = memref.load %m[%x] {alignment = 4 : i64} : memref<64xf32>
  memref.store %f, %m[%x] : memref<64xf32>
  memref.store %f, %m[%x] {nontemporal = true} : memref<64xf32>
  memref.store %f, %m[%x] {alignment = 4 : i64} : memref<64xf32>
  %6 = memref.alloc() : memref<4xf32>
  %7 = memref.alloc(%x) {alignment = 16 : i64} : memref<?xf32>
  %8 = memref.alloca() : memref<4xf32, 3>
  %9 = memref.alloca(%x) : memref<?xf32>
  return
}
// -----
// memref: alloc, dealloc, dim, rank, cast, copy, subview, reinterpret_cast
func.func @f(%x: index, %m: memref<64xf32>) {
  %0 = memref.alloc(%x)[%x] : memref<?xf32, strided<[?]>>
  memref.dealloc %m : memref<64xf32>
  %2 = memref.dim %m, %x : memref<64xf32>
  %3 = memref.rank %m : memref<64xf32>
  %4 = memref.cast %m : memref<64xf32> to memref<?xf32>
  memref.copy %m, %m : memref<64xf32> to memref<64xf32>
  %6 = memref.subview %m[4] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: 4>>
  %7 = memref.subview %m[%x] [8] [2] : memref<64xf32> to memref<8xf32, strided<[2], offset: ?>>
  %8 = memref.reinterpret_cast %m to offset: [0], sizes: [8, 8], strides: [8, 1] : memref<64xf32> to memref<8x8xf32>
  %9 = memref.reinterpret_cast %m to offset: [%x], sizes: [8, %x], strides: [8, 1] : memref<64xf32> to memref<8x?xf32, strided<[8, 1], offset: ?>>
  return
}
// -----
// memref: expand_shape, collapse_shape, view, memory_space_cast, atomic_rmw, assume_alignment, extract_aligned_pointer_as_index, extract_strided_metadata
func.func @f(%x: index, %f: f32, %m: memref<64xf32>, %m2: memref<8x8xf32>, %mb: memref<256xi8>) {
  %0 = memref.expand_shape %m [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
  %1 = memref.collapse_shape %m2 [[0, 1]] : memref<8x8xf32> into memref<64xf32>
  %2 = memref.view %mb[%x][] : memref<256xi8> to memref<64xf32>
  %3 = memref.memory_space_cast %m : memref<64xf32> to memref<64xf32, 1>
  %4 = memref.atomic_rmw addf %f, %m[%x] : (f32, memref<64xf32>) -> f32
  %5 = memref.assume_alignment %m, 16 : memref<64xf32>
  %6 = memref.extract_aligned_pointer_as_index %m : memref<64xf32> -> index
  memref.extract_strided_metadata %m : memref<64xf32> -> memref<f32>, index, index, index
  return
}
