// tensor missing
func.func @f(%t: tensor<4xf32>, %n: index) -> tensor<4xi32> {
  %0 = tensor.bitcast %t : tensor<4xf32> to tensor<4xi32>
  %1 = tensor.generate %n {
  ^bb0(%i: index):
    %e = arith.constant 1.0 : f32
    tensor.yield %e : f32
  } : tensor<?xf32>
  return %0 : tensor<4xi32>
}
// -----
// tensor: bitcast, cast, concat, dim, rank, empty, extract
func.func @f(%x: index, %t: tensor<64xf32>, %t0: tensor<f32>) {
  %0 = tensor.bitcast %t : tensor<64xf32> to tensor<64xi32>
  %1 = tensor.cast %t : tensor<64xf32> to tensor<?xf32>
  %2 = tensor.concat dim(0) %t, %t : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
  %3 = tensor.dim %t, %x : tensor<64xf32>
  %4 = tensor.rank %t : tensor<64xf32>
  %5 = tensor.empty() : tensor<4xf32>
  %6 = tensor.empty(%x) : tensor<?xf32>
  %7 = tensor.extract %t[%x] : tensor<64xf32>
  %8 = tensor.extract %t0[] : tensor<f32>
  %9 = tensor.extract %t[%x] {a} : tensor<64xf32>
  return
}
// -----
// tensor: insert, extract_slice, insert_slice, from_elements, splat, collapse_shape, expand_shape, reshape, generate
func.func @f(%x: index, %f: f32, %t: tensor<64xf32>, %t2: tensor<8x8xf32>, %t4: tensor<4xf32>, %ts: tensor<2xi32>) {
  %0 = tensor.insert %f into %t[%x] {a} : tensor<64xf32>
  %1 = tensor.extract_slice %t2[0, %x] [1, 4] [1, 1] : tensor<8x8xf32> to tensor<4xf32>
  %2 = tensor.insert_slice %t4 into %t[%x] [4] [1] : tensor<4xf32> into tensor<64xf32>
  %3 = tensor.from_elements %f, %f : tensor<2xf32>
  %4 = tensor.splat %f : tensor<4xf32>
  %5 = tensor.splat %f[%x] : tensor<?xf32>
  %6 = tensor.collapse_shape %t2 [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %7 = tensor.expand_shape %t [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %8 = tensor.reshape %t(%ts) : (tensor<64xf32>, tensor<2xi32>) -> tensor<8x8xf32>
  %9 = tensor.generate %x { ^bb0(%q: index): tensor.yield %f : f32 } : tensor<?xf32>
  return
}
// -----
// tensor: generate, pad
func.func @f(%x: index, %f: f32, %t: tensor<64xf32>) {
  %0 = tensor.generate { ^bb0(%q: index): tensor.yield %f : f32 } : tensor<4xf32>
  %1 = tensor.pad %t low[1] high[%x] { ^bb0(%q: index): tensor.yield %f : f32 } : tensor<64xf32> to tensor<?xf32>
  %2 = tensor.pad %t nofold low[1] high[1] { ^bb0(%q: index): tensor.yield %f : f32 } : tensor<64xf32> to tensor<66xf32>
  return
}
// -----
// tensor: bitcast, generate
func.func @f(%t: tensor<8xf32>, %f: f32, %n: index) {
  %r0 = tensor.bitcast %t {note} : tensor<8xf32> to tensor<8xi32>
  %r1 = tensor.generate %n {
  ^bb0(%i: index):
    tensor.yield %f : f32
  } : tensor<?xf32>
  %r2 = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %f : f32
  } {note} : tensor<4xf32>
  return
}
