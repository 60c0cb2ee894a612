// RUN: xla-emitters-opt -p disc-revise-gpu-kernel-outlining --split-input-file %s | filecheck %s
// The listing of the seed document: a list in the host's memory becomes its elements, loaded by the host; the order of the others stays.
module attributes {gpu.container_module} {
  func.func @main(%grid: index, %n: index, %arg3: memref<f32, "gpu">, %arg2: memref<2xi32, "cpu">, %arg1: memref<?xf32, "gpu">, %m: index, %arg4: memref<?xf32, "gpu">) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    "gpu.launch_func"(%grid, %c1, %c1, %c256, %c1, %c1, %n, %arg3, %arg2, %arg1, %m, %arg4) <{kernel = @reduce::@reduce, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 6, 0>}> : (index, index, index, index, index, index, index, memref<f32, "gpu">, memref<2xi32, "cpu">, memref<?xf32, "gpu">, index, memref<?xf32, "gpu">) -> ()
    return
  }
  gpu.module @reduce {
    gpu.func @reduce(%n: index, %init: memref<f32, "gpu">, %shape: memref<2xi32, "cpu">, %x: memref<?xf32, "gpu">, %m: index, %y: memref<?xf32, "gpu">) workgroup(%s: memref<32xf32, 3>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = memref.load %shape[%c0] : memref<2xi32, "cpu">
      %b = memref.load %shape[%c1] : memref<2xi32, "cpu">
      %p = arith.muli %a, %b : i32
      %q = arith.index_cast %p : i32 to index
      %r = arith.addi %n, %m : index
      %o = arith.addi %q, %r : index
      %i = memref.load %init[] : memref<f32, "gpu">
      %v = memref.load %x[%o] : memref<?xf32, "gpu">
      %w = arith.addf %i, %v : f32
      memref.store %w, %y[%o] : memref<?xf32, "gpu">
      gpu.return
    }
  }
}
// CHECK:         %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[A:.*]] = memref.load %arg2[%[[C0]]] : memref<2xi32, "cpu">
// CHECK-NEXT:    %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[B:.*]] = memref.load %arg2[%[[C1]]] : memref<2xi32, "cpu">
// CHECK-NEXT:    "gpu.launch_func"(%grid, %c1, %c1, %c256, %c1, %c1, %n, %arg3, %[[A]], %[[B]], %arg1, %m, %arg4)
// CHECK-SAME:      (index, index, index, index, index, index, index, memref<f32, "gpu">, i32, i32, memref<?xf32, "gpu">, index, memref<?xf32, "gpu">) -> ()
// CHECK:         gpu.func @reduce(%n: index, %init: memref<f32, "gpu">, %[[S0:.*]]: i32, %[[S1:.*]]: i32, %x: memref<?xf32, "gpu">, %m: index, %y: memref<?xf32, "gpu">) workgroup(%s: memref<32xf32, 3 : i64>) kernel
// CHECK:           arith.muli %[[S0]], %[[S1]] : i32

// -----

// One size is passed once, what is not used is dropped, and arguments that nothing else points into say so.
module attributes {gpu.container_module} {
  func.func @main(%x: memref<?xf32, "gpu"> {disc.sizes = ["b"]}, %unused: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?xf32, "gpu">
    %m = memref.dim %x, %c0 : memref<?xf32, "gpu">
    %y = memref.alloc(%n) : memref<?xf32, "gpu">
    "gpu.launch_func"(%n, %c1, %c1, %c1, %c1, %c1, %x, %y, %n, %unused, %m) <{kernel = @k::@k, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 5, 0>}> : (index, index, index, index, index, index, memref<?xf32, "gpu">, memref<?xf32, "gpu">, index, index, index) -> ()
    return
  }
  gpu.module @k {
    gpu.func @k(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index, %unused: index, %m: index) kernel {
      %i = arith.subi %n, %m : index
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      memref.store %v, %y[%i] : memref<?xf32, "gpu">
      gpu.return
    }
  }
}
// CHECK:         "gpu.launch_func"(%n, %c1, %c1, %c1, %c1, %c1, %x, %y, %n)
// CHECK:         gpu.func @k(%x: memref<?xf32, "gpu"> {llvm.noalias}, %y: memref<?xf32, "gpu"> {llvm.noalias}, %n: index) kernel
// CHECK-NEXT:      arith.subi %n, %n : index
