// RUN: exit 1 xla-emitters-opt -p xla-flatten-tensors --split-input-file %s 2>&1 | filecheck %s

// An op without a rule is named, and nothing is changed.
// CHECK: a.hlo:3:4: error: [xla-flatten-tensors] tensor.extract_slice: no rule to flatten it
// CHECK-NEXT: at slice (a.hlo:3:4)
func.func @f(%t: tensor<4x8xf32>) -> tensor<2x2xf32> {
  %0 = tensor.extract_slice %t[0, 0] [2, 2] [1, 1] : tensor<4x8xf32> to tensor<2x2xf32> loc("slice"("a.hlo":3:4))
  return %0 : tensor<2x2xf32>
}
