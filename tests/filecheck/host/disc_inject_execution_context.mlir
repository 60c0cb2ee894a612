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
