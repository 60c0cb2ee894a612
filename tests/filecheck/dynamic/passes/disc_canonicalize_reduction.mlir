// RUN: xla-emitters-opt -p disc-canonicalize-reduction --split-input-file %s | filecheck %s

// The seed's case a: [a, b, c] -> [a, b*c], reduce the rows, and back. Sizes are multiplied in 64 bits.
// CHECK-LABEL: hlo.computation @column entry {
// CHECK:         %[[B:.*]] = hlo.get_dimension_size %x {dimensions = array<i64: 1>
// CHECK-NEXT:    %[[WB:.*]] = hlo.convert %[[B]] {{.*}} : (tensor<i32>) -> tensor<i64>
// CHECK:         %[[C:.*]] = hlo.get_dimension_size %x {dimensions = array<i64: 2>
// CHECK-NEXT:    %[[WC:.*]] = hlo.convert %[[C]] {{.*}} : (tensor<i32>) -> tensor<i64>
// CHECK:         %[[BC:.*]] = hlo.multiply %[[WB]], %[[WC]] {{.*}} : tensor<i64>
// CHECK:         %[[FLAT:.*]] = hlo.dynamic_reshape %x, %{{.*}} : (tensor<?x?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
// CHECK-NEXT:    %[[R:.*]] = hlo.reduce %[[FLAT]], %z {dimensions = array<i64: 0>, {{.*}}to_apply = @add} : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
// CHECK:         hlo.dynamic_reshape %[[R]], %{{.*}} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @column entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?x?xf32>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<f32>
  %r = hlo.reduce %x, %z {dimensions = array<i64: 0>, name = "r", to_apply = @add} : (tensor<?x?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  hlo.return %r : tensor<?x?xf32>
}

// -----

// The seed's case b: [a, b, c] -> [a*b, c], reduce the columns, and back. The dimensions may be given in any order.
// CHECK-LABEL: hlo.computation @row entry {
// CHECK:         %[[FLAT:.*]] = hlo.dynamic_reshape %x, %{{.*}} : (tensor<?x?x4x8xf32>, tensor<2xi64>) -> tensor<?x32xf32>
// CHECK-NEXT:    %[[R:.*]] = hlo.reduce %[[FLAT]], %z {dimensions = array<i64: 1>, {{.*}} : (tensor<?x32xf32>, tensor<f32>) -> tensor<?xf32>
// CHECK:         hlo.dynamic_reshape %[[R]], %{{.*}} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @row entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?x4x8xf32>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<f32>
  %r = hlo.reduce %x, %z {dimensions = array<i64: 3, 2>, name = "r", to_apply = @add} : (tensor<?x?x4x8xf32>, tensor<f32>) -> tensor<?x?xf32>
  hlo.return %r : tensor<?x?xf32>
}

// -----

// The seed's case c: [a, b, c] -> [a*b*c, 1], reduce the rows, and a scalar.
// CHECK-LABEL: hlo.computation @scalar entry {
// CHECK:         %[[FLAT:.*]] = hlo.dynamic_reshape %x, %{{.*}} : (tensor<?x?x?xf32>, tensor<2xi64>) -> tensor<?x1xf32>
// CHECK-NEXT:    %[[R:.*]] = hlo.reduce %[[FLAT]], %z {dimensions = array<i64: 0>, {{.*}} : (tensor<?x1xf32>, tensor<f32>) -> tensor<1xf32>
// CHECK-NEXT:    hlo.reshape %[[R]] {{.*}} : (tensor<1xf32>) -> tensor<f32>
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @scalar entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?x?xf32>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<f32>
  %r = hlo.reduce %x, %z {dimensions = array<i64: 0, 1, 2>, name = "r", to_apply = @add} : (tensor<?x?x?xf32>, tensor<f32>) -> tensor<f32>
  hlo.return %r : tensor<f32>
}

// -----

