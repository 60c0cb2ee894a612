// RUN: xla-emitters-opt -p disc-gpu-launch-func-to-ral %s | filecheck %s
// Context, stream, blocks, threads, bytes of shared memory, the kernel's own arguments; the kernel by its name.
module attributes {gpu.container_module} {
  func.func @main(%ctx: !disc_ral.context) {
    %x = disc_ral.recv_input %ctx, 0 : memref<?xf32, "gpu">
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    "gpu.launch_func"(%c256, %c1, %c1, %c256, %c1, %c1, %x, %c1) <{kernel = @k::@k, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}> : (index, index, index, index, index, index, memref<?xf32, "gpu">, index) -> ()
    return
  }
  gpu.module @k {
    gpu.func @k(%x: memref<?xf32, "gpu">, %n: index) kernel { gpu.return }
  }
}
// CHECK:         %stream = disc_ral.stream %ctx
// CHECK:         %[[SHARED:.*]] = arith.constant 0 : i32
// CHECK-NEXT:    disc_ral.dispatch "ral_kernel_launch" on "gpu"(%ctx, %stream, %c256, %c1, %c1, %c256, %c1, %c1, %[[SHARED]], %x, %c1) config "k"
// CHECK:       gpu.module @k
