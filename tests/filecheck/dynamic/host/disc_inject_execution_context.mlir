// RUN: xla-emitters-opt --split-input-file -p disc-inject-execution-context %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-inject-execution-context,disc-inject-execution-context %s | filecheck %s

// The seed's example.
func.func @main(%arg0: memref<?x?xf32>, %arg1: memref<?x?xf32>, %n: memref<?x?xf32>) -> memref<?x?xf32> {
  lmhlo.add %arg0, %arg1 -> %n {name = "ret"} : (memref<?x?xf32>, memref<?x?xf32>) -> memref<?x?xf32>
  return %n : memref<?x?xf32>
}
// CHECK:      func.func @main(%ctx: !disc_ral.context) {
// CHECK-NEXT:   %arg0 = disc_ral.recv_input %ctx, 0 : memref<?x?xf32>
// CHECK-NEXT:   %arg1 = disc_ral.recv_input %ctx, 1 : memref<?x?xf32>
// CHECK-NEXT:   %n = disc_ral.recv_input %ctx, 2 : memref<?x?xf32>
// CHECK-NEXT:   lmhlo.add %arg0, %arg1 -> %n
// CHECK-NEXT:   disc_ral.send_output %ctx, 0, %n : memref<?x?xf32>
// CHECK-NEXT:   return
// CHECK-NEXT: }

// -----

// Each return of a function of several blocks sends.
func.func @main(%p: memref<i1>, %a: memref<4xf32>, %b: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
  %c = memref.load %p[] : memref<i1>
  cf.cond_br %c, ^yes, ^no
^yes:
  return %a, %b : memref<4xf32>, memref<4xf32>
^no:
  return %b, %a : memref<4xf32>, memref<4xf32>
}
// CHECK:        disc_ral.send_output %ctx, 0, %a
// CHECK-NEXT:   disc_ral.send_output %ctx, 1, %b
// CHECK-NEXT:   return
// CHECK:        disc_ral.send_output %ctx, 0, %b
// CHECK-NEXT:   disc_ral.send_output %ctx, 1, %a
// CHECK-NEXT:   return

// -----

// The seed's example in our spelling: the entry, and every function that it reaches. A declaration keeps its type, a second call its context.
func.func private @gpu_mem_marker_2df32_x_x(memref<?x?xf32>)
func.func @tao_main(%arg0: memref<?x?xf32>, %arg1: memref<?x?xf32>, %d0: memref<index>) -> memref<?x?xf32> {
  %n = memref.load %d0[] : memref<index>
  %tmp = memref.alloc(%n, %n) : memref<?x?xf32>
  %ret = memref.alloc(%n, %n) : memref<?x?xf32>
  func.call @gpu_mem_marker_2df32_x_x(%ret) : (memref<?x?xf32>) -> ()
  %more = arith.constant true
  scf.if %more {
    func.call @fusion_function(%arg0, %arg1, %tmp, %ret) : (memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> ()
  }
  return %ret : memref<?x?xf32>
}
func.func @fusion_function(%arg0: memref<?x?xf32> {a.b = 1 : i32}, %arg1: memref<?x?xf32>, %arg2: memref<?x?xf32>, %arg3: memref<?x?xf32>) {
  %0 = func.call @inner(%arg0, %arg1, %arg2) : (memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> index
  lmhlo.multiply %arg0, %arg2 -> %arg3 {name = "m"} : (memref<?x?xf32>, memref<?x?xf32>) -> memref<?x?xf32>
  return
}
func.func private @inner(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?x?xf32>) -> index {
  lmhlo.add %x, %y -> %z {name = "s"} : (memref<?x?xf32>, memref<?x?xf32>) -> memref<?x?xf32>
  %c = arith.constant 3 : index
  return %c : index
}
// CHECK:      func.func private @gpu_mem_marker_2df32_x_x(memref<?x?xf32>)
// CHECK-NEXT: func.func @tao_main(%ctx: !disc_ral.context) {
// CHECK-NEXT:   %arg0 = disc_ral.recv_input %ctx, 0 : memref<?x?xf32>
// CHECK-NEXT:   %arg1 = disc_ral.recv_input %ctx, 1 : memref<?x?xf32>
// CHECK-NEXT:   %d0 = disc_ral.recv_input %ctx, 2 : memref<index>
// CHECK:        call @gpu_mem_marker_2df32_x_x(%ret)
// CHECK:          call @fusion_function(%ctx, %arg0, %arg1, %tmp, %ret) : (!disc_ral.context, memref<?x?xf32>,
// CHECK:        disc_ral.send_output %ctx, 0, %ret : memref<?x?xf32>
// CHECK-NEXT:   return
// CHECK:      func.func @fusion_function(%ctx: !disc_ral.context, %arg0: memref<?x?xf32> {a.b = 1 : i32}, %arg1: memref<?x?xf32>, %arg2
// CHECK-NEXT:   call @inner(%ctx, %arg0, %arg1, %arg2) : (!disc_ral.context, memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>) -> index
// CHECK-NOT:    recv_input
// CHECK:      func.func private @inner(%ctx: !disc_ral.context, %x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?x?xf32>) -> index {
// CHECK:        return %{{.*}} : index
