// RUN: xla-emitters-opt -p xla-to-upstream-spelling %s | filecheck %s
// RUN: xla-emitters-opt -p xla-to-upstream-spelling --print-op-generic %s | filecheck %s --check-prefix GENERIC
// Names and divisions are today's XLA's; what only GPUs have keeps its dialect.

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 floordiv 2 + s0), domain: d0 in [0, 31], s0 in [0, 1]">

// CHECK:       #indexing_map = #xla.indexing_map<"(d0)[s0] -> (d0 / 2 + s0), domain: d0 in [0, 31], s0 in [0, 1]">
// CHECK:         gpu.thread_id x
// CHECK:         xla.loop (%t)[%i] -> (%r) in #indexing_map iter_args(%it = %a)
// CHECK-NEXT:      xla.apply_indexing #indexing_map(%t)[%i]
// CHECK-NEXT:      xla.pure_call @f(%{{.*}}) : (index) -> f32
// CHECK-NEXT:      xla.atomic_rmw %it[%r] : tensor<64xf32> {
// CHECK-NEXT:      ^{{.*}}(%{{.*}}: f32):
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        xla.yield
// CHECK:           xla.predicated_insert
// CHECK:         xla_gpu.sync_threads
// CHECK-NOT:     xla_gpu.{{loop|yield|pure_call|apply_indexing|atomic_rmw|predicated}}
// GENERIC:       "xla.loop"
// GENERIC:       "xla.atomic_rmw"
func.func @kernel(%a: tensor<64xf32>, %p: i1) -> tensor<64xf32> {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %l = xla_gpu.loop (%t)[%i] -> (%r) in #map iter_args(%it = %a) -> (tensor<64xf32>) {
    %0 = xla_gpu.apply_indexing #map(%t)[%i]
    %1 = xla_gpu.pure_call @f(%0) : (index) -> f32
    %2 = xla_gpu.atomic_rmw %it[%r] : tensor<64xf32> {
      ^bb0(%current : f32):
        %3 = arith.addf %current, %1 : f32
        xla_gpu.yield %3 : f32
    }
    %4 = xla_gpu.predicated_insert %1 into %2[%r] if %p : tensor<64xf32>
    xla_gpu.yield %4 : tensor<64xf32>
  }
  %s = xla_gpu.sync_threads %l : tensor<64xf32>
  return %s : tensor<64xf32>
}

func.func private @f(%i: index) -> f32 {
  %c = arith.constant 1.0 : f32
  return %c : f32
}
