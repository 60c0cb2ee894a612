// RUN: xla-emitters-opt -p xla-convert-ids-to-calls --print-debuginfo %s | filecheck %s

// A call has the name and place of the op; a declaration those of all ops that it stands for.
llvm.func @ids(%out: !llvm.ptr) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 8> : i32 loc("a"("k.hlo":1:2))
  %b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 5> : i32 loc("a"("k.hlo":1:2))
  %again = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 5> : i32 loc("b"("k.hlo":2:2))
  %1 = llvm.sub %t, %b : i32
  %2 = llvm.sub %1, %again : i32
  llvm.store %2, %out : i32, !llvm.ptr
  llvm.return
}
// CHECK-LABEL: llvm.func @ids
// CHECK-NEXT:  %t = llvm.call @sreg.tid.x.0.8() : () -> i32 loc("a"("k.hlo":1:2))
// CHECK-NEXT:  %b = llvm.call @sreg.ctaid.x.0.5() : () -> i32 loc("a"("k.hlo":1:2))
// CHECK-NEXT:  %again = llvm.call @sreg.ctaid.x.0.5() : () -> i32 loc("b"("k.hlo":2:2))
// CHECK:       llvm.func @sreg.tid.x.0.8() -> i32 attributes {{.*}} loc("a"("k.hlo":1:2))
// CHECK-NEXT:  llvm.func @sreg.ctaid.x.0.5() -> i32 attributes {{.*}} loc(fused["a"("k.hlo":1:2), "b"("k.hlo":2:2)])
