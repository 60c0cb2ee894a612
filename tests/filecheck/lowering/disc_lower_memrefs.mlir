// RUN: xla-emitters-opt -p disc-lower-memrefs --split-input-file %s | filecheck %s
// What the kernel does not write is invariant, where no argument may be another one; a truth value is a byte; memory of a block is a global.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  gpu.module @k {
    gpu.func @k(%x: memref<?xi1, "gpu"> {llvm.noalias}, %y: memref<?xf32, "gpu"> {llvm.noalias}, %n: index) workgroup(%s: memref<64xf32, 3>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %v = memref.load %x[%n] : memref<?xi1, "gpu">
      %w = arith.uitofp %v : i1 to f32
      memref.store %w, %s[%n] : memref<64xf32, 3>
      gpu.barrier
      %old = memref.atomic_rmw addf %w, %y[%n] : (f32, memref<?xf32, "gpu">) -> f32
      gpu.return
    }
  }
}
// CHECK:       llvm.mlir.global private @[[S:.*]]() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x f32>
// CHECK:       func.func @k(%x: !llvm.ptr {llvm.noalias, llvm.align = 16 : index, xla.invariant}, %y: !llvm.ptr {llvm.noalias, llvm.align = 16 : index}, %n: index) attributes {xla.entry, gpu.known_block_size = array<i32: 64, 1, 1>} {
// CHECK:         %s = llvm.addrspacecast
// CHECK:         %[[N:.*]] = arith.index_castui %n : index to i32
// CHECK-NEXT:    %[[P:.*]] = llvm.getelementptr inbounds %x[%[[N]]] : (!llvm.ptr, i32) -> !llvm.ptr, i8
// CHECK-NEXT:    %[[B:.*]] = llvm.load %[[P]] invariant : !llvm.ptr -> i8
// CHECK:         arith.cmpi ne, %[[B]], %{{.*}} : i8
// CHECK:         llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr
// CHECK-NEXT:    gpu.barrier
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} monotonic
// CHECK:         return

// -----

// Where an argument may be another one, nothing is invariant. Signs are in ops, not in memory. Memory that the launch adds: parts of one global.
module {
  gpu.module @k {
    gpu.func @k(%x: memref<?xui16, "gpu">, %y: memref<?xui16, "gpu">, %n: index) kernel {
      %a = memref.alloc(%n) : memref<?xf32, 3>
      %b = memref.alloc(%n) : memref<?xui16, 3>
      %v = memref.load %x[%n] : memref<?xui16, "gpu">
      %c = builtin.unrealized_conversion_cast %v : ui16 to i16
      %d = arith.addi %c, %c : i16
      %e = builtin.unrealized_conversion_cast %d : i16 to ui16
      memref.store %e, %b[%n] : memref<?xui16, 3>
      memref.store %e, %y[%n] : memref<?xui16, "gpu">
      gpu.return
    }
  }
}
// CHECK:       llvm.mlir.global external @[[S:.*]]() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK:       func.func @k(%x: !llvm.ptr {llvm.align = 16 : index}, %y: !llvm.ptr {llvm.align = 16 : index}, %n: index) attributes {xla.entry} {
// CHECK:         %[[BYTES:.*]] = arith.muli %n, %{{.*}} : index
// CHECK:         %[[CAST:.*]] = arith.index_castui %{{.*}} : index to i64
// CHECK-NEXT:    %b = llvm.getelementptr inbounds %{{.*}}[%[[CAST]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK:         %[[V:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i16
// CHECK-NEXT:    %[[D:.*]] = arith.addi %[[V]], %[[V]] : i16
// CHECK:         llvm.store %[[D]], %{{.*}} : i16, !llvm.ptr

// -----

// A thread's own array is on its stack, which is in registers where all indices are constants.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  gpu.module @own {
    gpu.func @own(%x: memref<?xf32, "gpu"> {llvm.noalias}, %n: index) kernel {
      %a = memref.alloca() : memref<8xf32>
      %c3 = arith.constant 3 : index
      %v = memref.load %x[%n] : memref<?xf32, "gpu">
      memref.store %v, %a[%c3] : memref<8xf32>
      %w = memref.load %a[%c3] : memref<8xf32>
      memref.store %w, %x[%n] : memref<?xf32, "gpu">
      gpu.return
    }
  }
}

// CHECK:      func.func @own
// CHECK:        %[[A:.*]] = llvm.alloca %{{.*}} x !llvm.array<8 x f32>
// CHECK:        %[[TO:.*]] = llvm.getelementptr inbounds %[[A]][%{{.*}}]
// CHECK:        llvm.store %{{.*}}, %[[TO]]
// CHECK:        %[[FROM:.*]] = llvm.getelementptr inbounds %[[A]][%{{.*}}]
// CHECK:        llvm.load %[[FROM]] : !llvm.ptr -> f32

// -----

// Nor are they in arguments that are numbers, which the host reads for the kernel.
module {
  gpu.module @k {
    gpu.func @k(%y: memref<?xi32, "gpu">, %start: ui32, %n: index) kernel {
      %v = builtin.unrealized_conversion_cast %start : ui32 to i32
      memref.store %v, %y[%n] : memref<?xi32, "gpu">
      gpu.return
    }
  }
}
// CHECK:       func.func @k(%y: !llvm.ptr {{{.*}}}, %start: i32, %n: index)
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.store %start, %{{.*}} : i32, !llvm.ptr
