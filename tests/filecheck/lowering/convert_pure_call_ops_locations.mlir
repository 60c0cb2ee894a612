// RUN: xla-emitters-opt -p xla-convert-pure-call-ops --print-debuginfo %s | filecheck %s

func.func private @f(%x: f32) -> f32 {
  return %x : f32
}
func.func @main(%x: f32) -> f32 {
  %pure_call = xla_gpu.pure_call @f(%x) {noinline} : (f32) -> f32 loc("add.1"("k.hlo":3:3))
  return %pure_call : f32
}
// CHECK-LABEL: @main
// CHECK-NEXT:  %pure_call = call @f(%x) {noinline} : (f32) -> f32 loc("add.1"("k.hlo":3:3))
