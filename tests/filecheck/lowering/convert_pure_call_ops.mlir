// RUN: xla-emitters-opt -p xla-convert-pure-call-ops %s | filecheck %s

func.func private @f(%t: tensor<8xf32>, %i: index) -> (f32, i32) {
  %x = tensor.extract %t[%i] : tensor<8xf32>
  %c = arith.constant 1 : i32
  return %x, %c : f32, i32
}
func.func @main(%t: tensor<8xf32>, %i: index, %p: i1) -> f32 {
  %r:2 = xla_gpu.pure_call @f(%t, %i) {noinline, xla.is_reduction} : (tensor<8xf32>, index) -> (f32, i32)
  %y = scf.if %p -> (f32) {
    %s:2 = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> (f32, i32)
    scf.yield %s#0 : f32
  } else {
    scf.yield %r#0 : f32
  }
  %z = func.call @g(%y) : (f32) -> f32
  return %z : f32
}
func.func private @g(f32) -> f32

// CHECK-LABEL: @main
// CHECK:       %[[R:.*]] = call @f(%{{.*}}, %{{.*}}) {noinline, xla.is_reduction} : (tensor<8xf32>, index) -> (f32, i32)
// CHECK:       scf.if
// CHECK-NEXT:    call @f(%{{.*}}, %{{.*}}) : (tensor<8xf32>, index) -> (f32, i32)
// CHECK:       call @g
// CHECK-NOT:   pure_call
