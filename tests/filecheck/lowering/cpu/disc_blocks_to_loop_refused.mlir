// RUN: not xla-emitters-opt -p disc-blocks-to-loop %s 2>&1 | filecheck %s
gpu.module @k {
  gpu.func @k(%x: memref<?xf32, "gpu">) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    gpu.return
  }
}
// CHECK: a block of @k is not one thread
