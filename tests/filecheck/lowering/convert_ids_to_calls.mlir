// RUN: xla-emitters-opt -p xla-convert-ids-to-calls --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-convert-ids-to-calls --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// Two kernels of one module share the function that reads a register between the same bounds; other bounds are another function.
llvm.func @f(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 360> : i32
  %i = llvm.add %t, %b : i32
  llvm.store %i, %p : i32, !llvm.ptr
  llvm.return
}
llvm.func @g(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 7> : i32
  %y = nvvm.read.ptx.sreg.tid.y range <i32, 0, 4> : i32
  %i = llvm.add %t, %b : i32
  %j = llvm.add %i, %y : i32
  llvm.store %j, %p : i32, !llvm.ptr
  llvm.return
}
// CHECK-LABEL: llvm.func @f
// CHECK-NEXT:    %[[T:.*]] = llvm.call @sreg.tid.x.0.128() : () -> i32
// CHECK-NEXT:    %[[B:.*]] = llvm.call @sreg.ctaid.x.0.360() : () -> i32
// CHECK-NEXT:    llvm.add %[[T]], %[[B]] : i32
// CHECK-LABEL: llvm.func @g
// CHECK-NEXT:    llvm.call @sreg.tid.x.0.128() : () -> i32
// CHECK-NEXT:    llvm.call @sreg.ctaid.x.0.7() : () -> i32
// CHECK-NEXT:    llvm.call @sreg.tid.y.0.4() : () -> i32
// CHECK:       llvm.func @sreg.tid.x.0.128() -> i32 attributes {xla.register = "tid.x", xla.register_range = #llvm.constant_range<i32, 0, 128>}
// CHECK-NEXT:  llvm.func @sreg.ctaid.x.0.360() -> i32 attributes {xla.register = "ctaid.x", xla.register_range = #llvm.constant_range<i32, 0, 360>}
// CHECK-NEXT:  llvm.func @sreg.ctaid.x.0.7() -> i32
// CHECK-NEXT:  llvm.func @sreg.tid.y.0.4() -> i32
// CHECK-NOT:   llvm.func

// -----

// Stays: an id without a range, a register that holds no id, and ranges that LLVM's metadata cannot say.
llvm.func @stays() -> i32 {
  %a = nvvm.read.ptx.sreg.tid.x : i32
  %b = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
  %c = nvvm.read.ptx.sreg.tid.y range <i32, -1, 32> : i32
  %d = nvvm.read.ptx.sreg.tid.z range <i32, 8, 8> : i32
  llvm.return %a : i32
}
// CHECK-LABEL: llvm.func @stays
// CHECK-NEXT:    nvvm.read.ptx.sreg.tid.x : i32
// CHECK-NEXT:    nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
// CHECK-NEXT:    nvvm.read.ptx.sreg.tid.y range <i32, -1, 32> : i32
// CHECK-NEXT:    nvvm.read.ptx.sreg.tid.z range <i32, 8, 8> : i32
// REMARK:        skipped nvvm.read.ptx.sreg.tid.z: its range is empty, or starts below 0
// REMARK:        skipped nvvm.read.ptx.sreg.tid.y: the module has another function called sreg.tid.y.0.64
// CHECK-NOT:     llvm.func

// -----

// The declaration of an earlier run is used; a function that only has the name is not called.
llvm.func @h() -> i32 {
  %a = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
  %b = nvvm.read.ptx.sreg.tid.y range <i32, 0, 64> : i32
  %c = llvm.add %a, %b : i32
  llvm.return %c : i32
}
llvm.func @sreg.tid.x.0.64() -> i32 attributes {xla.register = "tid.x", xla.register_range = #llvm.constant_range<i32, 0, 64>}
llvm.func @sreg.tid.y.0.64() -> i32
// CHECK-LABEL: llvm.func @h
// CHECK-NEXT:    llvm.call @sreg.tid.x.0.64() : () -> i32
// CHECK-NEXT:    nvvm.read.ptx.sreg.tid.y range <i32, 0, 64> : i32
// CHECK:       llvm.func @sreg.tid.x.0.64() -> i32 attributes
// CHECK-NEXT:  llvm.func @sreg.tid.y.0.64() -> i32
// CHECK-NOT:   llvm.func
