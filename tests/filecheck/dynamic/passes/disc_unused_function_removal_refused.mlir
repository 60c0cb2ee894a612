// RUN: exit 1 xla-emitters-opt -p disc-unused-function-removal %s 2>&1 | filecheck %s

// More than the entry would be left.
// CHECK: error: [disc-unused-function-removal] 'f' is still called: the entry is not the only function
// CHECK: help: run disc-inliner first
hlo.computation @f {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  hlo.return %x : tensor<?xf32>
}
hlo.computation @main entry {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<?xf32>
  %r = hlo.call %p0 {name = "r", to_apply = @f} : tensor<?xf32>
  hlo.return %r : tensor<?xf32>
}
