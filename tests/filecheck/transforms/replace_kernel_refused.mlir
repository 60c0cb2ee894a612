// RUN: exit 1 xla-emitters-opt -p 'xla-flatten-tensors,xla-replace-kernel{file="%s"}' %s 2>&1 | filecheck %s
// RUN: exit 2 xla-emitters-opt -p 'xla-replace-kernel{file=nowhere.mlir}' %s 2>&1 | filecheck --check-prefix=MISSING %s
// RUN: exit 2 xla-emitters-opt -p xla-replace-kernel %s 2>&1 | filecheck --check-prefix=NONE %s

// IR of another stage takes other arguments.
// CHECK: @fusion takes (tensor<2x4xf32>); the program's takes (tensor<8xf32>)
// NONE: no file with the IR is given
// NONE-NEXT: help: xla-replace-kernel{file=k.mlir}
// MISSING: cannot read 'nowhere.mlir'
func.func @fusion(%y: tensor<2x4xf32> {xla.slice_index = 0 : index}) -> tensor<2x4xf32>
    attributes {xla.entry, gpu.known_block_size = array<i32: 1, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %c0 = arith.constant 0 : index
  %a = tensor.extract %y[%c0, %c0] : tensor<2x4xf32>
  %r = tensor.insert %a into %y[%c0, %c0] : tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
