// RUN: exit 1 xla-emitters-opt -p xla-propagate-slice-indices %s 2>&1 | filecheck %s

// CHECK: error: [xla-propagate-slice-indices] no function has the attribute xla.entry
func.func @f(%t: tensor<8xf32>) {
  return
}
