// RUN: xla-emitters-opt -p xla-remove-no-ops %s | filecheck %s
// Conversions to the type that the elements have, in a program and in its loops.
hlo.computation @more {
  %p = hlo.parameter 0 {name = "p"} : tensor<i32>
  %c = hlo.constant {name = "c"} dense<5> : tensor<i32>
  %l = hlo.compare %p, %c {name = "l", direction = "LT", type = "SIGNED"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %b = hlo.convert %l {name = "b"} : (tensor<i1>) -> tensor<i1>
  hlo.return %b : tensor<i1>
}
hlo.computation @next {
  %p = hlo.parameter 0 {name = "p"} : tensor<i32>
  %i = hlo.convert %p {name = "i"} : (tensor<i32>) -> tensor<i32>
  %n = hlo.add %i, %i {name = "n"} : tensor<i32>
  hlo.return %n : tensor<i32>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %i = hlo.parameter 1 {name = "i"} : tensor<i32>
  %a = hlo.convert %x {name = "a"} : (tensor<?xf32>) -> tensor<?xf32>
  %h = hlo.convert %a {name = "h"} : (tensor<?xf32>) -> tensor<?xbf16>
  %w = hlo.while %i {name = "w", body = @next, condition = @more} : (tensor<i32>) -> tensor<i32>
  %t = hlo.tuple %h, %w {name = "t"} : (tensor<?xbf16>, tensor<i32>) -> tuple<tensor<?xbf16>, tensor<i32>>
  hlo.return %t : tuple<tensor<?xbf16>, tensor<i32>>
}
// CHECK-LABEL: hlo.computation @more
// CHECK-NOT:     hlo.convert
// CHECK:         hlo.return %l
// CHECK-LABEL: hlo.computation @next
// CHECK:         %n = hlo.add %p, %p
// CHECK-LABEL: hlo.computation @main
// CHECK-NOT:     hlo.convert %x {name = "a"
// CHECK:         %h = hlo.convert %x {name = "h"}
