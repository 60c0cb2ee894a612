// RUN: xla-emitters-opt -p disc-shape-optimization --split-input-file %s | filecheck %s

// The second list of the same sizes is the first; one that is known is a constant; what nothing reads is gone.
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         %n = hlo.get_dimension_size %x
// CHECK-NOT:     hlo.get_dimension_size
// CHECK:         %s = hlo.concatenate %r, %four
// CHECK-NOT:     hlo.concatenate
// CHECK:         %y = hlo.dynamic_broadcast_in_dim %c, %s
// CHECK:         %z = hlo.dynamic_broadcast_in_dim %c, %s
// CHECK:         %[[K:.*]] = hlo.constant {name = "k"} dense<7> : tensor<1xi32>
// CHECK:         hlo.dynamic_iota %[[K]]
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %c = hlo.constant {name = "c"} dense<1.0> : tensor<f32>
  %four = hlo.constant {name = "four"} dense<4> : tensor<1xi32>
  %three = hlo.constant {name = "three"} dense<3> : tensor<1xi32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?xf32>) -> tensor<i32>
  %r = hlo.reshape %n {name = "r"} : (tensor<i32>) -> tensor<1xi32>
  %s = hlo.concatenate %r, %four {dimensions = array<i64: 0>, name = "s"} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %y = hlo.dynamic_broadcast_in_dim %c, %s {dimensions = array<i64>, name = "y"} : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
  %m = hlo.get_dimension_size %y {dimensions = array<i64: 0>, name = "m"} : (tensor<?x4xf32>) -> tensor<i32>
  %q = hlo.reshape %m {name = "q"} : (tensor<i32>) -> tensor<1xi32>
  %d = hlo.concatenate %q, %four {dimensions = array<i64: 0>, name = "d"} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %z = hlo.dynamic_broadcast_in_dim %c, %d {dimensions = array<i64>, name = "z"} : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
  %k = hlo.add %four, %three {name = "k"} : tensor<1xi32>
  %i = hlo.dynamic_iota %k {iota_dimension = 0 : i64, name = "i"} : (tensor<1xi32>) -> tensor<?xf32>
  %sum = hlo.add %y, %z {name = "sum"} : tensor<?x4xf32>
  %t = hlo.tuple %sum, %i {name = "t"} : (tensor<?x4xf32>, tensor<?xf32>) -> tuple<tensor<?x4xf32>, tensor<?xf32>>
  hlo.return %t : tuple<tensor<?x4xf32>, tensor<?xf32>>
}

// -----

// The sizes that an assertion compares stay two, though it makes them equal. Numbers of the data are not compared.
// CHECK-LABEL: hlo.computation @asserted entry {
// CHECK:         %m = hlo.get_dimension_size %x {dimensions = array<i64: 0>
// CHECK:         %n = hlo.get_dimension_size %x {dimensions = array<i64: 1>
// CHECK:         hlo.compare %m, %n
// CHECK:         hlo.shape_assertion
// CHECK:         hlo.add %i, %i
// CHECK:         hlo.add %i, %i
hlo.computation @asserted entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?xf32>
  %i = hlo.parameter 1 {name = "i"} : tensor<i32>
  %m = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "m"} : (tensor<?x?xf32>) -> tensor<i32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 1>, name = "n"} : (tensor<?x?xf32>) -> tensor<i32>
  %p = hlo.compare %m, %n {direction = "EQ", name = "p"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %a = hlo.shape_assertion %p, %m, %n {message = "{0} is not {1}", name = "a"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tuple<>
  %j = hlo.add %i, %i {name = "j"} : tensor<i32>
  %k = hlo.add %i, %i {name = "k"} : tensor<i32>
  %t = hlo.tuple %j, %k {name = "t"} : (tensor<i32>, tensor<i32>) -> tuple<tensor<i32>, tensor<i32>>
  hlo.return %t : tuple<tensor<i32>, tensor<i32>>
}
