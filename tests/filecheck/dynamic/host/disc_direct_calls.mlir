// RUN: xla-emitters-opt -p disc-direct-calls %s | filecheck %s
// RUN: xla-emitters-opt -p 'disc-direct-calls{logged=true}' %s | filecheck %s --check-prefix LOGGED
// What needs no runtime is done in place; where it fails the runtime is asked, which says why.
func.func @main(%ctx: !disc_ral.context) {
  %st = disc_ral.stream %ctx
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c0_i32 = arith.constant 0 : i32
  %x = disc_ral.recv_input %ctx, 1 : memref<?x4xf32, "gpu">
  %n = memref.dim %x, %c0 : memref<?x4xf32, "gpu">
  %o = disc_ral.dispatch "alloc" on "gpu"(%ctx, %n, %c4) : (!disc_ral.context, index, index) -> memref<?x4xf32, "gpu">
  disc_ral.dispatch "ral_kernel_launch" on "gpu"(%ctx, %st, %n, %c1, %c1, %c1, %c1, %c1, %c0_i32, %x, %o, %n) config "k" : (!disc_ral.context, !disc_ral.stream, index, index, index, index, index, index, i32, memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">, index) -> ()
  %a = memref.alloca() : memref<i32, "cpu">
  %p = memref.alloca() : memref<i1, "cpu">
  lmhlo.compare %a, %a -> %p {direction = "GE", name = "compare.1", type = "SIGNED"} : (memref<i32, "cpu">, memref<i32, "cpu">) -> memref<i1, "cpu">
  %q = memref.alloca() : memref<2xi1, "cpu">
  lmhlo.broadcast %p -> %q {name = "broadcast.2", dimensions = array<i64>} : (memref<i1, "cpu">) -> memref<2xi1, "cpu">
  disc_ral.send_output %ctx, 0, %o : memref<?x4xf32, "gpu">
  return
}
// The second argument: its data, and the size that its type leaves open.
// CHECK:       %[[INPUTS:.*]] = llvm.getelementptr %{{.*}}[3]
// CHECK-NEXT:  llvm.load %[[INPUTS]]
// CHECK-NEXT:  llvm.getelementptr %{{.*}}[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK:       %[[BYTES:.*]] = llvm.call @ral_product
// CHECK:       %[[BYTES2:.*]] = llvm.call @ral_product(%[[BYTES]]
// CHECK:       %[[DATA:.*]] = llvm.call @ral_new(%{{.*}}, %[[BYTES2]])
// CHECK:       llvm.icmp "ne" %[[DATA]]
// CHECK-NEXT:  cf.cond_br %{{.*}}, ^[[DIRECT:.*]], ^[[ASKED:.*]]
// CHECK-NEXT:  ^[[DIRECT]]:
// CHECK:       cf.br ^[[NEXT:.*]](%{{.*}} : memref<?x4xf32, "gpu">)
// CHECK-NEXT:  ^[[ASKED]]:
// CHECK-NEXT:  %[[O:.*]] = disc_ral.dispatch "alloc"
// CHECK-NEXT:  cf.br ^[[NEXT]](%[[O]] : memref<?x4xf32, "gpu">)
// All blocks of the kernel, one after the other, unless there is much to do.
// CHECK:       arith.cmpi slt
// CHECK:       cf.cond_br
// CHECK:       llvm.call @k(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, !llvm.ptr) -> ()
// CHECK:       disc_ral.dispatch "ral_kernel_launch"
// CHECK-NOT:   lmhlo.compare
// CHECK:       arith.cmpi sge, %{{.*}}, %{{.*}} : i32
// CHECK-NOT:   lmhlo.broadcast
// CHECK:       %[[TRUTH:.*]] = memref.load %p[] : memref<i1, "cpu">
// CHECK:       memref.store %[[TRUTH]], %q[%{{.*}}] : memref<2xi1, "cpu">
// CHECK:       memref.store %{{.*}}, %q[%{{.*}}] : memref<2xi1, "cpu">
// CHECK:       llvm.call @ral_give
// CHECK:       disc_ral.send_output
// CHECK:       llvm.func @k(!llvm.ptr, !llvm.ptr, i64, i64, i64, !llvm.ptr)
// Only integers are computed in place.
// LOGGED:      disc_ral.recv_input
// LOGGED:      disc_ral.dispatch "alloc"
// LOGGED-NEXT: disc_ral.dispatch "ral_kernel_launch"
// LOGGED-NOT:  lmhlo.
// LOGGED:      arith.cmpi sge
// LOGGED:      disc_ral.send_output
// LOGGED-NOT:  llvm.
