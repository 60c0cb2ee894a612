// RUN: xla-emitters-opt -p xla-erase-dead-functions %s | filecheck %s

// Kept: public functions, what they call, and what those call. Erased: what nobody alive calls, also in a circle.
// CHECK:       func.func @kernel
// CHECK:       func.func private @direct
// CHECK:       func.func private @indirect
// CHECK-NOT:   func.func
func.func @kernel(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @direct(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @direct(%x: f32) -> f32 {
  %0 = func.call @indirect(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @indirect(%x: f32) -> f32 {
  return %x : f32
}
func.func private @dead(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @dead_too(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @dead_too(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @dead(%x) : (f32) -> f32
  %1 = xla_gpu.pure_call @indirect(%x) : (f32) -> f32
  return %0 : f32
}
