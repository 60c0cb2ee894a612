// RUN: exit 1 xla-emitters-opt -p xla-convert-scf-to-cf %s 2>&1 | filecheck %s

// CHECK: error: [xla-convert-scf-to-cf] no lowering for scf.parallel
func.func @f(%x: index) {
  scf.parallel (%i) = (%x) to (%x) step (%x) {
  }
  func.return
}
