// RUN: xla-emitters-opt -p xla-gpu-insert-pdl %s | filecheck %s

// Public functions with a body wait first; private ones and declarations do not, and one that waits already waits once.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT:    "xla_gpu.pdl_wait"() : () -> ()
// CHECK-NEXT:    call @f
func.func @kernel(%x: f32) -> f32 {
  %0 = func.call @f(%x) : (f32) -> f32
  return %0 : f32
}
// CHECK-LABEL: func.func private @f
// CHECK-NEXT:    return
func.func private @f(%x: f32) -> f32 {
  return %x : f32
}
// CHECK-LABEL: func.func @waits
// CHECK-NEXT:    "xla_gpu.pdl_wait"() : () -> ()
// CHECK-NEXT:    return
func.func @waits() {
  "xla_gpu.pdl_wait"() : () -> ()
  return
}
// CHECK: func.func private @declared(f32)
func.func private @declared(f32)
