// RUN: xla-emitters-opt -p convert-complex-to-standard --split-input-file %s | filecheck %s

func.func @product(%a: complex<f32>, %b: complex<f32>) -> complex<f32> {
  %0 = complex.mul %a, %b : complex<f32>
  func.return %0 : complex<f32>
}
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[A:.*]]: complex<f32>, %[[B:.*]]: complex<f32>
// CHECK-NEXT:    %[[X:.*]] = complex.re %[[A]] : complex<f32>
// CHECK-NEXT:    %[[Y:.*]] = complex.im %[[A]] : complex<f32>
// CHECK-NEXT:    %[[U:.*]] = complex.re %[[B]] : complex<f32>
// CHECK-NEXT:    %[[V:.*]] = complex.im %[[B]] : complex<f32>
// CHECK-NEXT:    %[[XU:.*]] = arith.mulf %[[X]], %[[U]] : f32
// CHECK-NEXT:    %[[YV:.*]] = arith.mulf %[[Y]], %[[V]] : f32
// CHECK-NEXT:    %[[REAL:.*]] = arith.subf %[[XU]], %[[YV]] : f32
// CHECK-NEXT:    %[[XV:.*]] = arith.mulf %[[X]], %[[V]] : f32
// CHECK-NEXT:    %[[YU:.*]] = arith.mulf %[[Y]], %[[U]] : f32
// CHECK-NEXT:    %[[IMAG:.*]] = arith.addf %[[XV]], %[[YU]] : f32
// CHECK-NEXT:    %[[R:.*]] = complex.create %[[REAL]], %[[IMAG]] : complex<f32>
// CHECK-NEXT:    return %[[R]] : complex<f32>

// -----

// Parts go straight from one op to the next: no number is made in between.
func.func @chain(%x: f64, %y: f64) -> f64 {
  %0 = complex.create %x, %y : complex<f64>
  %1 = complex.constant [1.000000e+00 : f64, -2.000000e+00 : f64] : complex<f64>
  %2 = complex.add %0, %1 : complex<f64>
  %3 = complex.neg %2 : complex<f64>
  %4 = complex.im %3 : complex<f64>
  func.return %4 : f64
}
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[X:.*]]: f64, %[[Y:.*]]: f64
// CHECK-NOT:     complex.
// CHECK:         %[[TWO:.*]] = arith.constant -2.000000e+00 : f64
// CHECK:         %[[SUM:.*]] = arith.addf %[[Y]], %[[TWO]] : f64
// CHECK:         %[[R:.*]] = arith.negf %[[SUM]] : f64
// CHECK-NOT:     complex.
// CHECK:         return %[[R]] : f64

// -----

// The modulus is the larger part times the root of 1 + ratio^2: no square overflows.
func.func @modulus(%z: complex<f32>) -> f32 {
  %0 = complex.abs %z : complex<f32>
  func.return %0 : f32
}
// CHECK-LABEL: func.func @modulus
// CHECK:         %[[N:.*]] = arith.minimumf %[[X:.*]], %[[Y:.*]] : f32
// CHECK:         %[[LARGER:.*]] = arith.maximumf %[[X]], %[[Y]] : f32
// CHECK:         %[[M:.*]] = arith.select %{{.*}}, %{{.*}}, %[[LARGER]] : f32
// CHECK:         %[[RATIO:.*]] = arith.divf %[[N]], %[[M]] : f32
// CHECK:         %[[R:.*]] = arith.select %{{.*}}, %{{.*}}, %[[RATIO]] : f32
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[R]], %[[R]] : f32
// CHECK:         %[[H:.*]] = math.sqrt %{{.*}} : f32
// CHECK:         arith.mulf %[[M]], %[[H]] : f32
// CHECK-NOT:     complex.abs

// -----

// sinh and cosh, not differences of exponentials: sin(z) is near z where z is small.
func.func @sine(%z: complex<f32>) -> complex<f32> {
  %0 = complex.sin %z : complex<f32>
  func.return %0 : complex<f32>
}
// CHECK-LABEL: func.func @sine
// CHECK-DAG:     math.cosh
// CHECK-DAG:     math.sinh
// CHECK-NOT:     complex.sin

// -----

func.func @comparison(%a: complex<f32>, %b: complex<f32>) -> i1 {
  %0 = complex.neq %a, %b : complex<f32>
  func.return %0 : i1
}
// CHECK-LABEL: func.func @comparison
// CHECK:         %[[REAL:.*]] = arith.cmpf une
// CHECK:         %[[IMAG:.*]] = arith.cmpf une
// CHECK:         %[[R:.*]] = arith.ori %[[REAL]], %[[IMAG]] : i1
// CHECK-NEXT:    return %[[R]] : i1

// -----

// Loops, selects, calls and returns carry complex numbers as before; real arithmetic is left alone.
func.func private @away(complex<f32>) -> complex<f32>
func.func @carried(%p: i1, %a: complex<f32>, %b: complex<f32>, %x: f32) -> (complex<f32>, f32) {
  %0 = arith.select %p, %a, %b : complex<f32>
  %1 = func.call @away(%0) : (complex<f32>) -> complex<f32>
  %2 = math.tanh %x : f32
  func.return %1, %2 : complex<f32>, f32
}
// CHECK-LABEL: func.func @carried
// CHECK-NEXT:    %[[S:.*]] = arith.select %{{.*}} : complex<f32>
// CHECK-NEXT:    %[[C:.*]] = call @away(%[[S]]) : (complex<f32>) -> complex<f32>
// CHECK-NEXT:    %[[T:.*]] = math.tanh
// CHECK-NEXT:    return %[[C]], %[[T]]

// -----

// What stays a number of two parts is taken apart and made where it is needed, once.
func.func @parts(%z: complex<f32>) -> f32 {
  %0 = complex.re %z : complex<f32>
  func.return %0 : f32
}
// CHECK-LABEL: func.func @parts
// CHECK-NEXT:    %[[R:.*]] = complex.re
// CHECK-NEXT:    return %[[R]] : f32

// -----

// What takes a value's place takes its name, unless it has one.
func.func @named(%a: complex<f32>, %b: complex<f32>, %x: f32) -> (complex<f32>, f32) {
  %sum = complex.add %a, %b : complex<f32>
  %made = complex.create %x, %x : complex<f32>
  %part = complex.re %made : complex<f32>
  func.return %sum, %part : complex<f32>, f32
}
// CHECK-LABEL: func.func @named(
// CHECK:         %sum = complex.create
// CHECK:         return %sum, %x
