// vector elements
func.func @f(%a: f32, %b: f32) -> vector<2xf32> {
  %0 = vector.from_elements %a, %b : vector<2xf32>
  %1:2 = vector.to_elements %0 : vector<2xf32>
  %2 = vector.from_elements %1#1, %1#0 : vector<2xf32>
  return %2 : vector<2xf32>
}
// -----
// vector shapes
func.func @f(%v: vector<4x2xf32>, %i: index) -> vector<8xf32> {
  %0 = vector.shape_cast %v : vector<4x2xf32> to vector<8xf32>
  %1 = vector.extract_strided_slice %0 {offsets = [2], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  %2 = vector.insert_strided_slice %1, %0 {offsets = [2], strides = [1]} : vector<4xf32> into vector<8xf32>
  %3 = vector.constant_mask [4] : vector<8xi1>
  %4 = vector.transpose %v, [1, 0] : vector<4x2xf32> to vector<2x4xf32>
  %5 = vector.interleave %0, %0 : vector<8xf32> -> vector<16xf32>
  %6 = vector.shuffle %0, %2 [0, 2, 4, 6, 8, 10, 12, 14] : vector<8xf32>, vector<8xf32>
  %7 = vector.extract %v[1] : vector<2xf32> from vector<4x2xf32>
  %8 = vector.broadcast %i : index to vector<4xindex>
  %9 = vector.step : vector<4xindex>
  %10 = vector.fma %0, %2, %6 : vector<8xf32>
  return %6 : vector<8xf32>
}
// -----
// vector.gather
func.func @f(%m: memref<?xf32>, %iv: vector<4xi32>, %mask: vector<4xi1>, %p: vector<4xf32>, %c: index) -> vector<4xf32> {
  %0 = vector.gather %m[%c] [%iv], %mask, %p : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %1 = vector.create_mask %c : vector<4xi1>
  %2 = vector.maskedload %m[%c], %1, %p : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %3 = vector.load %m[%c] : memref<?xf32>, vector<4xf32>
  vector.store %3, %m[%c] : memref<?xf32>, vector<4xf32>
  vector.maskedstore %m[%c], %1, %3 : memref<?xf32>, vector<4xi1>, vector<4xf32>
  vector.scatter %m[%c] [%iv], %mask, %3 : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  return %0 : vector<4xf32>
}
// -----
// vector transfer and reductions
func.func @f(%t: tensor<64xf32>, %i: index, %m: vector<4xi1>) -> (tensor<64xf32>, f32) {
  %p = arith.constant 0.0 : f32
  %0 = vector.transfer_read %t[%i], %p {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %1 = vector.transfer_read %t[%i], %p, %m : tensor<64xf32>, vector<4xf32>
  %2 = vector.transfer_write %1, %t[%i], %m {in_bounds = [true]} : vector<4xf32>, tensor<64xf32>
  %3 = vector.reduction <add>, %0 : vector<4xf32> into f32
  %4 = vector.reduction <maximumf>, %0, %3 fastmath<nnan> : vector<4xf32> into f32
  %5 = vector.bitcast %0 : vector<4xf32> to vector<8xi16>
  %6 = vector.extract %0[%i] : f32 from vector<4xf32>
  %7 = vector.insert %6, %0[%i] : f32 into vector<4xf32>
  return %2, %4 : tensor<64xf32>, f32
}
// -----
// vector: shape_cast, extract_strided_slice, insert_strided_slice, constant_mask, create_mask, transpose, interleave, deinterleave, step
func.func @f(%x: index, %fv: vector<4xf32>, %v42: vector<4x2xf32>, %v8: vector<8xf32>) {
  %0 = vector.shape_cast %v42 : vector<4x2xf32> to vector<8xf32>
  %1 = vector.shape_cast %v42 {a} : vector<4x2xf32> to vector<2x4xf32>
  %2 = vector.extract_strided_slice %v42 {offsets = [1], sizes = [2], strides = [1]} : vector<4x2xf32> to vector<2x2xf32>
  %3 = vector.insert_strided_slice %fv, %v8 {offsets = [2], strides = [1]} : vector<4xf32> into vector<8xf32>
  %4 = vector.constant_mask [2, 1] : vector<4x2xi1>
  %5 = vector.create_mask %x, %x : vector<4x2xi1>
  %6 = vector.transpose %v42, [1, 0] : vector<4x2xf32> to vector<2x4xf32>
  %7 = vector.interleave %fv, %fv : vector<4xf32> -> vector<8xf32>
  vector.deinterleave %v8 : vector<8xf32> -> vector<4xf32>
  %9 = vector.step : vector<4xindex>
  return
}
// -----
// vector: fma, broadcast, extract
func.func @f(%x: index, %f: f32, %fv: vector<4xf32>, %v42: vector<4x2xf32>, %v0: vector<f32>) {
  %0 = vector.fma %fv, %fv, %fv : vector<4xf32>
  %1 = vector.fma %fv, %fv, %fv {a} : vector<4xf32>
  %2 = vector.broadcast %f : f32 to vector<4xf32>
  %3 = vector.broadcast %x : index to vector<4xindex>
  %4 = vector.broadcast %fv : vector<4xf32> to vector<2x4xf32>
  %5 = vector.broadcast %v0 : vector<f32> to vector<4xf32>
  %6 = vector.extract %fv[%x] {a} : f32 from vector<4xf32>
  %7 = vector.extract %v42[1] : vector<2xf32> from vector<4x2xf32>
  %8 = vector.extract %v42[1, %x] : f32 from vector<4x2xf32>
  %9 = vector.extract %v0[] : f32 from vector<f32>
  return
}
// -----
// vector: insert, bitcast, shuffle, from_elements, to_elements, reduction
func.func @f(%x: index, %f: f32, %iv: vector<4xi32>, %fv: vector<4xf32>, %v42: vector<4x2xf32>, %v2: vector<2xf32>, %v0: vector<f32>) {
  %0 = vector.insert %f, %v42[1, %x] : f32 into vector<4x2xf32>
  %1 = vector.insert %f, %v0[] : f32 into vector<f32>
  %2 = vector.insert %v2, %v42[1] {a} : vector<2xf32> into vector<4x2xf32>
  %3 = vector.bitcast %fv : vector<4xf32> to vector<8xi16>
  %4 = vector.shuffle %fv, %fv [0, -1, 4] : vector<4xf32>, vector<4xf32>
  %5 = vector.from_elements %f, %f {a} : vector<2xf32>
  vector.to_elements %v2 : vector<2xf32>
  %7 = vector.reduction <add>, %fv : vector<4xf32> into f32
  %8 = vector.reduction <add>, %fv, %f fastmath<reassoc> : vector<4xf32> into f32
  %9 = vector.reduction <xor>, %iv : vector<4xi32> into i32
  return
}
// -----
// vector: reduction, multi_reduction, outerproduct, scan, load
func.func @f(%x: index, %i: i32, %f: f32, %iv: vector<4xi32>, %fv: vector<4xf32>, %v42: vector<4x2xf32>, %v2: vector<2xf32>, %m: memref<64xf32>) {
  %0 = vector.reduction <minnumf>, %fv {a} : vector<4xf32> into f32
  %1 = vector.multi_reduction <add>, %v42, %v2 [0] : vector<4x2xf32> to vector<2xf32>
  %2 = vector.multi_reduction <maxsi>, %iv, %i [0] : vector<4xi32> to i32
  %3 = vector.outerproduct %fv, %v2 : vector<4xf32>, vector<2xf32>
  %4 = vector.outerproduct %fv, %v2, %v42 {kind = #vector.kind<maxnumf>} : vector<4xf32>, vector<2xf32>
  %5 = vector.outerproduct %fv, %f : vector<4xf32>, f32
  vector.scan <add>, %v42, %v2 {inclusive = true, reduction_dim = 0 : i64} : vector<4x2xf32>, vector<2xf32>
  %7 = vector.load %m[%x] : memref<64xf32>, vector<4xf32>
  %8 = vector.load %m[%x] {nontemporal = true} : memref<64xf32>, vector<4xf32>
  %9 = vector.load %m[%x] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
  return
}
// -----
// vector: store, maskedload, maskedstore, expandload, compressstore, gather, scatter
func.func @f(%x: index, %iv: vector<4xi32>, %bv: vector<4xi1>, %fv: vector<4xf32>, %t: tensor<64xf32>, %m: memref<64xf32>) {
  vector.store %fv, %m[%x] {nontemporal = true, alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
  %1 = vector.maskedload %m[%x], %bv, %fv : memref<64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %2 = vector.maskedload %m[%x], %bv, %fv {alignment = 16 : i64} : memref<64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.maskedstore %m[%x], %bv, %fv : memref<64xf32>, vector<4xi1>, vector<4xf32>
  %4 = vector.expandload %m[%x], %bv, %fv : memref<64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.compressstore %m[%x], %bv, %fv : memref<64xf32>, vector<4xi1>, vector<4xf32>
  %6 = vector.gather %m[%x] [%iv], %bv, %fv : memref<64xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %7 = vector.gather %t[%x] [%iv], %bv, %fv : tensor<64xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.scatter %m[%x] [%iv], %bv, %fv : memref<64xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  %9 = vector.scatter %t[%x] [%iv], %bv, %fv : tensor<64xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> -> tensor<64xf32>
  return
}
// -----
// vector: transfer_read, transfer_write
func.func @f(%x: index, %f: f32, %bv: vector<4xi1>, %fv: vector<4xf32>, %t: tensor<64xf32>, %t2: tensor<8x8xf32>, %m: memref<64xf32>) {
  %0 = vector.transfer_read %t[%x], %f {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %1 = vector.transfer_read %t[%x], %f : tensor<64xf32>, vector<4xf32>
  %2 = vector.transfer_read %t[%x], %f, %bv {in_bounds = [true], a} : tensor<64xf32>, vector<4xf32>
  %3 = vector.transfer_read %t2[%x, %x], %f {permutation_map = affine_map<(d0, d1) -> (d0)>} : tensor<8x8xf32>, vector<4xf32>
  %4 = vector.transfer_read %t2[%x, %x], %f {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : tensor<8x8xf32>, vector<4x2xf32>
  %5 = vector.transfer_read %m[%x], %f : memref<64xf32>, vector<4xf32>
  %6 = vector.transfer_write %fv, %t[%x] {in_bounds = [true]} : vector<4xf32>, tensor<64xf32>
  %7 = vector.transfer_write %fv, %t[%x], %bv : vector<4xf32>, tensor<64xf32>
  vector.transfer_write %fv, %m[%x] : vector<4xf32>, memref<64xf32>
  return
}
