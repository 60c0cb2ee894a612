// RUN: exit 70 xla-emitters-opt -p xla-merge-pointers %s 2>&1 | filecheck %s

// A callee's two arguments of one slice must be one buffer at every call.
// CHECK:      error: [xla-merge-pointers] 'func.call' of @f passes different buffers for arguments 0 and 1, which have one xla.slice_index
// CHECK-NEXT: call.1 (k.hlo:3:3)
func.func private @f(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}) {
  return
}
func.func @main(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 1 : index}) {
  func.call @f(%a, %b) : (!llvm.ptr, !llvm.ptr) -> () loc("call.1"("k.hlo":3:3))
  return
}
