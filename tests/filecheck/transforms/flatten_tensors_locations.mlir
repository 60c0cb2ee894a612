// RUN: xla-emitters-opt -p xla-flatten-tensors --split-input-file --print-debuginfo %s | filecheck %s

// An offset that two accesses share is from both.
func.func @shared(%a: tensor<4x4xi32>, %b: tensor<4x4xi32>, %i: index, %j: index) -> (i32, i32) {
  %0 = tensor.extract %a[%i, %j] : tensor<4x4xi32> loc("one")
  %1 = tensor.extract %b[%i, %j] : tensor<4x4xi32> loc("other")
  return %0, %1 : i32, i32
}
// CHECK-LABEL: @shared
// CHECK-NEXT:    xla_gpu.apply_indexing {{.*}} loc(fused["one", "other"])
// CHECK-NEXT:    tensor.extract {{.*}} loc("one")
// CHECK-NEXT:    tensor.extract {{.*}} loc("other")

// -----

// What replaces an access keeps its attributes and its location.
func.func @marked(%t: tensor<4x8xf32>, %v: vector<2x2xf32>, %i: index, %x: f32) -> (f32, tensor<4x8xf32>, vector<2x2xf32>) {
  %0 = vector.transfer_read %t[%i, %i], %x {in_bounds = [true], mark = 0 : i8} : tensor<4x8xf32>, vector<4xf32> loc("0")
  %1 = vector.transfer_write %0, %t[%i, %i] {in_bounds = [true], mark = 1 : i8} : vector<4xf32>, tensor<4x8xf32> loc("1")
  %2 = vector.insert %x, %v[0, 1] {mark = 2 : i8} : f32 into vector<2x2xf32> loc("2")
  %3 = vector.extract %2[1, 0] {mark = 3 : i8} : f32 from vector<2x2xf32> loc("3")
  return %3, %1, %2 : f32, tensor<4x8xf32>, vector<2x2xf32>
}
// CHECK-LABEL: @marked
// CHECK:         vector.transfer_read {{.*}}mark = 0 : i8{{.*}} loc("0")
// CHECK-NEXT:    vector.transfer_write {{.*}}mark = 1 : i8{{.*}} loc("1")
// CHECK-NEXT:    vector.insert {{.*}}mark = 2 : i8{{.*}} loc("2")
// CHECK-NEXT:    vector.extract {{.*}}mark = 3 : i8{{.*}} loc("3")
