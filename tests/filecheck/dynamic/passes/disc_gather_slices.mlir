// RUN: xla-emitters-opt --split-input-file -p disc-gather-slices %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-gather-slices --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The place is an argument: a gather reads it on the device, only the sizes are for the host.
// CHECK-LABEL: hlo.computation @argument entry {
// CHECK:         %start = hlo.clamp
// CHECK-NOT:     hlo.add
// CHECK:         hlo.dynamic_gather %x, %start, %sizes {collapsed_slice_dims = array<i64>, index_vector_dim = 0 : i64, {{.*}}offset_dims = array<i64: 0, 1>, start_index_map = array<i64: 0, 1>}
hlo.computation @argument entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x8xf32>
  %at = hlo.parameter 1 {name = "at"} : tensor<2xi32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?x8xf32>) -> tensor<i32>
  %r = hlo.reshape %n {name = "r"} : (tensor<i32>) -> tensor<1xi32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<1xi32>
  %sizes = hlo.concatenate %r, %one {dimensions = array<i64: 0>, name = "sizes"} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %zero = hlo.constant {name = "zero"} dense<0> : tensor<2xi32>
  %last = hlo.constant {name = "last"} dense<[0, 7]> : tensor<2xi32>
  %start = hlo.clamp %zero, %at, %last {name = "start"} : tensor<2xi32>
  %limit = hlo.add %start, %sizes {name = "limit"} : tensor<2xi32>
  %ones = hlo.constant {name = "ones"} dense<1> : tensor<2xi32>
  %y = hlo.real_dynamic_slice %x, %start, %limit, %ones {name = "y"} : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x1xf32>
  hlo.return %y : tensor<?x1xf32>
}

// -----

// The place is known on the host, or is not clamped, or the step is 2: these are slices.
// CHECK-LABEL: hlo.computation @left entry {
// CHECK:         %a = hlo.real_dynamic_slice
// CHECK:         %b = hlo.real_dynamic_slice
// CHECK:         %c = hlo.real_dynamic_slice
// REMARK: skipped hlo.real_dynamic_slice: its place comes from data and is not clamped
// REMARK: skipped hlo.real_dynamic_slice: its step is not known to be 1
hlo.computation @left entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %at = hlo.parameter 1 {name = "at"} : tensor<1xi32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?xf32>) -> tensor<i32>
  %sizes = hlo.reshape %n {name = "sizes"} : (tensor<i32>) -> tensor<1xi32>
  %zero = hlo.constant {name = "zero"} dense<0> : tensor<1xi32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<1xi32>
  %two = hlo.constant {name = "two"} dense<2> : tensor<1xi32>
  %s = hlo.clamp %zero, %sizes, %one {name = "s"} : tensor<1xi32>
  %e = hlo.add %s, %sizes {name = "e"} : tensor<1xi32>
  %a = hlo.real_dynamic_slice %x, %s, %e, %one {name = "a"} : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %f = hlo.add %at, %sizes {name = "f"} : tensor<1xi32>
  %b = hlo.real_dynamic_slice %x, %at, %f, %one {name = "b"} : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %t = hlo.clamp %zero, %at, %one {name = "t"} : tensor<1xi32>
  %g = hlo.add %t, %sizes {name = "g"} : tensor<1xi32>
  %c = hlo.real_dynamic_slice %x, %t, %g, %two {name = "c"} : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %r = hlo.tuple %a, %b, %c {name = "r"} : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> tuple<tensor<?xf32>, tensor<?xf32>, tensor<?xf32>>
  hlo.return %r : tuple<tensor<?xf32>, tensor<?xf32>, tensor<?xf32>>
}
