// RUN: xla-emitters-opt -p disc-reassociate-reductions %s | filecheck %s
// The op that carries a sum or a product may be reordered; what is added is computed as before, and so is what is no sum.
func.func @f(%x: memref<?xf32>, %n: index, %zero: f32) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero, %p = %zero, %m = %zero) -> (f32, f32, f32) {
    %v = memref.load %x[%j] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    %b = arith.addf %a, %w : f32
    %q = arith.mulf %v, %p : f32
    %s = arith.subf %m, %v : f32
    scf.yield %b, %q, %s : f32, f32, f32
  }
  return %r#0, %r#1, %r#2 : f32, f32, f32
}
// CHECK:      %[[W:.*]] = arith.addf %[[V:.*]], %[[V]] : f32
// CHECK-NEXT: arith.addf %{{.*}}, %[[W]] fastmath<reassoc> : f32
// CHECK-NEXT: arith.mulf %[[V]], %{{.*}} fastmath<reassoc> : f32
// CHECK-NEXT: arith.subf %{{.*}}, %[[V]] : f32
