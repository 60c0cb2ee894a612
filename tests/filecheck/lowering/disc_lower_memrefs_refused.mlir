// RUN: not xla-emitters-opt -p disc-lower-memrefs %s 2>&1 | filecheck %s
// Several dimensions have no lowering: they are one by then.
gpu.module @k {
  gpu.func @k(%x: memref<?x4xf32, "gpu">, %n: index) kernel {
    %v = memref.load %x[%n, %n] : memref<?x4xf32, "gpu">
    memref.store %v, %x[%n, %n] : memref<?x4xf32, "gpu">
    gpu.return
  }
}
// CHECK: [disc-lower-memrefs] 'memref.load' of several dimensions
// CHECK: help: run disc-flatten-memref first
