// RUN: xla-emitters-opt --split-input-file -p disc-convert-memory-marker %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p 'disc-convert-memory-marker{cpu_too=true}' %s | filecheck %s --check-prefix BOTH

// A marker says it where the type does not; the host's allocator can be replaced too.
func.func @main(%ctx: !disc_ral.context, %n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  func.call @gpu_mem_marker_1df32_x(%a) : (memref<?xf32>) -> ()
  %b = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  memref.dealloc %b : memref<?xf32>
  return
}
func.func private @gpu_mem_marker_1df32_x(memref<?xf32>) -> ()
// CHECK:      %a = disc_ral.dispatch "alloc" on "gpu"(%ctx, %n) : (!disc_ral.context, index) -> memref<?xf32>
// CHECK-NEXT: %b = memref.alloc(%n) : memref<?xf32>
// CHECK-NEXT: disc_ral.dispatch "dealloc" on "gpu"(%ctx, %a)
// CHECK-NEXT: memref.dealloc %b
// CHECK-NOT:  gpu_mem_marker
// BOTH:       disc_ral.dispatch "alloc" on "gpu"(%ctx, %n)
// BOTH-NEXT:  disc_ral.dispatch "alloc" on "cpu"(%ctx, %n)
// BOTH-NEXT:  disc_ral.dispatch "dealloc" on "gpu"(%ctx, %a)
// BOTH-NEXT:  disc_ral.dispatch "dealloc" on "cpu"(%ctx, %b)

// -----

// Shared memory of a kernel is not allocated by the runtime.
gpu.module @k {
  gpu.func @k(%n: index) kernel {
    %s = memref.alloc(%n) : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.return
  }
}
// BOTH: memref.alloc(%n) : memref<?xi8, #gpu.address_space<workgroup>>
