// RUN: xla-emitters-opt -p disc-inliner --split-input-file %s | filecheck %s

// As JAX exports: the entry calls a function that calls another. Nothing but the entry is left to call.
// CHECK-LABEL: hlo.computation @main entry {
// CHECK-NEXT:    %p0 = hlo.parameter 0
// CHECK-NEXT:    %y = hlo.abs %p0
// CHECK-NEXT:    %s = hlo.sine %y
// CHECK-NEXT:    hlo.return %s : tensor<?xf32>
// CHECK-NOT:   hlo.c
hlo.computation @f {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %y = hlo.abs %x {name = "y"} : tensor<?xf32>
  hlo.return %y : tensor<?xf32>
}
hlo.computation @wrapped {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %c = hlo.call %x {name = "c", to_apply = @f} : tensor<?xf32>
  %s = hlo.sine %c {name = "s"} : tensor<?xf32>
  hlo.return %s : tensor<?xf32>
}
hlo.computation @main entry {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<?xf32>
  %r = hlo.call %p0 {name = "r", to_apply = @wrapped} : tensor<?xf32>
  hlo.return %r : tensor<?xf32>
}

// -----

// A call inside a loop's body is inlined; the body stays, as the loop names it. The tuple of a call of two results is gone.
// CHECK-LABEL: hlo.computation @body {
// CHECK-NEXT:    %p = hlo.parameter 0
// CHECK-NEXT:    %n = hlo.negate %p
// CHECK-NEXT:    hlo.return %n
// CHECK:       hlo.computation @main entry {
// CHECK-NOT:     hlo.call
// CHECK-NOT:     hlo.tuple
// CHECK:         hlo.while %a {body = @body
hlo.computation @neg {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  %n = hlo.negate %x {name = "n"} : tensor<4xf32>
  hlo.return %n : tensor<4xf32>
}
hlo.computation @body {
  %p = hlo.parameter 0 {name = "p"} : tensor<4xf32>
  %c = hlo.call %p {name = "c", to_apply = @neg} : tensor<4xf32>
  hlo.return %c : tensor<4xf32>
}
hlo.computation @never {
  %p = hlo.parameter 0 {name = "p"} : tensor<4xf32>
  %no = hlo.constant {name = "no"} dense<false> : tensor<i1>
  hlo.return %no : tensor<i1>
}
hlo.computation @both {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  %a = hlo.abs %x {name = "a"} : tensor<4xf32>
  %t = hlo.tuple %a, %x {name = "t"} : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
  hlo.return %t : tuple<tensor<4xf32>, tensor<4xf32>>
}
hlo.computation @main entry {
  %p = hlo.parameter 0 {name = "p"} : tensor<4xf32>
  %c = hlo.call %p {name = "c", to_apply = @both} : (tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
  %e = hlo.get_tuple_element %c {index = 0 : i64, name = "e"} : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  %w = hlo.while %e {body = @body, condition = @never, name = "w"} : tensor<4xf32>
  hlo.return %w : tensor<4xf32>
}
