// RUN: xla-emitters-opt -p disc-placer --split-input-file %s | filecheck %s

// A shape operand and what it is computed from are on the host; the data is on the device. A size that is data too is copied there.
// CHECK-LABEL: hlo.computation @shapes entry {
// CHECK:         %x = hlo.parameter 0 {disc.device = "gpu"
// CHECK:         %n = hlo.get_dimension_size %x {{.*}}disc.device = "cpu"
// CHECK:         %s = hlo.concatenate %r, %four {{.*}}disc.device = "cpu"
// CHECK:         %y = hlo.dynamic_reshape %x, %s {disc.device = "gpu"
// CHECK:         %[[N:.*]] = hlo.h2d %n {disc.device = "gpu"
// CHECK-NEXT:    %f = hlo.convert %[[N]] {disc.device = "gpu"
// CHECK:         hlo.tuple %y, %f {disc.device = ["gpu", "gpu"]
hlo.computation @shapes entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?xf32>) -> tensor<i32>
  %c = hlo.constant {name = "c"} dense<4> : tensor<i32>
  %q = hlo.divide %n, %c {name = "q"} : tensor<i32>
  %r = hlo.reshape %q {name = "r"} : (tensor<i32>) -> tensor<1xi32>
  %four = hlo.reshape %c {name = "four"} : (tensor<i32>) -> tensor<1xi32>
  %s = hlo.concatenate %r, %four {dimensions = array<i64: 0>, name = "s"} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %y = hlo.dynamic_reshape %x, %s {name = "y"} : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %f = hlo.convert %n {name = "f"} : (tensor<i32>) -> tensor<f32>
  %t = hlo.tuple %y, %f {name = "t"} : (tensor<?x4xf32>, tensor<f32>) -> tuple<tensor<?x4xf32>, tensor<f32>>
  hlo.return %t : tuple<tensor<?x4xf32>, tensor<f32>>
}

// -----

// A size that is a parameter is on the device and copied to the host. A constant that both sides read is one on each, not a copy.
// CHECK-LABEL: hlo.computation @parameter entry {
// CHECK:         %n = hlo.parameter 0 {disc.device = "gpu"
// CHECK:         %[[H:.*]] = hlo.d2h %n {disc.device = "cpu"
// CHECK-NEXT:    %r = hlo.reshape %[[H]] {disc.device = "cpu"
// CHECK-NOT:     hlo.h2d
// CHECK:         hlo.constant {disc.device = "gpu", {{.*}} dense<1>
hlo.computation @parameter entry {
  %n = hlo.parameter 0 {name = "n"} : tensor<i32>
  %x = hlo.parameter 1 {name = "x"} : tensor<i32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<i32>
  %r = hlo.reshape %n {name = "r"} : (tensor<i32>) -> tensor<1xi32>
  %u = hlo.reshape %one {name = "u"} : (tensor<i32>) -> tensor<1xi32>
  %s = hlo.add %r, %u {name = "s"} : tensor<1xi32>
  %y = hlo.add %x, %one {name = "y"} : tensor<i32>
  %z = hlo.dynamic_broadcast_in_dim %y, %s {dimensions = array<i64>, name = "z"} : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
  hlo.return %z : tensor<?xi32>
}

// -----

// A loop: the counter and the condition are on the host, in the initial tuple, the body and the result alike; the data stays on the device.
// CHECK-LABEL: hlo.computation @condition {
// CHECK:         hlo.compare %i, %n {direction = "LT", disc.device = "cpu"
// CHECK-LABEL: hlo.computation @body {
// CHECK:         %p = hlo.parameter 0 {disc.device = ["cpu", "gpu", "cpu"]
// CHECK:         %j = hlo.add %i, %one {disc.device = "cpu"
// CHECK:         %[[I:.*]] = hlo.h2d %i
// CHECK-NEXT:    %f = hlo.convert %[[I]] {disc.device = "gpu"
// CHECK:         hlo.tuple %j, %y, %n {disc.device = ["cpu", "gpu", "cpu"]
// CHECK-LABEL: hlo.computation @loop entry {
// CHECK:         hlo.while %init {{.*}}disc.device = ["cpu", "gpu", "cpu"]
hlo.computation @condition {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<f32>, tensor<i32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<f32>, tensor<i32>>) -> tensor<i32>
  %n = hlo.get_tuple_element %p {index = 2 : i64, name = "n"} : (tuple<tensor<i32>, tensor<f32>, tensor<i32>>) -> tensor<i32>
  %c = hlo.compare %i, %n {direction = "LT", name = "c"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  hlo.return %c : tensor<i1>
}
hlo.computation @body {
  %p = hlo.parameter 0 {name = "p"} : tuple<tensor<i32>, tensor<f32>, tensor<i32>>
  %i = hlo.get_tuple_element %p {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<f32>, tensor<i32>>) -> tensor<i32>
  %x = hlo.get_tuple_element %p {index = 1 : i64, name = "x"} : (tuple<tensor<i32>, tensor<f32>, tensor<i32>>) -> tensor<f32>
  %n = hlo.get_tuple_element %p {index = 2 : i64, name = "n"} : (tuple<tensor<i32>, tensor<f32>, tensor<i32>>) -> tensor<i32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<i32>
  %j = hlo.add %i, %one {name = "j"} : tensor<i32>
  %f = hlo.convert %i {name = "f"} : (tensor<i32>) -> tensor<f32>
  %y = hlo.add %x, %f {name = "y"} : tensor<f32>
  %t = hlo.tuple %j, %y, %n {name = "t"} : (tensor<i32>, tensor<f32>, tensor<i32>) -> tuple<tensor<i32>, tensor<f32>, tensor<i32>>
  hlo.return %t : tuple<tensor<i32>, tensor<f32>, tensor<i32>>
}
hlo.computation @loop entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %v = hlo.parameter 1 {name = "v"} : tensor<f32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?xf32>) -> tensor<i32>
  %zero = hlo.constant {name = "zero"} dense<0> : tensor<i32>
  %init = hlo.tuple %zero, %v, %n {name = "init"} : (tensor<i32>, tensor<f32>, tensor<i32>) -> tuple<tensor<i32>, tensor<f32>, tensor<i32>>
  %loop = hlo.while %init {body = @body, condition = @condition, name = "loop"} : tuple<tensor<i32>, tensor<f32>, tensor<i32>>
  %r = hlo.get_tuple_element %loop {index = 1 : i64, name = "r"} : (tuple<tensor<i32>, tensor<f32>, tensor<i32>>) -> tensor<f32>
  hlo.return %r : tensor<f32>
}

// -----

// Token ids are data: by default their arithmetic stays on the device. A selector of a branch is read on the host.
// CHECK-LABEL: hlo.computation @ids entry {
// CHECK-NOT:     "cpu"
// CHECK:         hlo.gather
// CHECK:         return
hlo.computation @ids entry {
  %ids = hlo.parameter 0 {name = "ids"} : tensor<?x1xi32>
  %table = hlo.parameter 1 {name = "table"} : tensor<9x4xf32>
  %twice = hlo.add %ids, %ids {name = "twice"} : tensor<?x1xi32>
  %g = hlo.gather %table, %twice {collapsed_slice_dims = array<i64: 0>, index_vector_dim = 1 : i64, name = "g", offset_dims = array<i64: 1>, slice_sizes = array<i64: 1, 4>, start_index_map = array<i64: 0>} : (tensor<9x4xf32>, tensor<?x1xi32>) -> tensor<?x4xf32>
  hlo.return %g : tensor<?x4xf32>
}
