// RUN: exit 1 xla-emitters-opt -p disc-rewrite-ral-api %s 2>&1 | filecheck %s
// A call inside a region could not leave the function if it failed. The message is at the op that holds the region.
// CHECK: disc_rewrite_ral_api_refused.mlir:[[# @LINE + 5]]:3: error: [disc-rewrite-ral-api] 'scf.if' holds a call of the runtime
// CHECK: help: run xla-convert-scf-to-cf before disc-rewrite-ral-api
func.func @main(%ctx: !disc_ral.context) {
  %x = disc_ral.recv_input %ctx, 0 : memref<4xf32>
  %p = arith.constant true
  scf.if %p {
    lmhlo.abs %x -> %x {name = "a"} : (memref<4xf32>) -> memref<4xf32>
  }
  return
}
