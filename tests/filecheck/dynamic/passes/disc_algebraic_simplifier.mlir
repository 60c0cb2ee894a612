// RUN: xla-emitters-opt -p disc-algebraic-simplifier --split-input-file %s | filecheck %s

// A scalar function of constants is a constant; a division by it is a product. 1 / 2.828427 = 0.353553 (XLA's constant for x / sqrt(8)).
// CHECK-LABEL: hlo.computation @scaled entry {
// CHECK-NEXT:    %x = hlo.parameter 0
// CHECK-NEXT:    %s = hlo.parameter 1
// CHECK-NEXT:    %[[C:.*]] = hlo.constant {{.*}} dense<0.353553385> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = hlo.dynamic_broadcast_in_dim %[[C]], %s
// CHECK-NEXT:    %scaled = hlo.multiply %x, %[[B]] {name = "scaled"} : tensor<?xf32>
// CHECK-NEXT:    hlo.return %scaled
hlo.computation @scaled entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %s = hlo.parameter 1 {name = "s"} : tensor<1xi32>
  %eight = hlo.constant {name = "eight"} dense<8.0> : tensor<f32>
  %root = hlo.sqrt %eight {name = "root"} : tensor<f32>
  %all = hlo.dynamic_broadcast_in_dim %root, %s {dimensions = array<i64>, name = "all"} : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %scaled = hlo.divide %x, %all {name = "scaled"} : tensor<?xf32>
  hlo.return %scaled : tensor<?xf32>
}

// -----

// An array of equal numbers; a constant that another op reads stays.
// CHECK-LABEL: hlo.computation @splat entry {
// CHECK:         %three = hlo.constant {name = "three"} dense<3.000000e+00> : tensor<4xf32>
// CHECK-NEXT:    %[[C:.*]] = hlo.constant {{.*}} dense<0.333333343> : tensor<4xf32>
// CHECK-NEXT:    %third = hlo.multiply %x, %[[C]]
// CHECK-NEXT:    hlo.add %third, %three
hlo.computation @splat entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  %three = hlo.constant {name = "three"} dense<3.0> : tensor<4xf32>
  %third = hlo.divide %x, %three {name = "third"} : tensor<4xf32>
  %sum = hlo.add %third, %three {name = "sum"} : tensor<4xf32>
  hlo.return %sum : tensor<4xf32>
}

// -----

// In f16 only exact reciprocals: of 4, not of 3.
// CHECK-LABEL: hlo.computation @half entry {
// CHECK:         hlo.constant {{.*}} dense<2.500000e-01> : tensor<4xf16>
// CHECK-NEXT:    %quarter = hlo.multiply
// CHECK:         %third = hlo.divide %quarter, %three
hlo.computation @half entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf16>
  %four = hlo.constant {name = "four"} dense<4.0> : tensor<4xf16>
  %three = hlo.constant {name = "three"} dense<3.0> : tensor<4xf16>
  %quarter = hlo.divide %x, %four {name = "quarter"} : tensor<4xf16>
  %third = hlo.divide %quarter, %three {name = "third"} : tensor<4xf16>
  hlo.return %third : tensor<4xf16>
}

// -----

// Powers of 2 and 3 are products; integers have them too. Not of 4, and of 3 not where the square would be rounded to 16 bits.
// CHECK-LABEL: hlo.computation @powers entry {
// CHECK:         %square = hlo.multiply %x, %x
// CHECK-NEXT:    %[[S:.*]] = hlo.multiply %square, %square
// CHECK-NEXT:    %[[T:.*]] = hlo.multiply %[[S]], %square
// CHECK-NEXT:    %four = hlo.constant
// CHECK-NEXT:    hlo.power %[[T]], %four
// CHECK:         %[[I:.*]] = hlo.multiply %i, %i
// CHECK-NEXT:    hlo.multiply %[[I]], %i
// CHECK:         hlo.power %h, %h3
hlo.computation @powers entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2xf32>
  %i = hlo.parameter 1 {name = "i"} : tensor<2xi32>
  %h = hlo.parameter 2 {name = "h"} : tensor<2xf16>
  %two = hlo.constant {name = "two"} dense<2.0> : tensor<2xf32>
  %square = hlo.power %x, %two {name = "square"} : tensor<2xf32>
  %three = hlo.constant {name = "three"} dense<3.0> : tensor<2xf32>
  %cube = hlo.power %square, %three {name = "cube"} : tensor<2xf32>
  %four = hlo.constant {name = "four"} dense<4.0> : tensor<2xf32>
  %fourth = hlo.power %cube, %four {name = "fourth"} : tensor<2xf32>
  %i3 = hlo.constant {name = "i3"} dense<3> : tensor<2xi32>
  %integers = hlo.power %i, %i3 {name = "integers"} : tensor<2xi32>
  %h3 = hlo.constant {name = "h3"} dense<3.0> : tensor<2xf16>
  %halves = hlo.power %h, %h3 {name = "halves"} : tensor<2xf16>
  %tuple = hlo.tuple %fourth, %integers, %halves {name = "tuple"} : (tensor<2xf32>, tensor<2xi32>, tensor<2xf16>) -> tuple<tensor<2xf32>, tensor<2xi32>, tensor<2xf16>>
  hlo.return %tuple : tuple<tensor<2xf32>, tensor<2xi32>, tensor<2xf16>>
}

// -----

// Divisors without a reciprocal that is a normal number, unequal divisors, and integers keep their division.
// CHECK-LABEL: hlo.computation @kept entry {
// CHECK:         %a = hlo.divide %x, %tiny
// CHECK:         %b = hlo.divide %a, %zero
// CHECK:         %c = hlo.divide %b, %mixed
// CHECK:         %d = hlo.divide %c, %large
// CHECK:         %j = hlo.divide %i, %i3
hlo.computation @kept entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2xf32>
  %i = hlo.parameter 1 {name = "i"} : tensor<2xi32>
  %tiny = hlo.constant {name = "tiny"} dense<1.0e-39> : tensor<2xf32>
  %a = hlo.divide %x, %tiny {name = "a"} : tensor<2xf32>
  %zero = hlo.constant {name = "zero"} dense<0.0> : tensor<2xf32>
  %b = hlo.divide %a, %zero {name = "b"} : tensor<2xf32>
  %mixed = hlo.constant {name = "mixed"} dense<[2.0, 3.0]> : tensor<2xf32>
  %c = hlo.divide %b, %mixed {name = "c"} : tensor<2xf32>
  %large = hlo.constant {name = "large"} dense<3.0e+38> : tensor<2xf32>
  %d = hlo.divide %c, %large {name = "d"} : tensor<2xf32>
  %i3 = hlo.constant {name = "i3"} dense<3> : tensor<2xi32>
  %j = hlo.divide %i, %i3 {name = "j"} : tensor<2xi32>
  %tuple = hlo.tuple %d, %j {name = "tuple"} : (tensor<2xf32>, tensor<2xi32>) -> tuple<tensor<2xf32>, tensor<2xi32>>
  hlo.return %tuple : tuple<tensor<2xf32>, tensor<2xi32>>
}
