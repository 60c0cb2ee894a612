// RUN: exit 1 xla-emitters-opt -p disc-rewrite-ral-api %s 2>&1 | filecheck %s
// A function with results that stops early would have none.
// CHECK: error: [disc-rewrite-ral-api] function @f calls the runtime, and would have no results if that fails
// CHECK: help: return results in buffers that are arguments
func.func @f(%ctx: !disc_ral.context, %x: memref<4xf32>) -> index {
  lmhlo.abs %x -> %x {name = "a"} : (memref<4xf32>) -> memref<4xf32>
  %c = arith.constant 0 : index
  return %c : index
}
