// RUN: xla-emitters-opt --split-input-file -p disc-placement-fixer %s | filecheck %s

// An op without a device gets that of the buffers that it writes; a copy between memories runs where it writes.
func.func @main(%a: memref<4xf32, "gpu">, %n: memref<4xf32, "cpu">) {
  %o = memref.alloc() : memref<4xf32, "gpu">
  %s = memref.alloc() : memref<4xf32, "cpu">
  lmhlo.abs %a -> %o {disc.device = "gpu", name = "abs"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
  lmhlo.copy %o -> %s {name = "down"} : (memref<4xf32, "gpu">) -> memref<4xf32, "cpu">
  lmhlo.copy %n -> %o {name = "up"} : (memref<4xf32, "cpu">) -> memref<4xf32, "gpu">
  return
}
// CHECK: lmhlo.copy %o -> %s {disc.device = "cpu", name = "down"}
// CHECK: lmhlo.copy %n -> %o {disc.device = "gpu", name = "up"}

// -----

// An op without results runs where what it reads is; where no buffer says it, the op before it decides, else the one behind it.
func.func @main(%p: memref<i1, "cpu">, %x: memref<4xf32>) {
  lmhlo.shape_assertion %p {message = "no", name = "assert"} : (memref<i1, "cpu">) -> ()
  %o = memref.alloc() : memref<4xf32>
  lmhlo.abs %x -> %o {name = "first"} : (memref<4xf32>) -> memref<4xf32>
  lmhlo.abs %x -> %o {disc.device = "gpu", name = "said"} : (memref<4xf32>) -> memref<4xf32>
  lmhlo.abs %x -> %o {name = "last"} : (memref<4xf32>) -> memref<4xf32>
  return
}
// CHECK: lmhlo.shape_assertion %p {disc.device = "cpu", message = "no", name = "assert"}
// CHECK: lmhlo.abs %x -> %o {disc.device = "cpu", name = "first"}
// CHECK: lmhlo.abs %x -> %o {disc.device = "gpu", name = "last"}
