// RUN: not xla-emitters-opt -p disc-lower-memrefs %s 2>&1 | filecheck %s
// A row of pairs is no vector of LLVM.
// CHECK: disc_lower_memrefs_rows_refused.mlir:6:10: error: [disc-lower-memrefs] 'vector.load' of several complex<f32>
gpu.module @k {
  gpu.func @k(%x: memref<8xcomplex<f32>, "gpu">, %y: memref<8xcomplex<f32>, "gpu">, %n: index) kernel {
    %v = vector.load %x[%n] : memref<8xcomplex<f32>, "gpu">, vector<4xcomplex<f32>>
    vector.store %v, %y[%n] : memref<8xcomplex<f32>, "gpu">, vector<4xcomplex<f32>>
    gpu.return
  }
}
