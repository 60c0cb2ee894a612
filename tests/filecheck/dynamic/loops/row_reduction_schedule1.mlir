// RUN: xla-emitters-opt -p disc-lhlo-legalize-to-loop %s | filecheck %s

// A block a row. Every thread begins at -0.0, whatever the initial value is; it is added once, by the thread that stores.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kRowReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 1>, name = "y", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK:      %[[ROWS:.*]] = memref.dim %x, %{{.*}}
// CHECK:      %[[COLUMNS:.*]] = memref.dim %x, %{{.*}}
// CHECK:      scf.parallel (%block, %thread) = (%{{.*}}, %{{.*}}) to (%[[ROWS]], %c256) step (%{{.*}}, %{{.*}}) {
// CHECK:        %[[SHARED:.*]] = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
// CHECK:        %[[NONE:.*]] = arith.constant -0.000000e+00 : f32
// Four elements at a time, as long as there are four; then one at a time.
// CHECK:        %[[FOURS:.*]] = scf.for %[[J:.*]] = %thread to %{{.*}} step %c1024{{.*}} iter_args(%{{.*}} = %[[NONE]]) -> (f32) {
// CHECK:          scf.for %[[K:.*]] = %c0{{.*}} to %c4{{.*}} step %c1{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32) {
// CHECK:            %[[X:.*]] = memref.load %x[%block, %{{.*}}]
// CHECK-NEXT:       %[[NEXT:.*]] = arith.addf %[[SUM]], %[[X]] : f32
// CHECK-NEXT:       scf.yield %[[NEXT]] : f32
// CHECK:        %[[OWN:.*]] = scf.for %{{.*}} = %{{.*}} to %[[COLUMNS]] step %c256{{.*}} iter_args(%{{.*}} = %[[FOURS]]) -> (f32) {
// The first round, over the lanes of each warp.
// CHECK:        gpu.shuffle down %[[OWN]], %{{.*}}, %{{.*}} : f32
// CHECK-COUNT-4: gpu.shuffle down
// CHECK:        scf.if
// CHECK-NEXT:     memref.store %{{.*}}, %[[SHARED]][%{{.*}}]
// CHECK:        gpu.barrier
// The second round, over the warps' results.
// CHECK:        memref.load %[[SHARED]]
// CHECK-COUNT-3: gpu.shuffle down
// CHECK-NOT:    gpu.shuffle
// CHECK:        scf.if
// CHECK-NEXT:     %[[I:.*]] = memref.load %i[]
// CHECK-NEXT:     %[[ALL:.*]] = arith.addf %[[I]], %{{.*}} : f32
// CHECK-NEXT:     memref.store %[[ALL]], %y[%block]
// CHECK:      } {disc.schedule = "row1"}
// CHECK-NOT:  lmhlo.reduce
