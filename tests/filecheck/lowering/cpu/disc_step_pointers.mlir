// RUN: xla-emitters-opt -p disc-step-pointers --split-input-file %s | filecheck %s

// Rows %r and %r + 8 of a column: the loop carries the first one's address, and each is the one before plus 8 * cols elements of 4 bytes.
func.func @rows(%x: !llvm.ptr, %first: index, %end: index, %cols: index, %j: index, %zero: f32) -> f32 {
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %r = scf.for %row = %first to %end step %c16 iter_args(%a = %zero) -> (f32) {
    %0 = arith.muli %row, %cols : index
    %1 = arith.addi %0, %j : index
    %2 = arith.index_castui %1 : index to i32
    %3 = llvm.getelementptr inbounds %x[%2] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %4 = llvm.load %3 : !llvm.ptr -> f32
    %5 = arith.addi %row, %c8 : index
    %6 = arith.muli %5, %cols : index
    %7 = arith.addi %6, %j : index
    %8 = arith.index_castui %7 : index to i32
    %9 = llvm.getelementptr inbounds %x[%8] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %10 = llvm.load %9 : !llvm.ptr -> f32
    %11 = arith.addf %a, %4 : f32
    %12 = arith.addf %11, %10 : f32
    scf.yield %12 : f32
  }
  func.return %r : f32
}
// CHECK-LABEL: @rows
// CHECK:         %[[M:.*]] = arith.muli %cols, %first : index
// CHECK-NEXT:    %[[I:.*]] = arith.addi %[[M]], %j : index
// CHECK-NEXT:    %[[I32:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK-NEXT:    %[[P:.*]] = llvm.getelementptr %x[%[[I32]]] : (!llvm.ptr, i32) -> !llvm.ptr, f32
// CHECK:         %[[D:.*]] = arith.muli %cols, %{{.*}} : index
// CHECK-NEXT:    %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK-NEXT:    %[[D64:.*]] = arith.extsi %[[D32]] : i32 to i64
// CHECK-NEXT:    %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK-NEXT:    %[[BYTES:.*]] = arith.muli %[[D64]], %[[FOUR]] : i64
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %zero, %[[AT:.*]] = %[[P]]) -> (f32, !llvm.ptr) {
// CHECK:           llvm.load %[[AT]] : !llvm.ptr -> f32
// CHECK:           %[[NEXT:.*]] = llvm.getelementptr %[[AT]][%[[BYTES]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:      llvm.load %[[NEXT]] : !llvm.ptr -> f32
// CHECK:           %[[AFTER:.*]] = llvm.getelementptr %[[NEXT]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:      scf.yield %{{.*}}, %[[AFTER]] : f32, !llvm.ptr

// -----

// Left alone: elements beside each other (LLVM adds a known number), an access that an iteration may not make, a product of the variable
// with itself, and a row from memory.
func.func @others(%x: !llvm.ptr, %n: index, %cols: index, %rows: memref<?xindex>, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.addi %i, %cols : index
    %1 = arith.index_castui %0 : index to i32
    %2 = llvm.getelementptr inbounds %x[%1] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %3 = llvm.load %2 : !llvm.ptr -> f32
    %4 = arith.muli %i, %cols : index
    %5 = arith.index_castui %4 : index to i32
    %6 = llvm.getelementptr inbounds %x[%5] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    scf.if %c {
      llvm.store %3, %6 : f32, !llvm.ptr
    }
    %7 = arith.muli %4, %i : index
    %8 = arith.index_castui %7 : index to i32
    %9 = llvm.getelementptr inbounds %x[%8] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %3, %9 : f32, !llvm.ptr
    %10 = memref.load %rows[%i] : memref<?xindex>
    %11 = arith.muli %10, %i : index
    %12 = arith.index_castui %11 : index to i32
    %13 = llvm.getelementptr inbounds %x[%12] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    llvm.store %3, %13 : f32, !llvm.ptr
  }
  func.return
}
// CHECK-LABEL:     @others
// CHECK-NOT:       iter_args
// CHECK-COUNT-4:   llvm.getelementptr inbounds %x[
// CHECK-NOT:       iter_args

// -----

// Indices of 64 bits: the distance is one already.
func.func @wide(%x: !llvm.ptr, %n: index, %cols: index, %v: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.muli %cols, %i : index
    %1 = arith.index_castui %0 : index to i64
    %2 = llvm.getelementptr inbounds %x[%1] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
    llvm.store %v, %2 : bf16, !llvm.ptr
  }
  func.return
}
// CHECK-LABEL: @wide
// CHECK:         %[[D:.*]] = arith.index_castui %cols : index to i64
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2 : i64
// CHECK-NEXT:    arith.muli %[[D]], %[[TWO]] : i64
// CHECK:         scf.for {{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (!llvm.ptr) {
// CHECK:           llvm.store %v, %[[AT]] : bf16, !llvm.ptr
