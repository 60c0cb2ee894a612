// RUN: xla-emitters-opt -p disc-widen-half-floats %s | filecheck %s
// Products are of f32; what is rounded to bf16 becomes shifts, NaN stays NaN.
func.func @product(%x: bf16, %y: bf16) -> bf16 {
  %z = arith.mulf %x, %y : bf16
  return %z : bf16
}
// CHECK-LABEL: @product
// CHECK-NEXT:    %[[X:.*]] = arith.extf %x : bf16 to f32
// CHECK-NEXT:    %[[Y:.*]] = arith.extf %y : bf16 to f32
// CHECK-NEXT:    %[[Z:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[Z]] : f32 to i32
// CHECK:         %[[HIGH:.*]] = arith.shrui %[[BITS]], %{{.*}} : i32
// CHECK:         arith.cmpi ugt
// CHECK:         arith.bitcast %{{.*}} : i16 to bf16

// Integers become f64 first: an f32 would be rounded already. An f16 is made of the f32 rounded to odd.
func.func @number(%i: i32) -> f16 {
  %z = arith.sitofp %i : i32 to f16
  return %z : f16
}
// CHECK-LABEL: @number
// CHECK-NEXT:    %[[WIDE:.*]] = arith.sitofp %i : i32 to f64
// CHECK-NEXT:    arith.truncf %[[WIDE]] : f64 to f32
// CHECK:         %[[ODD:.*]] = arith.ori
// CHECK-NEXT:    %[[F:.*]] = arith.bitcast %[[ODD]] : i32 to f32
// CHECK-NEXT:    arith.truncf %[[F]] : f32 to f16

// Moves stay.
func.func @chosen(%c: i1, %x: bf16, %y: bf16) -> bf16 {
  %z = arith.select %c, %x, %y : bf16
  return %z : bf16
}
// CHECK-LABEL: @chosen
// CHECK-NEXT:    arith.select %c, %x, %y : bf16
