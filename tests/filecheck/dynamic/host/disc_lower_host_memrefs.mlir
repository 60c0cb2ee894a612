// RUN: xla-emitters-opt -p disc-lower-host-memrefs %s | filecheck %s
// A buffer is a descriptor: sizes are parts of it, elements are behind its second pointer.
func.func @main(%ctx: !disc_ral.context, %x: memref<?x4xi1, "cpu">, %i: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xi1, "cpu">
  %s = memref.alloca() : memref<2xindex, "cpu">
  memref.store %n, %s[%i] : memref<2xindex, "cpu">
  %v = memref.load %x[%n, %i] : memref<?x4xi1, "cpu">
  %flat = memref.collapse_shape %x [[0 : i64, 1 : i64]] : memref<?x4xi1, "cpu"> into memref<?xi1, "cpu">
  cf.br ^bb1(%flat : memref<?xi1, "cpu">)
^bb1(%y: memref<?xi1, "cpu">):
  memref.store %v, %y[%i] : memref<?xi1, "cpu">
  return
}
// CHECK:       func.func @main(%ctx: !llvm.ptr, %x: !llvm.struct<(!llvm.ptr, !llvm.ptr, i64, !llvm.array<2 x i64>, !llvm.array<2 x i64>)>, %i: index) {
// CHECK:       %[[STACK:.*]] = llvm.alloca %{{.*}} x i64 {alignment = 16 : i64}
// CHECK:       %[[SIZE:.*]] = llvm.extractvalue %x[3, 0]
// CHECK-NEXT:  %n = arith.index_cast %[[SIZE]] : i64 to index
// CHECK:       %[[N:.*]] = arith.index_cast %n : index to i64
// CHECK-NEXT:  llvm.store %[[N]]
// A truth value is a byte; the element of row n is at n * 4 + i.
// CHECK:       llvm.extractvalue %x[1]
// CHECK:       arith.muli
// CHECK:       %[[PLACE:.*]] = arith.addi
// CHECK-NEXT:  %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[PLACE]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:  %[[BYTE:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i8
// CHECK-NEXT:  arith.trunci %[[BYTE]] : i8 to i1
// CHECK:       cf.br ^[[BLOCK:.*]](%{{.*}} : !llvm.struct<(!llvm.ptr, !llvm.ptr, i64, !llvm.array<1 x i64>, !llvm.array<1 x i64>)>)
// CHECK:       ^[[BLOCK]](%y: !llvm.struct<
// CHECK:       arith.extui
// CHECK-NEXT:  llvm.store
