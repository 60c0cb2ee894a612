// RUN: xla-emitters-opt -p disc-lower-host-integers %s | filecheck %s
// Ops on a few integers of the host become code; what is on the device, too long or not an integer stays.
func.func @main(%x: memref<f32, "cpu">, %d: memref<2xi32, "gpu">, %long: memref<17xi32, "cpu">) {
  %a = memref.alloca() : memref<i32, "cpu">
  %p = memref.alloca() : memref<i1, "cpu">
  lmhlo.compare %a, %a -> %p {direction = "GE", name = "compare.1", type = "SIGNED"} : (memref<i32, "cpu">, memref<i32, "cpu">) -> memref<i1, "cpu">
  %q = memref.alloca() : memref<2xi1, "cpu">
  lmhlo.broadcast %p -> %q {name = "broadcast.2", dimensions = array<i64>} : (memref<i1, "cpu">) -> memref<2xi1, "cpu">
  %t = memref.alloca() : memref<2xi1, "cpu">
  lmhlo.reverse %q -> %t {name = "reverse.3", dimensions = array<i64: 0>} : (memref<2xi1, "cpu">) -> memref<2xi1, "cpu">
  lmhlo.negate %x -> %x {name = "negate.4"} : (memref<f32, "cpu">) -> memref<f32, "cpu">
  lmhlo.negate %d -> %d {name = "negate.5"} : (memref<2xi32, "gpu">) -> memref<2xi32, "gpu">
  lmhlo.negate %long -> %long {name = "negate.6"} : (memref<17xi32, "cpu">) -> memref<17xi32, "cpu">
  return
}
// CHECK-NOT:   lmhlo.compare
// CHECK:       arith.cmpi sge, %{{.*}}, %{{.*}} : i32
// CHECK-NOT:   lmhlo.broadcast
// CHECK:       %[[TRUTH:.*]] = memref.load %p[] : memref<i1, "cpu">
// CHECK:       memref.store %{{.*}}, %q[%{{.*}}] : memref<2xi1, "cpu">
// CHECK:       memref.store %{{.*}}, %q[%{{.*}}] : memref<2xi1, "cpu">
// The elements of a reversed array, from the last on.
// CHECK-NOT:   lmhlo.reverse
// CHECK:       %[[LAST:.*]] = arith.constant 1 : index
// CHECK-NEXT:  %[[FROM:.*]] = memref.load %q[%[[LAST]]] : memref<2xi1, "cpu">
// CHECK:       memref.store %[[FROM]], %t[%{{.*}}] : memref<2xi1, "cpu">
// CHECK:       lmhlo.negate %x
// CHECK:       lmhlo.negate %d
// CHECK:       lmhlo.negate %long
