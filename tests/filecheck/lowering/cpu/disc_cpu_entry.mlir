// RUN: xla-emitters-opt -p disc-cpu-entry %s | filecheck %s
// What a launch adds is an argument, a block's variable is on the stack, and nothing says that it is for a GPU.
llvm.mlir.global external @launch_shared_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
llvm.mlir.global private @shared_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<256 x f32>
llvm.func @k(%x: !llvm.ptr {llvm.noalias}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 1, 1, 1>} {
  %0 = llvm.mlir.addressof @launch_shared_0 : !llvm.ptr<3>
  %1 = llvm.addrspacecast %0 : !llvm.ptr<3> to !llvm.ptr
  %2 = llvm.mlir.addressof @shared_0 : !llvm.ptr<3>
  %3 = llvm.addrspacecast %2 : !llvm.ptr<3> to !llvm.ptr
  %v = llvm.load %1 : !llvm.ptr -> f32
  llvm.store %v, %3 : f32, !llvm.ptr
  llvm.return
}
// CHECK-NOT:   llvm.mlir.global
// CHECK:       llvm.func @k(%x: !llvm.ptr {llvm.noalias}, %scratch: !llvm.ptr {llvm.noalias, llvm.align = 64 : index}) {
// CHECK-NEXT:    %[[ONE:.*]] = llvm.mlir.constant(1 : i64) : i64
// CHECK-NEXT:    %[[STACK:.*]] = llvm.alloca %[[ONE]] x !llvm.array<256 x f32>
// CHECK-NEXT:    %[[V:.*]] = llvm.load %scratch
// CHECK-NEXT:    llvm.store %[[V]], %[[STACK]]
