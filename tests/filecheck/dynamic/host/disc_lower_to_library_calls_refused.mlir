// RUN: exit 1 xla-emitters-opt -p disc-lower-to-library-calls %s 2>&1 | filecheck %s
func.func @main(%g: memref<4xf32, "gpu">) {
  lmhlo.copy %g -> %g {name = "on"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  return
}
// CHECK: error: [context] 'lmhlo.copy' is in a function without a context
// CHECK: help: run disc-inject-execution-context first
