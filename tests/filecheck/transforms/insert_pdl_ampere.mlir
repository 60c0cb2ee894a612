// RUN: xla-emitters-opt -p 'xla-gpu-insert-pdl{device="a100"}' %s | filecheck %s

// The instruction came with Hopper.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT:    return
func.func @kernel() {
  return
}
