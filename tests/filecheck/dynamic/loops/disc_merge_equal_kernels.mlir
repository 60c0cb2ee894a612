// RUN: xla-emitters-opt -p disc-merge-equal-kernels %s | filecheck %s
// Two kernels with the same code under other names are one, and each launch passes its own arguments. One that subtracts the other way
// round, one with another number of threads, and one that may not assume that buffers are apart stay.
module attributes {gpu.container_module} {
  func.func @main(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index) {
    %c1 = arith.constant 1 : index
    "gpu.launch_func"(%n, %c1, %c1, %c1, %c1, %c1, %x, %y) <{kernel = @first::@first, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}> : (index, index, index, index, index, index, memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> ()
    "gpu.launch_func"(%n, %c1, %c1, %c1, %c1, %c1, %y, %x) <{kernel = @again::@again, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}> : (index, index, index, index, index, index, memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> ()
    "gpu.launch_func"(%n, %c1, %c1, %c1, %c1, %c1, %x, %y) <{kernel = @swapped::@swapped, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}> : (index, index, index, index, index, index, memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> ()
    return
  }
  gpu.module @first {
    gpu.func @first(%x: memref<?xf32, "gpu"> {llvm.noalias}, %y: memref<?xf32, "gpu"> {llvm.noalias}) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %i = gpu.block_id x
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      %w = memref.load %y[%i] : memref<?xf32, "gpu">
      %d = arith.subf %v, %w : f32
      memref.store %d, %y[%i] : memref<?xf32, "gpu">
      gpu.return
    }
  }
  gpu.module @again {
    gpu.func @again(%u: memref<?xf32, "gpu"> {llvm.noalias}, %v: memref<?xf32, "gpu"> {llvm.noalias}) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %block = gpu.block_id x
      %0 = memref.load %u[%block] : memref<?xf32, "gpu">
      %1 = memref.load %v[%block] : memref<?xf32, "gpu">
      %2 = arith.subf %0, %1 : f32
      memref.store %2, %v[%block] : memref<?xf32, "gpu">
      gpu.return
    }
  }
  gpu.module @swapped {
    gpu.func @swapped(%x: memref<?xf32, "gpu"> {llvm.noalias}, %y: memref<?xf32, "gpu"> {llvm.noalias}) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %i = gpu.block_id x
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      %w = memref.load %y[%i] : memref<?xf32, "gpu">
      %d = arith.subf %w, %v : f32
      memref.store %d, %y[%i] : memref<?xf32, "gpu">
      gpu.return
    }
  }
  gpu.module @wide {
    gpu.func @wide(%x: memref<?xf32, "gpu"> {llvm.noalias}, %y: memref<?xf32, "gpu"> {llvm.noalias}) kernel attributes {known_block_size = array<i32: 2, 1, 1>} {
      %i = gpu.block_id x
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      %w = memref.load %y[%i] : memref<?xf32, "gpu">
      %d = arith.subf %v, %w : f32
      memref.store %d, %y[%i] : memref<?xf32, "gpu">
      gpu.return
    }
  }
  gpu.module @near {
    gpu.func @near(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %i = gpu.block_id x
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      %w = memref.load %y[%i] : memref<?xf32, "gpu">
      %d = arith.subf %v, %w : f32
      memref.store %d, %y[%i] : memref<?xf32, "gpu">
      gpu.return
    }
  }
}
// CHECK:      (%n, %c1, %c1, %c1, %c1, %c1, %x, %y) <{kernel = @first::@first
// CHECK-NEXT: (%n, %c1, %c1, %c1, %c1, %c1, %y, %x) <{kernel = @first::@first
// CHECK-NEXT: (%n, %c1, %c1, %c1, %c1, %c1, %x, %y) <{kernel = @swapped::@swapped
// CHECK:      gpu.module @first
// CHECK-NOT:  @again
// CHECK:      gpu.module @swapped
// CHECK:      gpu.module @wide
// CHECK:      gpu.module @near
