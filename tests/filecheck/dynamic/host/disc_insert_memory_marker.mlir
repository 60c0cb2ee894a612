// RUN: xla-emitters-opt -p disc-insert-memory-marker %s | filecheck %s
// RUN: xla-emitters-opt -p disc-insert-memory-marker,disc-inject-execution-context,disc-convert-memory-marker %s | filecheck %s --check-prefix BACK

// A call marks each allocation of a GPU: its name spells the type. The seed's example, and a static size; the host's are not marked.
func.func @main(%x: memref<?x?xf32, "gpu">) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32, "gpu">
  %a = memref.alloc(%m, %m) : memref<?x?xf32, "gpu">
  %b = memref.alloc(%m) {temp = true} : memref<?x4xf32, "gpu">
  %c = memref.alloc() : memref<2xi32, "cpu">
  memref.dealloc %a : memref<?x?xf32, "gpu">
  memref.dealloc %b : memref<?x4xf32, "gpu">
  memref.dealloc %c : memref<2xi32, "cpu">
  return
}
// CHECK-LABEL: func.func @main
// CHECK:         %a = memref.alloc(%m, %m)
// CHECK-NEXT:    call @gpu_mem_marker_2df32_x_x(%a) : (memref<?x?xf32, "gpu">) -> ()
// CHECK-NEXT:    %b = memref.alloc(%m)
// CHECK-NEXT:    call @gpu_mem_marker_2df32_x_4(%b) : (memref<?x4xf32, "gpu">) -> ()
// CHECK-NEXT:    %c = memref.alloc()
// CHECK-NEXT:    memref.dealloc %a
// CHECK:       func.func private @gpu_mem_marker_2df32_x_x(memref<?x?xf32, "gpu">)
// CHECK:       func.func private @gpu_mem_marker_2df32_x_4(memref<?x4xf32, "gpu">)

// And back: allocations of the runtime, no marker left.
// BACK-NOT:    gpu_mem_marker
// BACK:          %a = disc_ral.dispatch "alloc" on "gpu"(%ctx, %m, %m) : (!disc_ral.context, index, index) -> memref<?x?xf32, "gpu">
// BACK:          %[[FOUR:.*]] = arith.constant 4 : index
// BACK-NEXT:     %b = disc_ral.dispatch "alloc" on "gpu"(%ctx, %m, %[[FOUR]])
// BACK-NEXT:     %c = memref.alloc() : memref<2xi32, "cpu">
// BACK-NEXT:     disc_ral.dispatch "dealloc" on "gpu"(%ctx, %a)
// BACK-NEXT:     disc_ral.dispatch "dealloc" on "gpu"(%ctx, %b)
// BACK-NEXT:     memref.dealloc %c
// BACK-NOT:    gpu_mem_marker