// The seed's case d, as JAX sums over a sequence: a transpose makes it a reduction of columns. The initial value counts once.
// CHECK-LABEL: hlo.computation @middle entry {
// CHECK:         %[[T:.*]] = hlo.transpose %x {dimensions = array<i64: 0, 2, 1>, {{.*}} : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
// CHECK:         %[[FLAT:.*]] = hlo.dynamic_reshape %[[T]], %{{.*}} -> tensor<?x?xf32>
// CHECK-NEXT:    %[[R:.*]] = hlo.reduce %[[FLAT]], %five {dimensions = array<i64: 1>
// CHECK-NOT:     hlo.reduce
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @middle entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?x8xf32>
  %five = hlo.constant {name = "five"} dense<5.0> : tensor<f32>
  %r = hlo.reduce %x, %five {dimensions = array<i64: 1>, name = "r", to_apply = @add} : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  hlo.return %r : tensor<?x8xf32>
}

// -----

// A reduction of two arrays: both are reshaped, with one initial value each.
// CHECK-LABEL: hlo.computation @two entry {
// CHECK:         %[[A:.*]] = hlo.reshape %x {{.*}} -> tensor<6x4xf32>
// CHECK-NEXT:    %[[B:.*]] = hlo.reshape %y {{.*}} -> tensor<6x4xf32>
// CHECK-NEXT:    hlo.reduce %[[A]], %[[B]], %z, %z {dimensions = array<i64: 1>
// CHECK:         -> tensor<2x3xf32>
// CHECK:         -> tensor<2x3xf32>
hlo.computation @first {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %c = hlo.parameter 2 {name = "c"} : tensor<f32>
  %d = hlo.parameter 3 {name = "d"} : tensor<f32>
  %m = hlo.maximum %a, %c {name = "m"} : tensor<f32>
  %n = hlo.add %b, %d {name = "n"} : tensor<f32>
  %t = hlo.tuple %m, %n {name = "t"} : (tensor<f32>, tensor<f32>) -> tuple<tensor<f32>, tensor<f32>>
  hlo.return %t : tuple<tensor<f32>, tensor<f32>>
}
hlo.computation @two entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2x3x4xf32>
  %y = hlo.parameter 1 {name = "y"} : tensor<2x3x4xf32>
  %z = hlo.constant {name = "z"} dense<0.0> : tensor<f32>
  %r = hlo.reduce %x, %y, %z, %z {dimensions = array<i64: 2>, name = "r", to_apply = @first} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<f32>, tensor<f32>) -> tuple<tensor<2x3xf32>, tensor<2x3xf32>>
  hlo.return %r : tuple<tensor<2x3xf32>, tensor<2x3xf32>>
}

// -----

// Of no dimension: each element is combined with the initial value, which JAX writes for `any` over no axis.
// CHECK-LABEL: hlo.computation @none entry {
// CHECK:         %[[FIVE:.*]] = hlo.broadcast %five {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT:    hlo.add %[[FIVE]], %x {name = "r.one"} : tensor<2x3xf32>
// CHECK-NOT:     hlo.reduce
hlo.computation @add {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
hlo.computation @none entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2x3xf32>
  %five = hlo.constant {name = "five"} dense<5.0> : tensor<f32>
  %r = hlo.reduce %x, %five {dimensions = array<i64>, name = "r", to_apply = @add} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  hlo.return %r : tensor<2x3xf32>
}

// -----

// By what is no single op: the column of a matrix of one row.
// CHECK-LABEL: hlo.computation @none_by_two_ops entry {
// CHECK:         %[[FLAT:.*]] = hlo.reshape %x {{.*}} -> tensor<1x6xf32>
// CHECK-NEXT:    hlo.reduce %[[FLAT]], %five {dimensions = array<i64: 0>
// CHECK:         -> tensor<2x3xf32>
hlo.computation @twice {
  %x = hlo.parameter 0 {name = "x"} : tensor<f32>
  %y = hlo.parameter 1 {name = "y"} : tensor<f32>
  %s = hlo.add %x, %y {name = "s"} : tensor<f32>
  %t = hlo.add %s, %y {name = "t"} : tensor<f32>
  hlo.return %t : tensor<f32>
}
hlo.computation @none_by_two_ops entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<2x3xf32>
  %five = hlo.constant {name = "five"} dense<5.0> : tensor<f32>
  %r = hlo.reduce %x, %five {dimensions = array<i64>, name = "r", to_apply = @twice} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  hlo.return %r : tensor<2x3xf32>
}
