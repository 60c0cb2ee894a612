// RUN: xla-emitters-opt -p xla-expand-float-ops --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p "xla-expand-float-ops{approximate-tanh=false}" --split-input-file %s | filecheck %s --check-prefix OFF

func.func @tanh(%x: f32) -> f32 {
  %0 = math.tanh %x : f32
  func.return %0 : f32
}
// CHECK-LABEL: func.func @tanh(
// CHECK-SAME:    %[[X:.*]]: f32
// CHECK:         arith.cmpf ult, %[[X]]
// CHECK:         arith.cmpf ugt
// CHECK:         %[[CLAMPED:.*]] = arith.select
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[CLAMPED]], %[[CLAMPED]] : f32
// CHECK-COUNT-6: math.fma
// CHECK:         %[[ODD:.*]] = arith.mulf %[[CLAMPED]]
// CHECK-COUNT-3: math.fma
// CHECK:         %[[QUOTIENT:.*]] = arith.divf %[[ODD]]
// CHECK:         %[[TINY:.*]] = arith.cmpf olt
// CHECK:         arith.select %[[TINY]], %[[X]], %[[QUOTIENT]] : f32
// CHECK-NOT:     math.tanh
// OFF-LABEL:   func.func @tanh(
// OFF-NEXT:      math.tanh

// -----

func.func @erf(%x: f32) -> f32 {
  %0 = math.erf %x : f32
  func.return %0 : f32
}
// CHECK-LABEL: func.func @erf(
// CHECK-SAME:    %[[X:.*]]: f32
// CHECK-COUNT-10: math.fma
// CHECK:         %[[QUOTIENT:.*]] = arith.divf
// CHECK:         %[[ONE:.*]] = math.copysign %{{.*}}, %[[X]] : f32
// CHECK:         %[[BEYOND:.*]] = arith.cmpf oge
// CHECK:         arith.select %[[BEYOND]], %[[ONE]], %[[QUOTIENT]] : f32
// CHECK-NOT:     math.erf

// -----

// Narrower and wider types go to libdevice; so do other functions.
func.func @others(%a: bf16, %b: f16, %c: f64, %d: f32) {
  %0 = math.tanh %a : bf16
  %1 = math.tanh %b : f16
  %2 = math.erf %c : f64
  %3 = math.exp %d : f32
  func.return
}
// CHECK-LABEL: func.func @others
// CHECK-NEXT:    math.tanh %{{.*}} : bf16
// CHECK-NEXT:    math.tanh %{{.*}} : f16
// CHECK-NEXT:    math.erf %{{.*}} : f64
// CHECK-NEXT:    math.exp %{{.*}} : f32
// CHECK-NEXT:    return
