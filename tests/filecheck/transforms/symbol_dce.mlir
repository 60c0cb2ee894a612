// RUN: xla-emitters-opt -p symbol-dce %s | filecheck %s

// A private symbol that nothing refers to goes, then those that only it referred to. Public ones stay, and so do private ones in a circle.
// CHECK:       func.func @kernel
// CHECK:       func.func private @called
// CHECK-NOT:   @dead
// CHECK:       func.func private @ping
// CHECK:       func.func private @pong
// CHECK:       module attributes {sym_visibility = "private"}
func.func @kernel(%x: f32) -> f32 {
  %0 = func.call @called(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @called(%x: f32) -> f32 {
  return %x : f32
}
func.func private @dead_too(%x: f32) -> f32 {
  return %x : f32
}
func.func private @dead(%x: f32) -> f32 {
  %0 = func.call @dead_too(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @ping(%x: f32) -> f32 {
  %0 = func.call @pong(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @pong(%x: f32) -> f32 {
  %0 = func.call @ping(%x) : (f32) -> f32
  return %0 : f32
}
// What has no name is no symbol.
builtin.module attributes {sym_visibility = "private"} {
}
