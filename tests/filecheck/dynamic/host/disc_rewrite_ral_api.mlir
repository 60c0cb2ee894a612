// RUN: xla-emitters-opt --split-input-file -p disc-rewrite-ral-api %s | filecheck %s
// A call by name, with a pointer to each argument: context, stream, 3 + 2 * 2 parts of each of three matrices, three flags: 26 pointers.
func.func @main(%ctx: !disc_ral.context) {
  %st = disc_ral.stream %ctx
  %x = disc_ral.recv_input %ctx, 0 : memref<?x4xf32, "gpu">
  %f = arith.constant false
  disc_ral.dispatch "ral_gemm" on "gpu"(%ctx, %st, %x, %x, %x, %f, %f, %f) : (!disc_ral.context, !disc_ral.stream, memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">, i1, i1, i1) -> ()
  %s = memref.alloca() : memref<i32, "cpu">
  lmhlo.abs %s -> %s {name = "abs.3"} : (memref<i32, "cpu">) -> memref<i32, "cpu">
  return
}
// CHECK:       llvm.mlir.global internal constant @ral_name_0("ral_recv_input___gpu___pvoid_i64___m2df32\00")
// CHECK:       llvm.mlir.global internal constant @ral_name_1("ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void\00")
// CHECK:       llvm.mlir.global internal constant @ral_name_2("lmhlo_abs_abs_3___cpu___pvoid_m0di32_m0di32___void\00")
// CHECK:       func.func @main
// CHECK:       llvm.alloca %{{.*}} x !llvm.array<9 x !llvm.ptr>
// CHECK:       llvm.alloca %{{.*}} x !llvm.struct<(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i1, i1, i1)>
// CHECK-NEXT:  llvm.alloca %{{.*}} x !llvm.array<26 x !llvm.ptr>
// A result is behind the arguments, and is read after the call, if that was good.
// CHECK:       %[[NAME:.*]] = llvm.mlir.addressof @ral_name_0
// CHECK-NEXT:  llvm.call @ral_api_call(%{{.*}}, %[[NAME]], %{{.*}})
// CHECK:       %[[STATUS:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK:       %[[FAILED:.*]] = arith.cmpi ne, %[[STATUS]], %{{.*}} : i64
// CHECK-NEXT:  cf.cond_br %[[FAILED]], ^[[STOP:.*]], ^[[NEXT:.*]]
// CHECK-NEXT:  ^[[NEXT]]:
// CHECK-NEXT:  llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK:       llvm.insertvalue
// CHECK:       llvm.mlir.addressof @ral_name_1
// CHECK-NEXT:  llvm.call @ral_api_call
// CHECK:       llvm.mlir.addressof @ral_name_2
// CHECK-NEXT:  llvm.call @ral_api_call
// CHECK:       ^[[STOP]]:
// CHECK-NEXT:  return
// CHECK:       llvm.func @ral_api_call(!llvm.ptr, !llvm.ptr, !llvm.ptr)

// -----

// Functions that call the runtime share names; a function stops too if one that it called failed.
func.func @tao_main(%ctx: !disc_ral.context) {
  %x = disc_ral.recv_input %ctx, 0 : memref<4xf32>
  func.call @fusion(%ctx, %x) : (!disc_ral.context, memref<4xf32>) -> ()
  disc_ral.send_output %ctx, 0, %x : memref<4xf32>
  return
}
func.func @fusion(%ctx: !disc_ral.context, %x: memref<4xf32>) {
  lmhlo.abs %x -> %x {name = "a"} : (memref<4xf32>) -> memref<4xf32>
  lmhlo.abs %x -> %x {name = "a"} : (memref<4xf32>) -> memref<4xf32>
  return
}
// CHECK-LABEL: func.func @tao_main
// CHECK:         call @fusion(
// CHECK-NEXT:    builtin.unrealized_conversion_cast
// CHECK:         %[[STATUS:.*]] = llvm.load
// CHECK:         %[[FAILED:.*]] = arith.cmpi ne, %[[STATUS]]
// CHECK-NEXT:    cf.cond_br %[[FAILED]]
// CHECK:       llvm.mlir.global internal constant @ral_name_2("lmhlo_abs_a___cpu___pvoid_m1df32_m1df32___void\00")
// CHECK:       llvm.mlir.global internal constant @ral_name_3("lmhlo_abs_a_0___cpu___pvoid_m1df32_m1df32___void\00")
// CHECK:       func.func @fusion(%ctx: !disc_ral.context, %x: memref<4xf32>)
// CHECK:       llvm.func @ral_api_call
// CHECK-NOT:   llvm.func
