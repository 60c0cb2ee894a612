// RUN: xla-emitters-opt %s | filecheck %s
// RUN: xla-emitters-opt %s | xla-emitters-opt | filecheck %s
// RUN: xla-emitters-opt %s --print-op-generic | xla-emitters-opt | filecheck %s
// The seed's listing "MLIR Conversion": maps in several strings, ids, a loop and a pure call; printed with the map once, at the top.

#map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ("
 "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">

func.func @main(%input: tensor<6x512x4096xbf16> , %output: tensor<6x512x4096xbf16>)
   -> tensor<6x512x4096xbf16> {
 %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
 %block_id_x = gpu.block_id  x {xla.range = [0 : index, 24575 : index]}

 %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
     in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
   %pure_call = xla_gpu.pure_call @gelu(%input, %dim0, %dim1, %dim2)
      : (tensor<6x512x4096xbf16>, index, index, index) -> bf16
   %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
   xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
 }
 return %xla_loop : tensor<6x512x4096xbf16>
}

func.func private @gelu(%arg0: tensor<6x512x4096xbf16>, %i: index, %j: index, %k: index) -> bf16 {
  %0:3 = xla_gpu.apply_indexing #map(%i, %j)[%k] {note}
  %cst = arith.constant 5.000000e-01 : bf16
  return %cst : bf16
}

// CHECK:      #map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
// CHECK-NEXT: module {
// CHECK-NEXT:   func.func @main(%input: tensor<6x512x4096xbf16>, %output: tensor<6x512x4096xbf16>) -> tensor<6x512x4096xbf16> {
// CHECK-NEXT:     %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
// CHECK-NEXT:     %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
// CHECK-NEXT:     %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2) in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
// CHECK-NEXT:       %pure_call = xla_gpu.pure_call @gelu(%input, %dim0, %dim1, %dim2) : (tensor<6x512x4096xbf16>, index, index, index) -> bf16
// CHECK-NEXT:       %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
// CHECK-NEXT:       xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     return %xla_loop : tensor<6x512x4096xbf16>
// CHECK:        func.func private @gelu(
// CHECK-NEXT:     %0:3 = xla_gpu.apply_indexing #map(%i, %j)[%k] {note}
