// RUN: xla-emitters-opt -p disc-gpu-kernel-outlining %s | filecheck %s
// Arguments are what the body takes from outside, buffers first; constants are copied; a block's memory is the function's; the launch says how
// many bytes memory of unknown size takes.
func.func @main(%n: index, %x: memref<?xf32, "gpu">, %grid: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%lx = %c64, %ly = %c1, %lz = %c1) {
    %s = memref.alloc() : memref<64xf32, 3>
    %kept = memref.alloc(%n) : memref<?xbf16, 3>
    %i = arith.addi %t, %n : index
    %j = arith.addi %i, %c1 : index
    %v = memref.load %x[%j] : memref<?xf32, "gpu">
    memref.store %v, %s[%t] : memref<64xf32, 3>
    gpu.terminator
  } {disc.name = "k"}
  return
}
// CHECK:       module attributes {gpu.container_module}
// CHECK:       func.func @main
// CHECK:         %[[BYTES:.*]] = arith.muli %n, %{{.*}} : index
// CHECK:         %[[SHARED:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:         "gpu.launch_func"(%grid, %c1, %c1, %c64, %c1, %c1, %[[SHARED]], %x, %n) <{kernel = @k::@k
// CHECK:       gpu.module @k {
// CHECK-NEXT:    gpu.func @k(%x: memref<?xf32, "gpu">, %n: index) workgroup(%s: memref<64xf32, 3 : i64>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
// CHECK-NEXT:      %t = gpu.thread_id x
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:      %kept = memref.alloc(%n) : memref<?xbf16, 3 : i64>
// CHECK-NEXT:      %i = arith.addi %t, %n : index
// CHECK-NEXT:      %j = arith.addi %i, %[[ONE]] : index
// CHECK:           gpu.return
