// RUN: exit 1 xla-emitters-opt --split-input-file -p disc-legalize-to-lhlo %s 2>&1 | filecheck %s

// Calls are inlined first.
hlo.computation @f {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  hlo.return %x : tensor<4xf32>
}
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  %c = hlo.call %x {name = "c", to_apply = @f} : tensor<4xf32>
  hlo.return %c : tensor<4xf32>
}
// CHECK: error: [disc-legalize-to-lhlo] 'call' (instruction %c) is not taken: it has no counterpart on buffers
// CHECK: help: run disc-inliner first
