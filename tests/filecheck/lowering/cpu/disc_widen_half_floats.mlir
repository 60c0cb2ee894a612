// RUN: xla-emitters-opt -p disc-widen-half-floats %s | filecheck %s
// RUN: xla-emitters-opt -p 'disc-widen-half-floats{f16=true}' %s | filecheck %s --check-prefix CODE
// Products are of f32; bf16 is shifted to its place in f32 and back; what is rounded to bf16 stays NaN if it was.
func.func @product(%x: bf16, %y: bf16) -> bf16 {
  %z = arith.mulf %x, %y : bf16
  return %z : bf16
}
// CHECK-LABEL: func.func @product(%x: i16, %y: i16) -> i16
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extui %x : i16 to i32
// CHECK-NEXT:    %[[C16:.*]] = arith.constant 16 : i32
// CHECK-NEXT:    %[[HIGH:.*]] = arith.shli %[[WIDE]], %[[C16]] : i32
// CHECK-NEXT:    %[[X:.*]] = arith.bitcast %[[HIGH]] : i32 to f32
// CHECK:         %[[Z:.*]] = arith.mulf %[[X]], %{{.*}} : f32
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[Z]] : f32 to i32
// CHECK:         arith.shrui %[[BITS]], %{{.*}} : i32
// CHECK:         arith.cmpi ugt
// CHECK:         %[[LOW:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK-NEXT:    return %[[LOW]] : i16

// Integers become f64 first: an f32 would be rounded already. An f16 is made of the f32 rounded to odd.
func.func @number(%i: i32) -> f16 {
  %z = arith.sitofp %i : i32 to f16
  return %z : f16
}
// CHECK-LABEL: @number(%i: i32) -> f16
// CHECK-NEXT:    %[[WIDE:.*]] = arith.sitofp %i : i32 to f64
// CHECK-NEXT:    arith.truncf %[[WIDE]] : f64 to f32
// CHECK:         %[[ODD:.*]] = arith.ori
// CHECK-NEXT:    %[[F:.*]] = arith.bitcast %[[ODD]] : i32 to f32
// CHECK-NEXT:    arith.truncf %[[F]] : f32 to f16
// CODE-LABEL:  @number(%i: i32) -> i16
// CODE:          arith.truncf %{{.*}} : f64 to f32
// CODE-NOT:      f16
// CODE:          return %{{.*}} : i16

// Moves stay, of bits; an f16 stays f16 where its conversions are instructions.
func.func @chosen(%c: i1, %x: bf16, %h: f16) -> (bf16, f16) {
  %one = arith.constant 1.0 : bf16
  %two = arith.constant 2.0 : f16
  %y = arith.select %c, %x, %one : bf16
  %z = arith.select %c, %h, %two : f16
  return %y, %z : bf16, f16
}
// CHECK-LABEL: @chosen(%c: i1, %x: i16, %h: f16) -> (i16, f16)
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 16256 : i16
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2.000000e+00 : f16
// CHECK-NEXT:    arith.select %c, %x, %[[ONE]] : i16
// CHECK-NEXT:    arith.select %c, %h, %[[TWO]] : f16
// CODE-LABEL:  @chosen(%c: i1, %x: i16, %h: i16) -> (i16, i16)
// CODE:          arith.constant 16384 : i16
