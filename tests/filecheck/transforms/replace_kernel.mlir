// RUN: xla-emitters-opt -p 'xla-cse,xla-replace-kernel{file="%s"}' %s | filecheck %s
// RUN: xla-emitters-opt -p xla-cse %s | filecheck --check-prefix=WITHOUT %s

// The kernel of the file takes the place of what the pass before it made: this file's, with both additions.
// CHECK:         func.func @fusion
// CHECK:           arith.addf
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      arith.mulf
// WITHOUT:       arith.addf
// WITHOUT-NEXT:  arith.mulf
func.func @fusion(%x: tensor<8xf32> {xla.slice_index = 0 : index}, %y: tensor<8xf32> {xla.slice_index = 1 : index}) -> tensor<8xf32>
    attributes {xla.entry, gpu.known_block_size = array<i32: 1, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %c0 = arith.constant 0 : index
  %a = tensor.extract %x[%c0] : tensor<8xf32>
  %b = arith.addf %a, %a : f32
  %c = arith.addf %a, %a : f32
  %d = arith.mulf %b, %c : f32
  %r = tensor.insert %d into %y[%c0] : tensor<8xf32>
  return %r : tensor<8xf32>
}
