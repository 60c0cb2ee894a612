// RUN: exit 1 xla-emitters-opt -p xla-lower-tensors %s 2>&1 | filecheck %s
// The outputs of an entry are used once, in a chain: another use is refused at its place.
// CHECK: lower_tensors_reads_output.mlir:[[# @LINE + 7]]:8: error: [xla-lower-tensors] tensors of @k cannot be updated in place: 'tensor.extract': it reads an output of the entry
// CHECK-NOT: llvm.load
func.func @k(%in: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = tensor.extract %in[%c0] : tensor<8xf32>
  %a = tensor.insert %x into %out[%c0] : tensor<8xf32>
  %y = tensor.extract %a[%c0] : tensor<8xf32>
  %b = tensor.insert %y into %a[%c1] : tensor<8xf32>
  return %b : tensor<8xf32>
}
