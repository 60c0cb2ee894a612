// RUN: xla-emitters-opt -p xla-add-line-info --print-debuginfo %s | filecheck %s

// The line is that of the HLO instruction, the column that of the op in this module: `module {` is line 1.
llvm.func @f(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %x = llvm.load %p : !llvm.ptr -> f32 loc("a"("k.hlo":7:2))
  %y = llvm.fmul %x, %x : f32 loc(fused["b"("k.hlo":8:2), "c"("k.hlo":9:2)])
  llvm.store %y, %p : f32, !llvm.ptr
  llvm.return
}

// CHECK:      llvm.func @f
// CHECK-NEXT:   llvm.load {{.*}} loc("k.hlo":7:3)
// CHECK-NEXT:   llvm.fmul {{.*}} loc("k.hlo":8:4)
// An op without a location has the line of what it reads, or of the op before it.
// CHECK-NEXT:   llvm.store {{.*}} loc("k.hlo":8:5)
// CHECK-NEXT:   llvm.return loc("k.hlo":8:6)
// CHECK-NEXT: } loc(fused<#llvm.di_subprogram<{{.*}}emissionKind = DebugDirectivesOnly{{.*}}name = "f"{{.*}}>["k.hlo":1:1])
