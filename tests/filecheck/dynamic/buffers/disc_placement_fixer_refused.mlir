// RUN: exit 1 xla-emitters-opt -p disc-placement-fixer %s 2>&1 | filecheck %s
func.func @main(%a: memref<4xf32, "gpu">, %o: memref<4xf32, "cpu">) {
  lmhlo.abs %a -> %o {disc.device = "gpu", name = "abs"} : (memref<4xf32, "gpu">) -> memref<4xf32, "cpu">
  return
}
// CHECK: error: [disc-placement-fixer] 'lmhlo.abs' runs on the gpu and writes into the memory of the cpu
