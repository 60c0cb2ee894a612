// RUN: xla-emitters-opt -p disc-element-type-converter --split-input-file %s | filecheck %s

// The seed's example: a reduction of i1 becomes one of 32 bits. `and` is the minimum, `or` the maximum.
// CHECK-LABEL: hlo.computation @minimum_u32
// CHECK:         hlo.minimum %x, %y {{.*}} : tensor<ui32>
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         %[[X:.*]] = hlo.convert %m {{.*}} : (tensor<?x?xi1>) -> tensor<?x?xui32>
// CHECK-NEXT:    %[[I:.*]] = hlo.convert %t {{.*}} : (tensor<i1>) -> tensor<ui32>
// CHECK-NEXT:    %[[R:.*]] = hlo.reduce %[[X]], %[[I]] {dimensions = array<i64: 0>, {{.*}}to_apply = @minimum_u32}
// CHECK-NEXT:    hlo.convert %[[R]] {{.*}} : (tensor<?xui32>) -> tensor<?xi1>
hlo.computation @and {
  %x = hlo.parameter 0 {name = "x"} : tensor<i1>
  %y = hlo.parameter 1 {name = "y"} : tensor<i1>
  %s = hlo.and %x, %y {name = "s"} : tensor<i1>
  hlo.return %s : tensor<i1>
}
hlo.computation @main entry {
  %m = hlo.parameter 0 {name = "m"} : tensor<?x?xi1>
  %t = hlo.constant {name = "t"} dense<true> : tensor<i1>
  %r = hlo.reduce %m, %t {dimensions = array<i64: 0>, name = "r", to_apply = @and} : (tensor<?x?xi1>, tensor<i1>) -> tensor<?xi1>
  hlo.return %r : tensor<?xi1>
}

// -----

// The largest element of i1, of each row, and the smallest of each column.
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         %[[X:.*]] = hlo.convert %m {{.*}} : (tensor<?x?xi1>) -> tensor<?x?xui32>
// CHECK:         %[[R:.*]] = hlo.reduce %[[X]], {{.*}}to_apply = @maximum_u32}
// CHECK-NEXT:    hlo.convert %[[R]] {{.*}} : (tensor<?xui32>) -> tensor<?xi1>
// CHECK:         hlo.reduce {{.*}}to_apply = @minimum_u32}
hlo.computation @largest {
  %x = hlo.parameter 0 {name = "x"} : tensor<i1>
  %y = hlo.parameter 1 {name = "y"} : tensor<i1>
  %s = hlo.maximum %x, %y {name = "s"} : tensor<i1>
  hlo.return %s : tensor<i1>
}
hlo.computation @smallest {
  %x = hlo.parameter 0 {name = "x"} : tensor<i1>
  %y = hlo.parameter 1 {name = "y"} : tensor<i1>
  %s = hlo.minimum %x, %y {name = "s"} : tensor<i1>
  hlo.return %s : tensor<i1>
}
hlo.computation @main entry {
  %m = hlo.parameter 0 {name = "m"} : tensor<?x?xi1>
  %f = hlo.constant {name = "f"} dense<false> : tensor<i1>
  %t = hlo.constant {name = "t"} dense<true> : tensor<i1>
  %r = hlo.reduce %m, %f {dimensions = array<i64: 1>, name = "r", to_apply = @largest} : (tensor<?x?xi1>, tensor<i1>) -> tensor<?xi1>
  %q = hlo.reduce %m, %t {dimensions = array<i64: 0>, name = "q", to_apply = @smallest} : (tensor<?x?xi1>, tensor<i1>) -> tensor<?xi1>
  %u = hlo.tuple %r, %q {name = "u"} : (tensor<?xi1>, tensor<?xi1>) -> tuple<tensor<?xi1>, tensor<?xi1>>
  hlo.return %u : tuple<tensor<?xi1>, tensor<?xi1>>
}

// -----

// A sum of s8 in s32 and cut again is the sum that wraps around. The minimum of u8 is that of u32: zeros before it.
// CHECK-LABEL: hlo.computation @main entry {
// CHECK:         hlo.convert %a {{.*}} : (tensor<?x4xi8>) -> tensor<?x4xi32>
// CHECK:         to_apply = @add_s32
// CHECK:         -> tensor<4xi8>
// CHECK:         hlo.convert %b {{.*}} : (tensor<?x4xui8>) -> tensor<?x4xui32>
// CHECK:         to_apply = @minimum_u32
hlo.computation @sum {
  %x = hlo.parameter 0 {name = "x"} : tensor<i8>
  %y = hlo.parameter 1 {name = "y"} : tensor<i8>
  %s = hlo.add %x, %y {name = "s"} : tensor<i8>
  hlo.return %s : tensor<i8>
}
hlo.computation @least {
  %x = hlo.parameter 0 {name = "x"} : tensor<ui8>
  %y = hlo.parameter 1 {name = "y"} : tensor<ui8>
  %s = hlo.minimum %x, %y {name = "s"} : tensor<ui8>
  hlo.return %s : tensor<ui8>
}
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x4xi8>
  %b = hlo.parameter 1 {name = "b"} : tensor<?x4xui8>
  %z = hlo.constant {name = "z"} dense<0> : tensor<i8>
  %m = hlo.constant {name = "m"} dense<255> : tensor<ui8>
  %r = hlo.reduce %a, %z {dimensions = array<i64: 0>, name = "r", to_apply = @sum} : (tensor<?x4xi8>, tensor<i8>) -> tensor<4xi8>
  %s = hlo.reduce %b, %m {dimensions = array<i64: 0>, name = "s", to_apply = @least} : (tensor<?x4xui8>, tensor<ui8>) -> tensor<4xui8>
  %t = hlo.tuple %r, %s {name = "t"} : (tensor<4xi8>, tensor<4xui8>) -> tuple<tensor<4xi8>, tensor<4xui8>>
  hlo.return %t : tuple<tensor<4xi8>, tensor<4xui8>>
}
