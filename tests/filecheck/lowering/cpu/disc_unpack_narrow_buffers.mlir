// RUN: xla-emitters-opt -p disc-unpack-narrow-buffers %s | filecheck %s
// RUN: xla-emitters-opt -p disc-unpack-narrow-buffers,disc-lower-memrefs %s | filecheck %s --check-prefix=POINTERS
// An element of four bits has a byte: its upper bits are not read, and written as zeros. Other buffers stay, that of truth values too.
gpu.module @k {
  gpu.func @k(%x: memref<?xi4> {llvm.noalias}, %u: memref<?xui2> {llvm.noalias}, %f: memref<?xf4E2M1FN> {llvm.noalias},
              %p: memref<?xi1> {llvm.noalias}, %n: index) kernel {
    %a = memref.load %x[%n] : memref<?xi4>
    memref.store %a, %x[%n] : memref<?xi4>
    %b = memref.load %u[%n] : memref<?xui2>
    memref.store %b, %u[%n] : memref<?xui2>
    %c = memref.load %f[%n] : memref<?xf4E2M1FN>
    memref.store %c, %f[%n] : memref<?xf4E2M1FN>
    %t = memref.load %p[%n] : memref<?xi1>
    memref.store %t, %p[%n] : memref<?xi1>
    gpu.return
  }
}
// CHECK:      gpu.func @k(%x: memref<?xi8> {{.*}}, %u: memref<?xi8> {{.*}}, %f: memref<?xi8> {{.*}}, %p: memref<?xi1>
// CHECK-NEXT:   %[[BYTE:.*]] = memref.load %x[%n] : memref<?xi8>
// CHECK-NEXT:   %[[A:.*]] = arith.trunci %[[BYTE]] : i8 to i4
// CHECK-NEXT:   %[[WIDE:.*]] = arith.extui %[[A]] : i4 to i8
// CHECK-NEXT:   memref.store %[[WIDE]], %x[%n] : memref<?xi8>
// CHECK:        arith.trunci %{{.*}} : i8 to i2
// CHECK-NEXT:   builtin.unrealized_conversion_cast %{{.*}} : i2 to ui2
// CHECK-NEXT:   builtin.unrealized_conversion_cast %{{.*}} : ui2 to i2
// CHECK-NEXT:   arith.extui %{{.*}} : i2 to i8
// CHECK:        arith.bitcast %{{.*}} : i4 to f4E2M1FN
// CHECK-NEXT:   arith.bitcast %{{.*}} : f4E2M1FN to i4
// CHECK:        memref.load %p[%n] : memref<?xi1>
// POINTERS-NOT: atomicrmw
