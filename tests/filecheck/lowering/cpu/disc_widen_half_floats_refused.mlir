// RUN: not xla-emitters-opt -p disc-widen-half-floats %s 2>&1 | filecheck %s
func.func @f(%x: tensor<4xbf16>, %i: index) -> bf16 {
  %a = tensor.extract %x[%i] : tensor<4xbf16>
  return %a : bf16
}
// CHECK: disc_widen_half_floats_refused.mlir:2:1: error: [disc-widen-half-floats] tensor<4xbf16> is no scalar
