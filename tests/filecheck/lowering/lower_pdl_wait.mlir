// RUN: xla-emitters-opt -p xla-lower-pdl-wait %s | filecheck %s

// In the place of each op, also inside of a branch; nothing else changes.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT:    nvvm.griddepcontrol wait
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      nvvm.griddepcontrol launch_dependents
// CHECK-NEXT:      gpu.barrier
func.func @kernel(%c: i1) {
  "xla_gpu.pdl_wait"() : () -> ()
  scf.if %c {
    "xla_gpu.pdl_launch_dependents"() : () -> ()
    gpu.barrier
  }
  return
}
