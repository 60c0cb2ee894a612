// RUN: xla-emitters-opt -p xla-cse %s | filecheck %s
// RUN: xla-emitters-opt -p xla-canonicalize %s | filecheck %s
// RUN: xla-emitters-opt -p xla-simplify-arith %s | filecheck %s
// RUN: xla-emitters-opt -p dce %s | filecheck %s

// Passes that erase what nothing reads keep a computation's parameters, which are its signature, and what is done for its effect.
// CHECK-LABEL: hlo.computation @body
// CHECK-NEXT:    %n = hlo.parameter 0
// CHECK-NEXT:    hlo.constant
// CHECK-LABEL: hlo.computation @below
// CHECK-NEXT:    %n = hlo.parameter 0
// CHECK-NEXT:    hlo.constant
// CHECK-LABEL: hlo.computation @main entry
// CHECK-NEXT:    %x = hlo.parameter 0
// CHECK-NEXT:    %y = hlo.parameter 1
// CHECK-NEXT:    hlo.while %x
// CHECK-NEXT:    hlo.custom_call %x
// CHECK-NEXT:    %[[T:.*]] = hlo.after_all
// CHECK-NEXT:    hlo.outfeed %x, %[[T]]
// CHECK-NEXT:    hlo.infeed %[[T]]
// CHECK-NEXT:    hlo.call %x
// CHECK-NOT:     hlo.negate
// CHECK:         hlo.return %x
module @m {
  hlo.computation @body {
    %n = hlo.parameter 0 {name = "n"} : tensor<i32>
    %r = hlo.constant {name = "r"} dense<1> : tensor<i32>
    hlo.return %r : tensor<i32>
  }
  hlo.computation @below {
    %n = hlo.parameter 0 {name = "n"} : tensor<i32>
    %r = hlo.constant {name = "r"} dense<false> : tensor<i1>
    hlo.return %r : tensor<i1>
  }
  hlo.computation @called {
    %n = hlo.parameter 0 {name = "n"} : tensor<i32>
    hlo.return %n : tensor<i32>
  }
  hlo.computation @main entry {
    %x = hlo.parameter 0 {name = "x"} : tensor<i32>
    %y = hlo.parameter 1 {name = "y"} : tensor<i32>
    %w = hlo.while %x {body = @body, condition = @below, name = "w"} : tensor<i32>
    %c = hlo.custom_call %x {custom_call_has_side_effect = true, custom_call_target = "\22log\22", name = "c"} : tensor<i32>
    %t = hlo.after_all {name = "t"} : !hlo.token
    %o = hlo.outfeed %x, %t {name = "o"} : (tensor<i32>, !hlo.token) -> !hlo.token
    %i = hlo.infeed %t {name = "i"} : (!hlo.token) -> tuple<tensor<i32>, !hlo.token>
    %d = hlo.negate %x {name = "d"} : tensor<i32>
    %e = hlo.call %x {name = "e", to_apply = @called} : (tensor<i32>) -> tensor<i32>
    hlo.return %x : tensor<i32>
  }
}
