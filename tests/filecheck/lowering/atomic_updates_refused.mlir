// RUN: not xla-emitters-opt -p xla-lower-tensors %s 2>&1 | filecheck %s
// 128 bits are not compared and swapped.

func.func @product(%t: tensor<8xcomplex<f64>>, %i: index, %x: complex<f64>) -> tensor<8xcomplex<f64>> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xcomplex<f64>> {
  ^bb0(%old: complex<f64>):
    %n = complex.mul %old, %x : complex<f64>
    xla_gpu.yield %n : complex<f64>
  }
  return %r : tensor<8xcomplex<f64>>
}

// CHECK: 'xla_gpu.atomic_rmw' {{.*}}changes complex<f64> in a way that is not an addition
