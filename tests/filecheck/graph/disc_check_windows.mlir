// RUN: xla-emitters-opt --split-input-file -p disc-check-windows %s | filecheck %s

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
// CHECK-NOT:     hlo.shape_assertion
// CHECK:         %e = hlo.dynamic_slice
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
