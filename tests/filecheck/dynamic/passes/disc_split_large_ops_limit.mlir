// RUN: exit 2 xla-emitters-opt -p disc-split-large-ops{max-operands=1} %s 2>&1 | filecheck %s
// CHECK: error: {{.*}}disc-split-large-ops: max-operands=1
// CHECK: help: at least 2: fewer join nothing
hlo.computation @main entry {
  %a = hlo.parameter 0 {name = "a"} : tensor<?xf32>
  hlo.return %a : tensor<?xf32>
}
