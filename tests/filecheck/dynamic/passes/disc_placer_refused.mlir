// RUN: exit 1 xla-emitters-opt -p disc-placer %s 2>&1 | filecheck %s
// CHECK: error: [disc-placer] no computation is the entry: nothing says what is a parameter of the program
hlo.computation @f {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  hlo.return %x : tensor<?xf32>
}
