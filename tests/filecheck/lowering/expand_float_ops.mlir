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

// -----

// 1.mmm * 2^-6 less 2^-6 where the exponent is 0, the difference of the biases elsewhere, NaN for all ones.
func.func @widen(%x: f8E4M3FN) -> f32 {
  %0 = arith.extf %x : f8E4M3FN to f32
  func.return %0 : f32
}
// CHECK-LABEL: func.func @widen(
// CHECK-SAME:    %[[X:.*]]: f8E4M3FN
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[X]] : f8E4M3FN to i8
// CHECK-NEXT:    %[[CODE:.*]] = arith.extui %[[BITS]] : i8 to i32
// CHECK:         arith.subf
// CHECK:         arith.cmpi ult
// CHECK:         arith.cmpi eq
// CHECK-NOT:     arith.extf

// -----

// Half a unit is added to the pattern; small results are the last bits of a sum; beyond 57344 is infinity. No f16 or bf16 on the way.
func.func @round(%x: f64) -> f8E5M2 {
  %0 = arith.truncf %x : f64 to f8E5M2
  func.return %0 : f8E5M2
}
// CHECK-LABEL: func.func @round(
// CHECK-SAME:    %[[X:.*]]: f64
// CHECK-NEXT:    %[[NEAR:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK-NEXT:    arith.extf %[[NEAR]] : f32 to f64
// CHECK:         arith.addf
// CHECK:         %[[BYTE:.*]] = arith.trunci %{{.*}} : i32 to i8
// CHECK-NEXT:    %[[Y:.*]] = arith.bitcast %[[BYTE]] : i8 to f8E5M2
// CHECK-NEXT:    return %[[Y]]

// -----

// Ops but conversions are of f32.
func.func @compare(%x: f4E2M1FN, %y: f4E2M1FN) -> i1 {
  %0 = arith.cmpf olt, %x, %y : f4E2M1FN
  func.return %0 : i1
}
// CHECK-LABEL: func.func @compare(
// CHECK:         arith.cmpf olt, %{{.*}}, %{{.*}} : f32

// -----

// An absolute value has all bits but the sign's. In a type whose only NaN is the sign alone that would make a zero of it; f32 and f16 have
// instructions.
func.func @absolute(%a: bf16, %b: f8E4M3FN, %c: f8E4M3FNUZ, %d: f16) -> (bf16, f8E4M3FN, f8E4M3FNUZ, f16) {
  %0 = math.absf %a : bf16
  %1 = math.absf %b : f8E4M3FN
  %2 = math.absf %c : f8E4M3FNUZ
  %3 = math.absf %d : f16
  return %0, %1, %2, %3 : bf16, f8E4M3FN, f8E4M3FNUZ, f16
}
// CHECK-LABEL: func.func @absolute
// CHECK-NEXT:    %[[A:.*]] = arith.bitcast %a : bf16 to i16
// CHECK-NEXT:    %[[M:.*]] = arith.constant 32767 : i16
// CHECK-NEXT:    %[[K:.*]] = arith.andi %[[A]], %[[M]] : i16
// CHECK-NEXT:    arith.bitcast %[[K]] : i16 to bf16
// CHECK-NEXT:    %[[B:.*]] = arith.bitcast %b : f8E4M3FN to i8
// CHECK-NEXT:    %[[N:.*]] = arith.constant 127 : i8
// CHECK-NEXT:    %[[L:.*]] = arith.andi %[[B]], %[[N]] : i8
// CHECK-NEXT:    arith.bitcast %[[L]] : i8 to f8E4M3FN
// CHECK-NOT:     math.absf {{.*}} : f8
// CHECK:         math.absf {{.*}} : f32
// CHECK:         math.absf %d : f16
