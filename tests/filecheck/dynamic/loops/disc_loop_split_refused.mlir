// RUN: not xla-emitters-opt -p disc-loop-split %s 2>&1 | filecheck %s
// A block of 2048 threads: no GPU has that.
func.func @large(%x: memref<?xf32, "gpu">, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  "lmhlo.fusion"() ({
    scf.parallel (%row, %thread) = (%c0, %c0) to (%rows, %c2048) step (%c1, %c1) { scf.reduce }
    lmhlo.terminator
  }) {fusion_name = "r"} : () -> ()
  return
}
// CHECK: [disc-loop-split] a block of 2048 threads; h200 runs 1 to 1024
