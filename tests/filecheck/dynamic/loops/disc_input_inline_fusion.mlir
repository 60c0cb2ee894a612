// RUN: xla-emitters-opt --split-input-file -p disc-input-inline-fusion %s | filecheck %s

// The nearest producer first, and all of a chain: each value once, each element loaded once; the ops are gone.
func.func @main(%x: memref<?xf32, "gpu">, %n: index) -> memref<?xf32, "gpu"> {
  %a = memref.alloc(%n) : memref<?xf32, "gpu">
  %b = memref.alloc(%n) : memref<?xf32, "gpu">
  %c = memref.alloc(%n) : memref<?xf32, "gpu">
  %z = memref.alloc(%n) : memref<?xf32, "gpu">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %a {name = "a"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.negate %a -> %b {name = "b"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.add %a, %b -> %c {name = "c"} : (memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %c[%i] : memref<?xf32, "gpu">
      %1 = memref.load %a[%i] : memref<?xf32, "gpu">
      %2 = memref.load %x[%i] : memref<?xf32, "gpu">
      %3 = arith.mulf %0, %1 : f32
      %4 = arith.mulf %3, %2 : f32
      memref.store %4, %z[%i] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return %z : memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         "lmhlo.fusion"
// CHECK-NEXT:      scf.parallel (%[[I:.*]]) =
// CHECK-NEXT:        %[[X:.*]] = memref.load %x[%[[I]]]
// CHECK-NEXT:        %[[A:.*]] = math.absf %[[X]]
// CHECK-NEXT:        %[[B:.*]] = arith.negf %[[A]]
// CHECK-NEXT:        %[[C:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:        %[[P:.*]] = arith.mulf %[[C]], %[[A]]
// CHECK-NEXT:        %[[Q:.*]] = arith.mulf %[[P]], %[[X]]
// CHECK-NEXT:        memref.store %[[Q]], %z[%[[I]]]
// CHECK-NEXT:        scf.reduce
// CHECK-NEXT:      }
// CHECK-NEXT:      lmhlo.terminator

// -----

// What the loop stored in a root's buffer is the element of the root; at other indices it is computed, never read from memory.
func.func @main(%x: memref<?x4xf32, "gpu">, %n: index) -> (memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) {
  %a = memref.alloc(%n) : memref<?x4xf32, "gpu">
  %b = memref.alloc(%n) : memref<?x4xf32, "gpu">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %a {name = "a"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %x[%i, %c0] : memref<?x4xf32, "gpu">
      %1 = math.absf %0 : f32
      memref.store %1, %a[%i, %c0] : memref<?x4xf32, "gpu">
      %2 = memref.load %a[%i, %c0] : memref<?x4xf32, "gpu">
      memref.store %2, %b[%i, %c0] : memref<?x4xf32, "gpu">
      %3 = memref.load %a[%i, %c1] : memref<?x4xf32, "gpu">
      memref.store %3, %b[%i, %c1] : memref<?x4xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return %a, %b : memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           %[[A:.*]] = math.absf
// CHECK-NEXT:      memref.store %[[A]], %a
// CHECK-NEXT:      memref.store %[[A]], %b[%[[I]], %c0]
// CHECK-NEXT:      %[[X:.*]] = memref.load %x[%[[I]], %c1]
// CHECK-NEXT:      %[[B:.*]] = math.absf %[[X]]
// CHECK-NEXT:      memref.store %[[B]], %b[%[[I]], %c1]
// CHECK-NOT:       memref.load %a

// -----

// A load is not taken for one before a store to its buffer; nor is one of a branch taken for one outside.
func.func @main(%x: memref<?xf32, "gpu">, %s: memref<?xf32, "gpu">, %n: index, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %0 = memref.load %s[%i] : memref<?xf32, "gpu">
      %1 = arith.addf %0, %0 : f32
      memref.store %1, %s[%i] : memref<?xf32, "gpu">
      %2 = memref.load %s[%i] : memref<?xf32, "gpu">
      scf.if %p {
        %3 = memref.load %x[%i] : memref<?xf32, "gpu">
        memref.store %3, %s[%c0] : memref<?xf32, "gpu">
      }
      %4 = memref.load %x[%i] : memref<?xf32, "gpu">
      %5 = memref.load %x[%i] : memref<?xf32, "gpu">
      %6 = arith.addf %2, %4 : f32
      %7 = arith.addf %6, %5 : f32
      memref.store %7, %s[%c1] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK:           memref.load %s[%[[I:.*]]]
// CHECK:           memref.store %{{.*}}, %s[%[[I]]]
// CHECK-NEXT:      %[[S:.*]] = memref.load %s[%[[I]]]
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        memref.load %x[%[[I]]]
// CHECK:           }
// CHECK-NEXT:      %[[X:.*]] = memref.load %x[%[[I]]]
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[S]], %[[X]]
// CHECK-NEXT:      arith.addf %[[SUM]], %[[X]]

// -----

// Inside loops and branches of a schedule too; a value from around is used there, and indices are computed once.
func.func @main(%x: memref<?x?xf32, "gpu">, %z: memref<?xf32, "gpu">, %n: index, %m: index) {
  %t = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  %r = memref.alloc(%m, %n) : memref<?x?xf32, "gpu">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() <{kind = "kRowReduction", fusion_name = "f"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.transpose %t -> %r {dimensions = array<i64: 1, 0>, name = "r"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %first = memref.load %t[%i, %c0] : memref<?x?xf32, "gpu">
      %sum = scf.for %j = %c1 to %m step %c1 iter_args(%old = %first) -> (f32) {
        %0 = memref.load %r[%j, %i] : memref<?x?xf32, "gpu">
        %1 = memref.load %r[%c0, %i] : memref<?x?xf32, "gpu">
        %2 = arith.addf %old, %0 : f32
        %3 = arith.addf %2, %1 : f32
        scf.yield %3 : f32
      }
      memref.store %sum, %z[%i] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK:           %[[F:.*]] = memref.load %x[%[[I:.*]], %c0]
// CHECK-NEXT:      %[[FIRST:.*]] = math.absf %[[F]]
// CHECK-NEXT:      scf.for %[[J:.*]] = %c1 to %m step %c1 iter_args(%[[OLD:.*]] = %[[FIRST]]) -> (f32) {
// CHECK-NEXT:        %[[E:.*]] = memref.load %x[%[[I]], %[[J]]]
// CHECK-NEXT:        %[[V:.*]] = math.absf %[[E]]
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addf %[[OLD]], %[[V]]
// CHECK-NEXT:        arith.addf %[[NEXT]], %[[FIRST]]

// -----

// An element of a branch is computed there, and not loaded where it is not chosen; sizes that are sums are sums of the host.
func.func @main(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index, %m: index) -> memref<?xf32, "gpu"> {
  %nm = arith.addi %n, %m : index
  %t = memref.alloc(%n) : memref<?xf32, "gpu">
  %k = memref.alloc(%nm) : memref<?xf32, "gpu">
  %z = memref.alloc(%nm) : memref<?xf32, "gpu">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.concatenate %t, %y -> %k {dimensions = array<i64: 0>, name = "k"} : (memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    scf.parallel (%i) = (%c0) to (%nm) step (%c1) {
      %0 = memref.load %k[%i] : memref<?xf32, "gpu">
      memref.store %0, %z[%i] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return %z : memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:           %[[FIRST:.*]] = arith.cmpi ult, %[[I:.*]], %n : index
// CHECK-NEXT:      %[[Z:.*]] = scf.if %[[FIRST]] -> (f32) {
// CHECK-NEXT:        %[[X:.*]] = memref.load %x[%[[I]]]
// CHECK-NEXT:        %[[T:.*]] = math.absf %[[X]]
// CHECK-NEXT:        scf.yield %[[T]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[AT:.*]] = arith.subi %[[I]], %n
// CHECK-NEXT:        %[[Y:.*]] = memref.load %y[%[[AT]]]
// CHECK-NEXT:        scf.yield %[[Y]]
// CHECK-NEXT:      }
// CHECK-NEXT:      memref.store %[[Z]], %z[%[[I]]]

// -----

// A fusion without results is gone.
func.func @main(%x: memref<4xf32, "gpu">) {
  %t = memref.alloc() : memref<4xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     lmhlo
// CHECK:         return
