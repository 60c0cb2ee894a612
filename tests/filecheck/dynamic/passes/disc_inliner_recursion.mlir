// RUN: exit 1 xla-emitters-opt -p disc-inliner %s 2>&1 | filecheck %s

// A function that calls itself through another has no end.
// CHECK: error: {{.*}}'f'
hlo.computation @f {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %y = hlo.call %x {name = "y", to_apply = @g} : tensor<?xf32>
  hlo.return %y : tensor<?xf32>
}
hlo.computation @g {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %y = hlo.call %x {name = "y", to_apply = @f} : tensor<?xf32>
  hlo.return %y : tensor<?xf32>
}
hlo.computation @main entry {
  %p0 = hlo.parameter 0 {name = "p0"} : tensor<?xf32>
  %r = hlo.call %p0 {name = "r", to_apply = @f} : tensor<?xf32>
  hlo.return %r : tensor<?xf32>
}
