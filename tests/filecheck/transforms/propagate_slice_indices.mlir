// RUN: xla-emitters-opt -p xla-propagate-slice-indices --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-propagate-slice-indices --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// Through a call of a call, and in another order than the entry's.
// CHECK:       func.func private @f(%a: tensor<8xf32> {xla.slice_index = 1 : index}, %b: tensor<8xf32> {xla.invariant, xla.slice_index = 0 : index}, %i: index)
// CHECK:       func.func private @g(%a: tensor<8xf32> {xla.invariant, xla.slice_index = 0 : index}, %i: index {xla.range = [0 : index, 7 : index]})
func.func @entry(%in: tensor<8xf32> {xla.invariant, xla.slice_index = 0 : index}, %out: tensor<8xf32> {xla.slice_index = 1 : index},
    %i: index) -> f32 attributes {xla.entry} {
  %0 = xla_gpu.pure_call @f(%out, %in, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  return %0 : f32
}
func.func private @f(%a: tensor<8xf32>, %b: tensor<8xf32>, %i: index) -> f32 {
  %0 = xla_gpu.pure_call @g(%b, %i) : (tensor<8xf32>, index) -> f32
  return %0 : f32
}
func.func private @g(%a: tensor<8xf32>, %i: index {xla.range = [0 : index, 7 : index]}) -> f32 {
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return %0 : f32
}

// -----

// Callers that pass two buffers, or one that was computed: nothing is known.
// CHECK:       func.func private @f(%a: tensor<8xf32>, %i: index)
// CHECK:       func.func private @g(%a: tensor<8xf32>, %i: index)
// REMARK:      xla-propagate-slice-indices: skipped func.func: @f: its callers do not pass one buffer for argument 0
// REMARK:      xla-propagate-slice-indices: skipped func.func: @g: its callers do not pass one buffer for argument 0
func.func @entry(%p: tensor<8xf32> {xla.slice_index = 0 : index}, %q: tensor<8xf32> {xla.slice_index = 1 : index}, %i: index)
    -> (f32, f32, f32) attributes {xla.entry} {
  %0 = xla_gpu.pure_call @f(%p, %i) : (tensor<8xf32>, index) -> f32
  %1 = xla_gpu.pure_call @f(%q, %i) : (tensor<8xf32>, index) -> f32
  %2 = tensor.insert %1 into %q[%i] : tensor<8xf32>
  %3 = xla_gpu.pure_call @g(%2, %i) : (tensor<8xf32>, index) -> f32
  return %0, %1, %3 : f32, f32, f32
}
func.func private @f(%a: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return %0 : f32
}
func.func private @g(%a: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return %0 : f32
}

// -----

// A loop hands over its own tensor, which is no argument of the function.
// CHECK:       func.func private @h(%a: tensor<8xf32>, %i: index)
// REMARK:      xla-propagate-slice-indices: skipped func.func: @h: its callers do not pass one buffer for argument 0
func.func @entry(%p: tensor<8xf32> {xla.slice_index = 0 : index}, %i: index, %n: index) -> tensor<8xf32> attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %j = %c0 to %n step %c1 iter_args(%t = %p) -> (tensor<8xf32>) {
    %1 = xla_gpu.pure_call @h(%t, %i) : (tensor<8xf32>, index) -> f32
    %2 = tensor.insert %1 into %t[%j] : tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
func.func private @h(%a: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return %0 : f32
}
