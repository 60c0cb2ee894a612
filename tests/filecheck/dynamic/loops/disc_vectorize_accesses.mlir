// RUN: xla-emitters-opt -p disc-vectorize-accesses --split-input-file %s | filecheck %s

// Four elements from a multiple of four on are one access each; what is read from %one, at a place that no other is beside, is not.
func.func @main(%x: memref<?xf32, "gpu">, %one: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  "lmhlo.fusion"() <{fusion_name = "f"}> ({
    scf.parallel (%i) = (%c0) to (%n) step (%c4) {
      %lower = arith.constant 0 : index
      %upper = arith.constant 4 : index
      %step = arith.constant 1 : index
      scf.for %v = %lower to %upper step %step {
        %j = arith.addi %i, %v : index
        %a = memref.load %x[%j] : memref<?xf32, "gpu">
        %k = arith.muli %j, %upper : index
        %b = memref.load %one[%k] : memref<?xf32, "gpu">
        %s = arith.addf %a, %b : f32
        memref.store %s, %y[%j] : memref<?xf32, "gpu">
      } {disc.vector}
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  func.return
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     scf.for
// CHECK:         %[[V:.*]] = vector.load %x[%{{.*}}] {alignment = 16 : i64} : memref<?xf32, "gpu">, vector<4xf32>
// CHECK-NEXT:    %[[A:.*]] = vector.extract %[[V]][0]
// CHECK-NEXT:    vector.extract %[[V]][1]
// CHECK-NEXT:    vector.extract %[[V]][2]
// CHECK-NEXT:    vector.extract %[[V]][3]
// CHECK:         memref.load %one
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[A]]
// CHECK-COUNT-3: memref.load %one
// CHECK:         %[[R:.*]] = vector.from_elements %[[S]], %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK-NEXT:    vector.store %[[R]], %y[%{{.*}}] {alignment = 16 : i64}
// CHECK-NOT:     memref.store

// -----

// A row of %m columns, of which the loop says that 4 divides them: eight halves are 16 bytes, f32 takes two accesses. One element further on
// the first and the last one are alone: [1], [2, 3], [4 to 7], [8].
func.func @rows(%x: memref<?xbf16, "gpu">, %y: memref<?xf32, "gpu">, %z: memref<?xf32, "gpu">, %m: index, %rows: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  "lmhlo.fusion"() <{fusion_name = "f"}> ({
    scf.parallel (%row, %thread) = (%c0, %c0) to (%rows, %c256) step (%c1, %c1) {
      %lower = arith.constant 0 : index
      %upper = arith.constant 8 : index
      %step = arith.constant 1 : index
      %mask = arith.constant -8 : index
      %cols = arith.andi %m, %mask : index
      %first = arith.muli %thread, %upper : index
      %stride = arith.constant 2048 : index
      scf.for %j = %first to %cols step %stride {
        scf.for %v = %lower to %upper step %step {
          %k = arith.addi %j, %v : index
          %l = affine.linearize_index disjoint [%row, %k] by (%cols) : index
          %a = memref.load %x[%l] : memref<?xbf16, "gpu">
          %b = arith.extf %a : bf16 to f32
          memref.store %b, %y[%l] : memref<?xf32, "gpu">
          %next = arith.addi %l, %step : index
          memref.store %b, %z[%next] : memref<?xf32, "gpu">
        } {disc.vector}
      }
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  func.return
}
// CHECK-LABEL: func.func @rows
// CHECK:         vector.load %x[%{{.*}}] {alignment = 16 : i64} : memref<?xbf16, "gpu">, vector<8xbf16>
// CHECK-NOT:     memref.load
// CHECK:         memref.store %{{.*}}, %z
// CHECK-NOT:     memref.store
// CHECK:         vector.store %{{.*}}, %z[%{{.*}}] {alignment = 8 : i64} : memref<?xf32, "gpu">, vector<2xf32>
// CHECK:         vector.store %{{.*}}, %y[%{{.*}}] {alignment = 16 : i64} : memref<?xf32, "gpu">, vector<4xf32>
// CHECK:         vector.store %{{.*}}, %z[%{{.*}}] {alignment = 16 : i64} : memref<?xf32, "gpu">, vector<4xf32>
// CHECK:         vector.store %{{.*}}, %y[%{{.*}}] {alignment = 16 : i64} : memref<?xf32, "gpu">, vector<4xf32>
// CHECK:         memref.store %{{.*}}, %z

// -----

// A bias of 32 elements is read at the last coordinate, which is beside the one before it within each four: that of a row of 27 is not. What is
// stored between two loads of one buffer keeps them apart.
func.func @coordinates(%x: memref<?xf32, "gpu">, %bias: memref<32xf32, "gpu">, %odd: memref<27xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  "lmhlo.fusion"() <{fusion_name = "f"}> ({
    scf.parallel (%i) = (%c0) to (%n) step (%c4) {
      %lower = arith.constant 0 : index
      %upper = arith.constant 4 : index
      %step = arith.constant 1 : index
      scf.for %v = %lower to %upper step %step {
        %j = arith.addi %i, %v : index
        %d:2 = affine.delinearize_index %j into (32) : index, index
        %e:2 = affine.delinearize_index %j into (27) : index, index
        %a = memref.load %bias[%d#1] : memref<32xf32, "gpu">
        %b = memref.load %odd[%e#1] : memref<27xf32, "gpu">
        %old = memref.load %y[%j] : memref<?xf32, "gpu">
        %s = arith.addf %a, %b : f32
        %t = arith.addf %s, %old : f32
        memref.store %t, %y[%j] : memref<?xf32, "gpu">
      } {disc.vector}
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  func.return
}
// CHECK-LABEL: func.func @coordinates
// CHECK:         vector.load %bias[%{{.*}}] {alignment = 16 : i64} : memref<32xf32, "gpu">, vector<4xf32>
// CHECK-NOT:     vector.load %odd
// CHECK:         memref.load %odd
// CHECK-NOT:     vector.load %y
// CHECK:         memref.load %y
// CHECK-NOT:     vector.store
// CHECK:         memref.store %{{.*}}, %y
