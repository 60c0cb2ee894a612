// RUN: xla-emitters-opt -p xla-limit-inlining %s | filecheck %s
// A small kernel is left to LLVM, whatever is called twice.

func.func @main(%x: f32) -> f32 {
  %a = func.call @f(%x) : (f32) -> f32
  %b = func.call @f(%a) : (f32) -> f32
  return %b : f32
}
func.func private @f(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}

// CHECK-LABEL: @main
// CHECK:       func.func private @f
// CHECK-NOT:   no_inline
