// RUN: xla-emitters-opt -p disc-prefer-wide-vectors %s | filecheck %s
// Three computations for each access to memory, or a function's call: wide vectors. Less: those that LLVM chooses.
llvm.func @exp(%x: f32) -> f32
llvm.func @computes(%p: !llvm.ptr) {
  %x = llvm.load %p : !llvm.ptr -> f32
  %y = llvm.call @exp(%x) : (f32) -> f32
  llvm.store %y, %p : f32, !llvm.ptr
  llvm.return
}
// CHECK: llvm.func @computes({{.*}}passthrough = {{\[}}["prefer-vector-width", "512"]]
llvm.func @moves(%p: !llvm.ptr) {
  %x = llvm.load %p : !llvm.ptr -> f32
  %y = llvm.fadd %x, %x : f32
  llvm.store %y, %p : f32, !llvm.ptr
  llvm.return
}
// CHECK: llvm.func @moves(
// CHECK-NOT: passthrough
