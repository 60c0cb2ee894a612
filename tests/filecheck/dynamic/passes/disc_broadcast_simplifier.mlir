// RUN: xla-emitters-opt -p disc-broadcast-simplifier --split-input-file %s | filecheck %s

// The seed's case a: [[1,2,3],[4,5,6]] + [7,8,9] with dimension 1, and + 7, a scalar, which has no dimension.
// CHECK-LABEL: hlo.computation @rank entry {
// CHECK:         %[[S:.*]] = hlo.constant {{.*}} dense<[2, 3]> : tensor<2xi64>
// CHECK-NEXT:    %[[B:.*]] = hlo.dynamic_broadcast_in_dim %row, %[[S]] {dimensions = array<i64: 1>, {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT:    %sum = hlo.add %m, %[[B]] {{.*}}disc.no_implicit_broadcast{{.*}} : tensor<2x3xf32>
// CHECK:         hlo.dynamic_broadcast_in_dim %seven, %{{.*}} {dimensions = array<i64>
hlo.computation @rank entry {
  %m = hlo.constant {name = "m"} dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %row = hlo.constant {name = "row"} dense<[7.0, 8.0, 9.0]> : tensor<3xf32>
  %seven = hlo.constant {name = "seven"} dense<7.0> : tensor<f32>
  %sum = hlo.add %m, %row {broadcast_dimensions = array<i64: 1>, name = "sum"} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %all = hlo.add %sum, %seven {broadcast_dimensions = array<i64>, name = "all"} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  hlo.return %all : tensor<2x3xf32>
}

// -----

// The seed's cases b and c: (1,2,5) and (7,2,5) give (7,2,5); (4,1) and (1,2) give (4,2): both are repeated, by one list of sizes.
// CHECK-LABEL: hlo.computation @degenerate entry {
// CHECK:         %[[A:.*]] = hlo.dynamic_broadcast_in_dim %a, %{{.*}} {dimensions = array<i64: 0, 1, 2>, {{.*}} -> tensor<7x2x5xf32>
// CHECK-NEXT:    hlo.add %[[A]], %b
// CHECK:         %[[S:.*]] = hlo.constant {{.*}} dense<[4, 2]>
// CHECK-NEXT:    %[[C:.*]] = hlo.dynamic_broadcast_in_dim %c, %[[S]]
// CHECK-NEXT:    %[[D:.*]] = hlo.dynamic_broadcast_in_dim %d, %[[S]]
// CHECK-NEXT:    hlo.add %[[C]], %[[D]]
hlo.computation @degenerate entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<1x2x5xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<7x2x5xf32>
  %c = hlo.parameter 2 {name = "c"} : tensor<4x1xf32>
  %d = hlo.parameter 3 {name = "d"} : tensor<1x2xf32>
  %s = hlo.add %a, %b {broadcast_dimensions = array<i64>, name = "s"} : (tensor<1x2x5xf32>, tensor<7x2x5xf32>) -> tensor<7x2x5xf32>
  %u = hlo.add %c, %d {broadcast_dimensions = array<i64>, name = "u"} : (tensor<4x1xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %t = hlo.tuple %s, %u {name = "t"} : (tensor<7x2x5xf32>, tensor<4x2xf32>) -> tuple<tensor<7x2x5xf32>, tensor<4x2xf32>>
  hlo.return %t : tuple<tensor<7x2x5xf32>, tensor<4x2xf32>>
}

// -----

// Unknown sizes: the result's is r where l is 1, else l. No maximum: 0 and 1 give 0. Both operands are broadcast.
// CHECK-LABEL: hlo.computation @unknown entry {
// CHECK:         %[[ONE:.*]] = hlo.compare %[[L:.*]], %{{.*}} {direction = "EQ"
// CHECK-NEXT:    hlo.select %[[ONE]], %{{.*}}, %[[L]]
// CHECK-NOT:     hlo.maximum
// CHECK-COUNT-2: hlo.dynamic_broadcast_in_dim
hlo.computation @unknown entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x?xf32>
  %b = hlo.parameter 1 {name = "b"} : tensor<?xf32>
  %s = hlo.add %a, %b {broadcast_dimensions = array<i64: 1>, name = "s"} : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  hlo.return %s : tensor<?x?xf32>
}

// -----

// Known to be equal: nothing is inserted. An op without the attribute is HLO's own. One that was here before is left.
// CHECK-LABEL: hlo.computation @equal entry {
// CHECK-NOT:     hlo.dynamic_broadcast_in_dim
// CHECK:         hlo.return
hlo.computation @equal entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x4xf32>
  %n = hlo.negate %a {name = "n"} : tensor<?x4xf32>
  %s = hlo.add %a, %n {broadcast_dimensions = array<i64>, name = "s"} : tensor<?x4xf32>
  %u = hlo.multiply %s, %a {name = "u"} : tensor<?x4xf32>
  %v = hlo.add %u, %a {broadcast_dimensions = array<i64>, disc.no_implicit_broadcast, name = "v"} : tensor<?x4xf32>
  hlo.return %v : tensor<?x4xf32>
}
