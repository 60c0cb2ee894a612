// RUN: xla-emitters-opt -p disc-loop-invariant --split-input-file %s | filecheck %s

// Step 1, the seed's picture: %w goes through the loop unchanged. It is an operand of the loop then, and the loop's result is itself.
// Step 2: what depends on it alone is computed before the loop, with the constant that it needs; the constant of the counter stays.
// CHECK-LABEL: hlo.computation @condition {
// CHECK-DAG:     hlo.parameter 0 {{.*}} : tuple<tensor<i32>, tensor<4xf32>>
// CHECK-DAG:     hlo.parameter 1 {{.*}} : tensor<4xf32>
// CHECK-DAG:     hlo.parameter 2 {{.*}} : tensor<i32>
// CHECK-LABEL: hlo.computation @body {
// CHECK-DAG:     %[[SAME:.*]] = hlo.parameter 1 {{.*}} : tensor<4xf32>
// CHECK-NOT:     hlo.exponential
// CHECK:         hlo.add %x, %[[SAME]]
// CHECK:         hlo.tuple %j, %y {{.*}} -> tuple<tensor<i32>, tensor<4xf32>>
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         %e = hlo.exponential %w
// CHECK:         %[[INIT:.*]] = hlo.tuple %zero, %v
// CHECK-NEXT:    %[[LOOP:.*]] = hlo.while %[[INIT]], %e, %n {
// CHECK:         hlo.tuple %{{.*}}, %w
hlo.computation @condition {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %n = hlo.get_tuple_element %p {index = 3 : i64, name = "n"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %c = hlo.compare %i, %n {direction = "LT", name = "c"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  hlo.return %c : tensor<i1>
}
hlo.computation @body {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %x = hlo.get_tuple_element %p {index = 1 : i64, name = "x"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  %w = hlo.get_tuple_element %p {index = 2 : i64, name = "w"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  %n = hlo.get_tuple_element %p {index = 3 : i64, name = "n"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<i32>
  %j = hlo.add %i, %one {name = "j"} : tensor<i32>
  %e = hlo.exponential %w {name = "e"} : tensor<4xf32>
  %y = hlo.add %x, %e {name = "y"} : tensor<4xf32>
  %t = hlo.tuple %j, %y, %w, %n {name = "t"} : (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>
  hlo.return %t : tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>
}
hlo.computation @main entry {
  %v = hlo.parameter 0 {name = "v"} : tensor<4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<4xf32>
  %n = hlo.parameter 2 {name = "n"} : tensor<i32>
  %zero = hlo.constant {name = "zero"} dense<0> : tensor<i32>
  %init = hlo.tuple %zero, %v, %w, %n {name = "init"} : (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>
  %loop = hlo.while %init {body = @body, condition = @condition, name = "loop"} : tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>
  %y = hlo.get_tuple_element %loop {index = 1 : i64, name = "y"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  %u = hlo.get_tuple_element %loop {index = 2 : i64, name = "u"} : (tuple<tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  %r = hlo.tuple %y, %u {name = "r"} : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
  hlo.return %r : tuple<tensor<4xf32>, tensor<4xf32>>
}

// -----

// A body whose values all come from outside of the loop: what it computes is moved, its tuple stays.
// CHECK-LABEL: hlo.computation @body {
// CHECK:         %[[E:.*]] = hlo.parameter 1 {{.*}} : tensor<4xf32>
// CHECK:         %{{.*}} = hlo.parameter 0 {{.*}} : tuple<tensor<i1>, tensor<4xf32>>
// CHECK-NOT:     hlo.exponential
// CHECK:         hlo.tuple %{{.*}}, %[[E]] {{.*}} -> tuple<tensor<i1>, tensor<4xf32>>
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         %[[E:.*]] = hlo.exponential %w
// CHECK:         %[[INIT:.*]] = hlo.tuple %again, %v
// CHECK-NEXT:    hlo.while %[[INIT]], %[[E]] {
hlo.computation @condition {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>
  %c = hlo.get_tuple_element %p {index = 0 : i64, name = "c"} : (tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>) -> tensor<i1>
  hlo.return %c : tensor<i1>
}
hlo.computation @body {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>
  %w = hlo.get_tuple_element %p {index = 2 : i64, name = "w"} : (tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  %no = hlo.constant {name = "no"} dense<false> : tensor<i1>
  %e = hlo.exponential %w {name = "e"} : tensor<4xf32>
  %t = hlo.tuple %no, %e, %w {name = "t"} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>
  hlo.return %t : tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>
}
hlo.computation @main entry {
  %v = hlo.parameter 0 {name = "v"} : tensor<4xf32>
  %w = hlo.parameter 1 {name = "w"} : tensor<4xf32>
  %again = hlo.parameter 2 {name = "again"} : tensor<i1>
  %init = hlo.tuple %again, %v, %w {name = "init"} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>
  %loop = hlo.while %init {body = @body, condition = @condition, name = "loop"} : tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>
  %y = hlo.get_tuple_element %loop {index = 1 : i64, name = "y"} : (tuple<tensor<i1>, tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  %r = hlo.tuple %y {name = "r"} : (tensor<4xf32>) -> tuple<tensor<4xf32>>
  hlo.return %r : tuple<tensor<4xf32>>
}
