// RUN: xla-emitters-opt -p disc-element-type-converter --split-input-file --remarks %s 2>&1 | filecheck %s

// Not a matrix yet; a body that is not one op of its two arguments.
// CHECK-DAG: skipped hlo.reduce: it is not the reduction of a matrix: run disc-canonicalize-reduction first
// CHECK-DAG: skipped hlo.reduce: what it applies to s8 is not one op of its two arguments
// CHECK-NOT: hlo.convert
hlo.computation @twice {
  %x = hlo.parameter 0 {name = "x"} : tensor<i8>
  %y = hlo.parameter 1 {name = "y"} : tensor<i8>
  %s = hlo.add %x, %y {name = "s"} : tensor<i8>
  %n = hlo.negate %s {name = "n"} : tensor<i8>
  hlo.return %n : tensor<i8>
}
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?x4xi8>
  %b = hlo.parameter 1 {name = "b"} : tensor<?x4x4xi8>
  %z = hlo.constant {name = "z"} dense<0> : tensor<i8>
  %r = hlo.reduce %a, %z {dimensions = array<i64: 0>, name = "r", to_apply = @twice} : (tensor<?x4xi8>, tensor<i8>) -> tensor<4xi8>
  %s = hlo.reduce %b, %z {dimensions = array<i64: 0>, name = "s", to_apply = @twice} : (tensor<?x4x4xi8>, tensor<i8>) -> tensor<4x4xi8>
  %t = hlo.tuple %r, %s {name = "t"} : (tensor<4xi8>, tensor<4x4xi8>) -> tuple<tensor<4xi8>, tensor<4x4xi8>>
  hlo.return %t : tuple<tensor<4xi8>, tensor<4x4xi8>>
}
