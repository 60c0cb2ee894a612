// RUN: xla-emitters-opt --split-input-file -p disc-check-numbers %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-check-numbers,disc-check-numbers %s | filecheck %s

// The size of %t is data: the host compares it with the slice before the gather. That of %x is an argument's, and is checked before the run.
// CHECK-LABEL: hlo.computation @gathered entry {
// CHECK:         %t = hlo.set_dimension_size
// CHECK-NEXT:    %[[N:.*]] = hlo.get_dimension_size %t {dimensions = array<i64: 0>
// CHECK-NEXT:    %[[SIZE:.*]] = hlo.convert %[[N]]
// CHECK-NEXT:    %[[ONE:.*]] = hlo.constant {{.*}}dense<1> : tensor<i64>
// CHECK-NEXT:    %[[FITS:.*]] = hlo.compare %[[SIZE]], %[[ONE]] {direction = "GE"
// CHECK:         hlo.shape_assertion %[[FITS]], %[[SIZE]], %{{.*}} {message = "%g = gather: no window of {1} fits inside axis 0 of the operand, whose size is {0}"
// CHECK-NEXT:    %g = hlo.gather %t, %at
// CHECK-NEXT:    %h = hlo.gather %x, %at
hlo.computation @gathered entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %n = hlo.parameter 1 {name = "n"} : tensor<i32>
  %at = hlo.parameter 2 {name = "at"} : tensor<3x1xi32>
  %t = hlo.set_dimension_size %x, %n {dimensions = array<i64: 0>, name = "t"} : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
  %g = hlo.gather %t, %at {collapsed_slice_dims = array<i64: 0>, index_vector_dim = 1 : i64, name = "g", offset_dims = array<i64>, slice_sizes = array<i64: 1>, start_index_map = array<i64: 0>} : (tensor<?xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  %h = hlo.gather %x, %at {collapsed_slice_dims = array<i64: 0>, index_vector_dim = 1 : i64, name = "h", offset_dims = array<i64>, slice_sizes = array<i64: 1>, start_index_map = array<i64: 0>} : (tensor<?xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  %y = hlo.add %g, %h {name = "y"} : tensor<3xf32>
  hlo.return %y : tensor<3xf32>
}

// -----

// Of a window of zero elements there is nothing to check; of an update the window has the update's size.
// CHECK-LABEL: hlo.computation @updated entry {
// CHECK:         hlo.shape_assertion {{.*}}"%t = set-dimension-size: the size {0} is not in [0, {1}]"
// CHECK-NEXT:    %t = hlo.set_dimension_size
// CHECK-NEXT:    %e = hlo.dynamic_slice
// CHECK:         hlo.shape_assertion {{.*}}"%u = dynamic-update-slice: no window of {1} fits inside axis 0 of the operand, whose size is {0}"
// CHECK-NEXT:    %u = hlo.dynamic_update_slice
hlo.computation @updated entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %n = hlo.parameter 1 {name = "n"} : tensor<i32>
  %new = hlo.parameter 2 {name = "new"} : tensor<2xf32>
  %t = hlo.set_dimension_size %x, %n {dimensions = array<i64: 0>, name = "t"} : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
  %e = hlo.dynamic_slice %t, %n {dynamic_slice_sizes = array<i64: 0>, name = "e"} : (tensor<?xf32>, tensor<i32>) -> tensor<0xf32>
  %u = hlo.dynamic_update_slice %t, %new, %n {name = "u"} : (tensor<?xf32>, tensor<2xf32>, tensor<i32>) -> tensor<?xf32>
  hlo.return %u : tensor<?xf32>
}

// -----

// What is known is not checked: of the step 1 nothing.
// CHECK-LABEL: hlo.computation @sliced entry {
// CHECK-NOT:     hlo.shape_assertion
// CHECK:         %[[AT:.*]] = hlo.convert
// CHECK:         hlo.shape_assertion {{.*}}, %[[AT]], {{.*}} {message = "%y = real-dynamic-slice: the range [{0}:{1}] is not inside axis 0 of the operand, whose size is {2}"
// CHECK-NEXT:    %y = hlo.real_dynamic_slice
hlo.computation @sliced entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<8xf32>
  %at = hlo.parameter 1 {name = "at"} : tensor<1xi32>
  %two = hlo.constant {name = "two"} dense<2> : tensor<1xi32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<1xi32>
  %end = hlo.add %at, %two {name = "end"} : tensor<1xi32>
  %y = hlo.real_dynamic_slice %x, %at, %end, %one {name = "y"} : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
  hlo.return %y : tensor<2xf32>
}

// -----

// A start that is clamped as JAX writes it is inside.
// CHECK-LABEL: hlo.computation @clamped entry {
// CHECK-NOT:     hlo.shape_assertion
// CHECK:         hlo.return
hlo.computation @clamped entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<8xf32>
  %at = hlo.parameter 1 {name = "at"} : tensor<1xi32>
  %zero = hlo.constant {name = "zero"} dense<0> : tensor<1xi32>
  %last = hlo.constant {name = "last"} dense<6> : tensor<1xi32>
  %two = hlo.constant {name = "two"} dense<2> : tensor<1xi32>
  %one = hlo.constant {name = "one"} dense<1> : tensor<1xi32>
  %start = hlo.clamp %zero, %at, %last {name = "start"} : tensor<1xi32>
  %end = hlo.add %start, %two {name = "end"} : tensor<1xi32>
  %y = hlo.real_dynamic_slice %x, %start, %end, %one {name = "y"} : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
  hlo.return %y : tensor<2xf32>
}

// -----

// A slice of an axis that data cut; a convolution of one whose result's type says a size.
// CHECK-LABEL: hlo.computation @cut entry {
// CHECK:         %[[SIZE:.*]] = hlo.convert %get_dimension_size
// CHECK:         hlo.shape_assertion {{.*}}, %[[SIZE]], {{.*}} {message = "%y = slice: the range [1:{1}] is not inside axis 2 of the operand, whose size is {0}"
// CHECK-NEXT:    %y = hlo.slice
// CHECK:         hlo.shape_assertion {{.*}} {message = "%z = convolution: the size of axis 2 is {0}, where the result's type says {1}"
// CHECK-NEXT:    %z = hlo.convolution
hlo.computation @cut entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<1x1x8xf32>
  %n = hlo.parameter 1 {name = "n"} : tensor<i32>
  %k = hlo.parameter 2 {name = "k"} : tensor<1x1x3xf32>
  %t = hlo.set_dimension_size %x, %n {dimensions = array<i64: 2>, name = "t"} : (tensor<1x1x8xf32>, tensor<i32>) -> tensor<1x1x?xf32>
  %y = hlo.slice %t {name = "y", slice = [array<i64: 0, 1, 1>, array<i64: 0, 1, 1>, array<i64: 1, 4, 1>]} : (tensor<1x1x?xf32>) -> tensor<1x1x3xf32>
  %z = hlo.convolution %t, %k {dim_labels = "bf0_oi0->bf0", name = "z", window = #hlo.window<size = [3], pad = [1, 1]>} : (tensor<1x1x?xf32>, tensor<1x1x3xf32>) -> tensor<1x1x3xf32>
  %r = hlo.add %y, %z {name = "r"} : tensor<1x1x3xf32>
  hlo.return %r : tensor<1x1x3xf32>
}
