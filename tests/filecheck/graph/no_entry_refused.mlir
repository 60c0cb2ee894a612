// RUN: exit 1 xla-emitters-opt -p xla-fuse-entry %s 2>&1 | filecheck %s
// RUN: exit 1 xla-emitters-opt -p xla-remove-no-ops %s 2>&1 | filecheck %s
// A pass on HLO that gets a kernel says so, and where.
// CHECK: no_entry_refused.mlir:5:1: error: [plan] the module has no entry computation
module {
  func.func @f() {
    return
  }
}
