// RUN: xla-emitters-opt --split-input-file -p disc-lhlo-legalize-to-loop %s | filecheck %s

// The root becomes a loop over its elements and loads what it reads; the producer stays for disc-input-inline-fusion.
func.func @main(%x: memref<?x4xf32, "gpu">, %y: memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu"> {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32, "gpu">
  %t = memref.alloc(%n) : memref<?x4xf32, "gpu">
  %z = memref.alloc(%n) : memref<?x4xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
    lmhlo.add %t, %y -> %z {name = "z"} : (memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %z : memref<?x4xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[ALL:.*]] = arith.muli %n, %{{.*}} : index
// CHECK:         "lmhlo.fusion"
// CHECK-NEXT:      lmhlo.abs %x -> %t
// CHECK-NEXT:      scf.parallel (%[[I:.*]]) = (%{{.*}}) to (%[[ALL]]) step (%{{.*}}) {
// CHECK-NEXT:        %[[D:.*]]:2 = affine.delinearize_index %[[I]] into (%n, 4)
// CHECK-NEXT:        %[[T:.*]] = memref.load %t[%[[D]]#0, %[[D]]#1]
// CHECK-NEXT:        %[[Y:.*]] = memref.load %y[%[[D]]#0, %[[D]]#1]
// CHECK-NEXT:        %[[Z:.*]] = arith.addf %[[T]], %[[Y]] : f32
// CHECK-NEXT:        memref.store %[[Z]], %z[%[[D]]#0, %[[D]]#1]
// CHECK-NEXT:        scf.reduce
// CHECK-NEXT:      } {disc.schedule = "loop"}
// CHECK-NEXT:      lmhlo.terminator

// -----

// Several roots: one loop; coordinates are shared where the shape is; a root that another one reads at its place is a value.
func.func @main(%x: memref<?x4xf32, "gpu">) -> (memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">, memref<4x?xf32, "gpu">) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32, "gpu">
  %a = memref.alloc(%n) : memref<?x4xf32, "gpu">
  %b = memref.alloc(%n) : memref<?x4xf32, "gpu">
  %c = memref.alloc(%n) : memref<4x?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %a {name = "a"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
    lmhlo.negate %a -> %b {name = "b"} : (memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
    lmhlo.transpose %a -> %c {dimensions = array<i64: 1, 0>, name = "c"} : (memref<?x4xf32, "gpu">) -> memref<4x?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %a, %b, %c : memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">, memref<4x?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:           lmhlo.abs %x -> %a
// CHECK-NEXT:      scf.parallel (%[[I:.*]]) =
// CHECK-NEXT:        %[[D:.*]]:2 = affine.delinearize_index %[[I]] into (%n, 4)
// CHECK-NEXT:        %[[X:.*]] = memref.load %x[%[[D]]#0, %[[D]]#1]
// CHECK-NEXT:        %[[A:.*]] = math.absf %[[X]]
// CHECK-NEXT:        memref.store %[[A]], %a[%[[D]]#0, %[[D]]#1]
// CHECK-NEXT:        %[[B:.*]] = arith.negf %[[A]]
// CHECK-NEXT:        memref.store %[[B]], %b[%[[D]]#0, %[[D]]#1]
// CHECK-NEXT:        %[[E:.*]]:2 = affine.delinearize_index %[[I]] into (4, %n)
// CHECK-NEXT:        %[[C:.*]] = memref.load %a[%[[E]]#1, %[[E]]#0]
// CHECK-NEXT:        memref.store %[[C]], %c[%[[E]]#0, %[[E]]#1]
// CHECK-NEXT:        scf.reduce

// -----

// With a vector, an iteration visits neighbours; equal texts of sizes are one value.
func.func @main(%x: memref<?xf32, "gpu"> {disc.sizes = ["4*b"]}, %y: memref<?xf32, "gpu"> {disc.sizes = ["4*b"]}, %n: index) -> memref<?xf32, "gpu"> {
  %z = memref.alloc(%n) {disc.sizes = ["4*b"]} : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.add %x, %y -> %z {name = "z"} : (memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.vector = 4 : i64} : () -> ()
  return %z : memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.dim
// CHECK:         scf.parallel (%[[I:.*]]) = (%{{.*}}) to (%n) step (%[[FOUR:c4.*]]) {
// CHECK:           scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:        %[[AT:.*]] = arith.addi %[[I]], %[[K]] : index
// CHECK-NEXT:        memref.load %x[%[[AT]]]
// CHECK-NEXT:        memref.load %y[%[[AT]]]
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        memref.store %{{.*}}, %z[%[[AT]]]

// -----

// Sizes that are known to be equal are one value, for buffers of different makers too.
func.func @main(%x: memref<?x3xf32, "gpu"> {disc.sizes = ["b", "3"]}, %n: index, %m: index) -> (memref<?x3xf32, "gpu">, memref<?x3xf32, "gpu">) {
  %y = memref.alloc(%n) {disc.sizes = ["b", "3"]} : memref<?x3xf32, "gpu">
  %z = memref.alloc(%m) {disc.sizes = ["b", "3"]} : memref<?x3xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %y {name = "y"} : (memref<?x3xf32, "gpu">) -> memref<?x3xf32, "gpu">
    lmhlo.negate %x -> %z {name = "z"} : (memref<?x3xf32, "gpu">) -> memref<?x3xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %y, %z : memref<?x3xf32, "gpu">, memref<?x3xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         affine.delinearize_index %{{.*}} into (%n, 3)
// CHECK-NOT:     affine.delinearize_index
// CHECK:         scf.reduce

// -----

// Truth values are bytes 0 and 1 in kernels, and integers have no sign.
func.func @main(%x: memref<?xui32, "gpu">, %y: memref<?xui32, "gpu">, %n: index) -> (memref<?xi1, "gpu">, memref<?xui32, "gpu">) {
  %z = memref.alloc(%n) : memref<?xi1, "gpu">
  %s = memref.alloc(%n) : memref<?xui32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.compare %x, %y -> %z {direction = "LT", name = "z"} : (memref<?xui32, "gpu">, memref<?xui32, "gpu">) -> memref<?xi1, "gpu">
    lmhlo.maximum %x, %y -> %s {name = "s"} : (memref<?xui32, "gpu">, memref<?xui32, "gpu">) -> memref<?xui32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %z, %s : memref<?xi1, "gpu">, memref<?xui32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:           %[[LX:.*]] = memref.load %x
// CHECK-NEXT:      %[[X:.*]] = builtin.unrealized_conversion_cast %[[LX]] : ui32 to i32
// CHECK-NEXT:      %[[LY:.*]] = memref.load %y
// CHECK-NEXT:      %[[Y:.*]] = builtin.unrealized_conversion_cast %[[LY]] : ui32 to i32
// CHECK-NEXT:      %[[C:.*]] = arith.cmpi ult, %[[X]], %[[Y]] : i32
// CHECK-NEXT:      %[[B:.*]] = arith.extui %[[C]] : i1 to i8
// CHECK-NEXT:      %[[P:.*]] = arith.trunci %[[B]] : i8 to i1
// CHECK-NEXT:      memref.store %[[P]], %z
// CHECK-NEXT:      %[[M:.*]] = arith.maxui %[[X]], %[[Y]] : i32
// CHECK-NEXT:      %[[U:.*]] = builtin.unrealized_conversion_cast %[[M]] : i32 to ui32
// CHECK-NEXT:      memref.store %[[U]], %s

// -----

// An update in the buffer of its operand writes its window alone.
func.func @main(%x: memref<?xf32, "gpu">, %u: memref<3xf32, "gpu">, %i: memref<i32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.dynamic_update_slice %x, %u, %i -> %x {name = "x"} : (memref<?xf32, "gpu">, memref<3xf32, "gpu">, memref<i32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[LAST:.*]] = arith.subi %{{.*}}, %c3
// CHECK:         scf.parallel (%[[I:.*]]) = (%{{.*}}) to (%c3{{.*}}) step
// CHECK-NEXT:      %[[U:.*]] = memref.load %u[%[[I]]]
// CHECK-NEXT:      %[[START:.*]] = memref.load %i[]
// CHECK-NEXT:      arith.index_cast %[[START]] : i32 to index
// CHECK-NEXT:      arith.minsi %{{.*}}, %[[LAST]]
// CHECK:           %[[FIRST:.*]] = arith.maxsi
// CHECK-NEXT:      %[[AT:.*]] = arith.addi %[[FIRST]], %[[I]]
// CHECK-NEXT:      memref.store %[[U]], %x[%[[AT]]]

// -----

// Fusions of the host, and fusions whose results nothing uses, are left.
func.func @main(%x: memref<4xf32, "gpu">, %y: memref<4xi32, "cpu">) -> memref<4xi32, "cpu"> {
  %t = memref.alloc() : memref<4xf32, "gpu">
  %z = memref.alloc() : memref<4xi32, "cpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<4xf32, "gpu">) -> memref<4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "g"}> ({
    lmhlo.abs %y -> %z {name = "z"} : (memref<4xi32, "cpu">) -> memref<4xi32, "cpu">
    lmhlo.terminator
  }) {disc.device = "cpu"} : () -> ()
  return %z : memref<4xi32, "cpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     scf.parallel
