// RUN: xla-emitters-opt -p disc-size-cse --split-input-file %s | filecheck %s

// Two divisions of one size are one call; what is made of them, too.
// CHECK-LABEL: hlo.computation @main entry {
// CHECK-NEXT:    %x = hlo.parameter 0
// CHECK-NEXT:    %n = hlo.get_dimension_size %x
// CHECK-NEXT:    %two = hlo.constant {name = "two"} dense<2>
// CHECK-NEXT:    %q = hlo.call %n, %two
// CHECK-NEXT:    %s = hlo.reshape %q
// CHECK-NEXT:    hlo.concatenate %s, %s
hlo.computation @halved {
  %a = hlo.parameter 0 {name = "a"} : tensor<i32>
  %b = hlo.parameter 1 {name = "b"} : tensor<i32>
  %d = hlo.divide %a, %b {name = "d"} : tensor<i32>
  hlo.return %d : tensor<i32>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?xf32>) -> tensor<i32>
  %two = hlo.constant {name = "two"} dense<2> : tensor<i32>
  %q = hlo.call %n, %two {name = "q", to_apply = @halved} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %s = hlo.reshape %q {name = "s"} : (tensor<i32>) -> tensor<1xi32>
  %m = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "m"} : (tensor<?xf32>) -> tensor<i32>
  %also_two = hlo.constant {name = "also_two"} dense<2> : tensor<i32>
  %r = hlo.call %m, %also_two {name = "r", to_apply = @halved} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %t = hlo.reshape %r {name = "t"} : (tensor<i32>) -> tensor<1xi32>
  %u = hlo.concatenate %s, %t {dimensions = array<i64: 0>, name = "u"} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  hlo.return %u : tensor<2xi32>
}

// -----

// Not merged: data, other attributes, other types, a function with a random number, large arrays, and the root.
// CHECK-LABEL: hlo.computation @others entry {
// CHECK:         %f = hlo.exponential %x
// CHECK:         %g = hlo.exponential %x
// CHECK:         %d0 = hlo.get_dimension_size
// CHECK:         %d1 = hlo.get_dimension_size
// CHECK:         %i = hlo.constant {name = "i"} dense<2> : tensor<i32>
// CHECK:         %j = hlo.constant {name = "j"} dense<2> : tensor<i64>
// CHECK:         %r0 = hlo.call
// CHECK:         %r1 = hlo.call
// CHECK:         %l0 = hlo.iota
// CHECK:         %l1 = hlo.iota
hlo.computation @drawn {
  %low = hlo.parameter 0 {name = "low"} : tensor<i32>
  %high = hlo.parameter 1 {name = "high"} : tensor<i32>
  %draw = hlo.rng %low, %high {distribution = "rng_uniform", name = "draw"} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  hlo.return %draw : tensor<i32>
}
hlo.computation @others entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x?xf32>
  %f = hlo.exponential %x {name = "f"} : tensor<?x?xf32>
  %g = hlo.exponential %x {name = "g"} : tensor<?x?xf32>
  %d0 = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "d0"} : (tensor<?x?xf32>) -> tensor<i32>
  %d1 = hlo.get_dimension_size %x {dimensions = array<i64: 1>, name = "d1"} : (tensor<?x?xf32>) -> tensor<i32>
  %i = hlo.constant {name = "i"} dense<2> : tensor<i32>
  %j = hlo.constant {name = "j"} dense<2> : tensor<i64>
  %r0 = hlo.call %i, %d0 {name = "r0", to_apply = @drawn} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %r1 = hlo.call %i, %d0 {name = "r1", to_apply = @drawn} : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %l0 = hlo.iota {iota_dimension = 0 : i64, name = "l0"} : tensor<65xi32>
  %l1 = hlo.iota {iota_dimension = 0 : i64, name = "l1"} : tensor<65xi32>
  %all = hlo.tuple %f, %g, %d0, %d1, %j, %r0, %r1, %l0, %l1 {name = "all"} : (tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>, tensor<i32>, tensor<i64>, tensor<i32>, tensor<i32>, tensor<65xi32>, tensor<65xi32>) -> tuple<tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>, tensor<i32>, tensor<i64>, tensor<i32>, tensor<i32>, tensor<65xi32>, tensor<65xi32>>
  hlo.return %all : tuple<tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>, tensor<i32>, tensor<i64>, tensor<i32>, tensor<i32>, tensor<65xi32>, tensor<65xi32>>
}
