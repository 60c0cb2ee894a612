// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop %s | filecheck %s

// A tile is read along rows of the operand, all loads first, and written along rows of the result; negate is computed where it is written.
func.func @transposed(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["r", "c"]}) -> memref<?x?xf32, "gpu"> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.dim %x, %c0 : memref<?x?xf32, "gpu">
  %c = memref.dim %x, %c1 : memref<?x?xf32, "gpu">
  %t = memref.alloc(%c, %r) {disc.sizes = ["c", "r"]} : memref<?x?xf32, "gpu">
  %y = memref.alloc(%c, %r) {disc.sizes = ["c", "r"]} : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.transpose %x -> %t {dimensions = array<i64: 1, 0>, name = "t"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.negate %t -> %y {name = "y"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) {disc.tiles = 1 : i64} : () -> ()
  return %y : memref<?x?xf32, "gpu">
}
// CHECK:      scf.parallel (%[[BLOCK:.*]], %[[THREAD:.*]]) = {{.*}}, %c256{{.*}})
// CHECK-DAG:    %[[TILE:.*]] = memref.alloc() : memref<1056xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:    %[[HELD:.*]] = memref.alloca() : memref<4xf32>
// CHECK-COUNT-4: memref.load %x[
// CHECK-NOT:    memref.load %x[
// CHECK-COUNT-4: memref.store %{{.*}}, %[[TILE]][
// CHECK:        gpu.barrier
// CHECK:        scf.if
// CHECK:          %[[T:.*]] = memref.load %[[TILE]][
// CHECK:          %[[Y:.*]] = arith.negf %[[T]]
// CHECK-NEXT:     memref.store %[[Y]], %y[
// CHECK-COUNT-3: memref.store %{{.*}}, %y[
// CHECK-NOT:    memref.store %{{.*}}, %t
// CHECK:      } {disc.schedule = "tiles"}
