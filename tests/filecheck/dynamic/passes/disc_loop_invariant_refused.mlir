// RUN: xla-emitters-opt -p disc-loop-invariant --remarks %s 2>&1 | filecheck %s

// The loop may run zero times: an integer division, a reshape whose sizes are not proven and a random number stay in it. A loop whose
// body swaps what it carries has nothing that is the same.
// CHECK-DAG: disc-loop-invariant: skipped hlo.divide: it does not depend on the loop, but an integer division may fail
// CHECK-DAG: disc-loop-invariant: skipped hlo.dynamic_reshape: it does not depend on the loop, but its sizes are not proven to fit
// CHECK-DAG: disc-loop-invariant: skipped hlo.rng: it does not depend on the loop, but 'rng' is not moved
// CHECK-DAG: hlo.computation @body
// CHECK-DAG: hlo.divide
// CHECK-DAG: hlo.dynamic_reshape
// CHECK-DAG: hlo.rng
hlo.computation @condition {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %yes = hlo.constant {name = "yes"} dense<false> : tensor<i1>
  hlo.return %yes : tensor<i1>
}
hlo.computation @body {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<i32>
  %x = hlo.get_tuple_element %p {index = 1 : i64, name = "x"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<?xf32>
  %s = hlo.get_tuple_element %p {index = 2 : i64, name = "s"} : (tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>) -> tensor<1xi32>
  %q = hlo.divide %s, %s {name = "q"} : tensor<1xi32>
  %z = hlo.reshape %q {name = "z"} : (tensor<1xi32>) -> tensor<i32>
  %y = hlo.dynamic_reshape %x, %s {name = "y"} : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %low = hlo.constant {name = "low"} dense<0.0> : tensor<f32>
  %rng = hlo.rng %low, %low {distribution = "rng_uniform", name = "rng"} : tensor<f32>
  %k = hlo.convert %rng {name = "k"} : (tensor<f32>) -> tensor<i32>
  %j = hlo.add %i, %z {name = "j"} : tensor<i32>
  %l = hlo.add %j, %k {name = "l"} : tensor<i32>
  %m = hlo.get_dimension_size %y {dimensions = array<i64: 0>, name = "m"} : (tensor<?xf32>) -> tensor<i32>
  %o = hlo.add %l, %m {name = "o"} : tensor<i32>
  %t = hlo.tuple %o, %x, %s {name = "t"} : (tensor<i32>, tensor<?xf32>, tensor<1xi32>) -> tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  hlo.return %t : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %s = hlo.parameter 1 {name = "s"} : tensor<1xi32>
  %zero = hlo.constant {name = "zero"} dense<0> : tensor<i32>
  %init = hlo.tuple %zero, %x, %s {name = "init"} : (tensor<i32>, tensor<?xf32>, tensor<1xi32>) -> tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  %loop = hlo.while %init {body = @body, condition = @condition, name = "loop"} : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
  hlo.return %loop : tuple<tensor<i32>, tensor<?xf32>, tensor<1xi32>>
}
