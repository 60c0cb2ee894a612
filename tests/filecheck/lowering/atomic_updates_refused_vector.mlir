// RUN: not xla-emitters-opt -p xla-lower-tensors %s 2>&1 | filecheck %s
// No instruction multiplies in memory, and words of 64 bits are compared and swapped for one element alone.

func.func @product(%t: tensor<8xf32>, %i: index, %x: vector<2xf32>) -> tensor<8xf32> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> {
  ^bb0(%old: vector<2xf32>):
    %n = arith.mulf %old, %x : vector<2xf32>
    xla_gpu.yield %n : vector<2xf32>
  }
  return %r : tensor<8xf32>
}

// CHECK: 'xla_gpu.atomic_rmw' {{.*}}updates several elements in a way that no instruction does
