// RUN: xla-emitters-opt -p disc-blocks-to-loop %s | filecheck %s
// A block is one thread: its number is the loop's variable, that of the thread 0, and its memory is allocated once, and barriers go.
gpu.module @k {
  gpu.func @k(%x: memref<?xf32, "gpu"> {llvm.noalias}, %n: index) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %s = memref.alloc(%n) : memref<?xf32, #gpu.address_space<workgroup>>
    %i = arith.addi %b, %t : index
    %v = memref.load %x[%i] : memref<?xf32, "gpu">
    memref.store %v, %s[%t] : memref<?xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    gpu.return
  }
}
// CHECK:       gpu.func @k(%x: memref<?xf32, "gpu"> {llvm.noalias}, %n: index, %begin: index, %end: index)
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[S:.*]] = memref.alloc(%n)
// CHECK-NEXT:    scf.for %[[B:.*]] = %begin to %end step %[[ONE]] {
// CHECK-NEXT:      %[[I:.*]] = arith.addi %[[B]], %[[ZERO]] : index
// CHECK-NEXT:      %[[V:.*]] = memref.load %x[%[[I]]]
// CHECK-NEXT:      memref.store %[[V]], %[[S]][%[[ZERO]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.return
