// RUN: xla-emitters-opt %s | filecheck %s
// RUN: xla-emitters-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC
// RUN: xla-emitters-opt %s --print-op-generic | xla-emitters-opt | filecheck %s
// The seed's listing "Conversion to LLVM": what xDSL's llvm dialect lacks or loses is read and written as MLIR does.

// CHECK-LABEL: llvm.func @main(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @main(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
  %0 = llvm.mlir.constant(512 : i32) : i32
  %1 = llvm.mlir.constant(4 : i32) : i32
  %2 = llvm.mlir.constant(0 : i32) : i32
  %8 = llvm.mlir.poison : vector<4xbf16>
  // CHECK: nvvm.read.ptx.sreg.tid.x : i32
  %11 = nvvm.read.ptx.sreg.tid.x : i32
  // CHECK-NEXT: nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 24576> : i32
  %12 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 24576> : i32
  %13 = llvm.mul %11, %1 : i32
  %14 = llvm.mul %12, %0 : i32
  %15 = llvm.add %13, %14 : i32
  // CHECK: llvm.getelementptr inbounds %arg0[%{{.*}}] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  // GENERIC: "llvm.getelementptr"(%arg0, %{{.*}}) <{elem_type = bf16, noWrapFlags = 3 : i32, rawConstantIndices = array<i32: -2147483648>}>
  %16 = llvm.getelementptr inbounds %arg0[%15] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  // CHECK-NEXT: llvm.load %{{.*}} invariant : !llvm.ptr -> vector<4xbf16>
  // GENERIC: "llvm.load"(%{{.*}}) <{invariant, ordering = 0 : i64}>
  %17 = llvm.load %16 invariant : !llvm.ptr -> vector<4xbf16>
  // CHECK-NEXT: llvm.extractelement %{{.*}}[%{{.*}} : i32] : vector<4xbf16>
  %18 = llvm.extractelement %17[%2 : i32] : vector<4xbf16>
  %24 = llvm.fpext %18 : bf16 to f32
  // CHECK: llvm.call @__nv_tanhf(%{{.*}}) : (f32) -> f32
  %25 = llvm.call @__nv_tanhf(%24) : (f32) -> f32
  %26 = llvm.fptrunc %25 : f32 to bf16
  // CHECK: llvm.insertelement %{{.*}}, %{{.*}}[%{{.*}} : i32] : vector<4xbf16>
  %30 = llvm.insertelement %26, %8[%2 : i32] : vector<4xbf16>
  %31 = llvm.getelementptr inbounds %arg1[%15] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr
  llvm.store %30, %31 {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr
  llvm.return
}
