// RUN: xla-emitters-opt -p xla-canonicalize %s | filecheck %s
// A chain of maps becomes one, its variables keep their names, in the order in which the chain meets them; a loop's dims that are known go, and what they had to hold stays.

// CHECK-DAG: #[[CHAIN:.*]] = #xla_gpu.indexing_map<"(bl_x, th_x, vector_index) -> (bl_x * 512 + th_x * 4 + vector_index), domain: bl_x in [0, 24575], th_x in [0, 127], vector_index in [0, 3]">
// CHECK-DAG: #[[LOOP:.*]] = #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d0 + d1 + s0), domain: d0 in [0, 4], d1 in [0, 4], s0 in [0, 3], d0 + d1 in [0, 5]">

// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[K:.*]] = xla_gpu.apply_indexing #[[CHAIN]](%b, %t, %v)
// CHECK-NEXT:    return %[[K]] : index
func.func @chain(%t: index, %b: index, %v: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">(%t, %b)[%v]
  %1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ((bl_x floordiv 8) mod 512), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">(%t, %b)[%v]
  %2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ((bl_x mod 8) * 512 + th_x * 4 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">(%t, %b)[%v]
  %3 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1, d2) -> (d0 * 2097152 + d1 * 4096 + d2), domain: d0 in [0, 5], d1 in [0, 511], d2 in [0, 4095]">(%0, %1, %2)
  return %3 : index
}

// CHECK-LABEL: func.func @loop
// CHECK-NEXT:    xla_gpu.loop (%a, %b)[%i] -> (%x) in #[[LOOP]]
func.func @loop(%a: index, %b: index, %t: tensor<16xf32>, %e: f32) -> tensor<16xf32> {
  %c3 = arith.constant 3 : index
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 4], d1 in [0, 4]">(%a, %b)
  %l = xla_gpu.loop (%0, %c3)[%i] -> (%x) in #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d0 + d1 + s0 - 3), domain: d0 in [0, 5], d1 in [2, 3], s0 in [0, 3]"> iter_args(%it = %t) -> (tensor<16xf32>) {
    %n = tensor.insert %e into %it[%x] : tensor<16xf32>
    xla_gpu.yield %n : tensor<16xf32>
  }
  return %l : tensor<16xf32>
}
