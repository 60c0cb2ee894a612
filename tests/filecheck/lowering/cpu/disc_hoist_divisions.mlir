// RUN: xla-emitters-opt -p disc-hoist-divisions %s | filecheck %s
// A division of invariant numbers leaves a branch of a loop, with what it is computed from; a divisor of 0 becomes 1.

// CHECK-LABEL: func.func @moves
func.func @moves(%x: memref<?xi64>, %i: i64, %rows: i64, %zero: index, %one: index, %n: index, %m: index) {
  // CHECK-NEXT: [[J:%.*]] = arith.addi %i, %rows
  // CHECK-NEXT: [[ONE:%.*]] = arith.constant 1 : i64
  // CHECK-NEXT: [[D:%.*]] = arith.maxui %rows, [[ONE]] : i64
  // CHECK-NEXT: [[Q:%.*]] = arith.divui [[J]], [[D]] : i64
  // CHECK-NEXT: scf.for
  scf.for %j = %zero to %n step %one {
    %c = arith.cmpi ult, %j, %m : index
    // CHECK: scf.if
    // CHECK-NEXT: memref.store [[Q]]
    scf.if %c {
      %sum = arith.addi %i, %rows : i64
      %q = arith.divui %sum, %rows : i64
      memref.store %q, %x[%j] : memref<?xi64>
    }
  }
  func.return
}

// What every iteration divides stays, and so do numbers that differ between iterations, are loaded in the branch, or are divided by constants.
// CHECK-LABEL: func.func @stays
func.func @stays(%x: memref<?xindex>, %i: index, %rows: index, %zero: index, %one: index, %n: index, %m: index) {
  %c3 = arith.constant 3 : index
  // CHECK: scf.for
  scf.for %j = %zero to %n step %one {
    // CHECK: arith.remui %i, %rows
    %r = arith.remui %i, %rows : index
    %c = arith.cmpi ult, %r, %m : index
    // CHECK: scf.if
    scf.if %c {
      // CHECK: arith.divui %j, %rows
      // CHECK: arith.divui %i, %c3
      // CHECK: arith.divui %{{.*}}, %rows
      %q = arith.divui %j, %rows : index
      %s = arith.divui %i, %c3 : index
      %v = memref.load %x[%i] : memref<?xindex>
      %t = arith.divui %v, %rows : index
      memref.store %q, %x[%s] : memref<?xindex>
      memref.store %t, %x[%s] : memref<?xindex>
    }
  }
  func.return
}
