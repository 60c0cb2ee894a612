// RUN: xla-emitters-opt %s -p inline,canonicalize,cse,xla-lower-xla-loops-to-scf,xla-flatten-tensors,loop-invariant-code-motion,xla-unswitch-loops,xla-vectorize-loads-stores | filecheck %s
// RUN: xla-emitters-opt %s --spelling upstream | filecheck %s --check-prefix UPSTREAM
// RUN: xla-emitters-opt %s --spelling upstream | xla-emitters-opt | filecheck %s --check-prefix BACK
// The seed document's first listing, pasted as it stands there: it parses, and passes named one by one on the command line (MLIR's names
// for those that MLIR has) bring it to the document's vectorised listing. In upstream's newer spelling it is printed and read back.

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
  %cst = arith.constant 5.000000e-01 : bf16
  %cst_0 = arith.constant 1.000000e+00 : bf16
  %cst_1 = arith.constant 7.968750e-01 : bf16
  %cst_2 = arith.constant 4.467770e-02 : bf16
  %extracted = tensor.extract %arg0[%i, %j, %k] : tensor<6x512x4096xbf16>
  %0 = arith.mulf %extracted, %extracted : bf16
  %1 = arith.mulf %0, %extracted : bf16
  %2 = arith.mulf %1, %cst_2 : bf16
  %3 = arith.addf %extracted, %2 : bf16
  %4 = arith.mulf %3, %cst_1 : bf16
  %5 = math.tanh %4 : bf16
  %6 = arith.addf %5, %cst_0 : bf16
  %7 = arith.mulf %6, %cst : bf16
  %8 = arith.mulf %extracted, %7 : bf16
  return %8 : bf16
}

// CHECK:       #map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
// CHECK:       func.func @main(%input: tensor<12582912xbf16>, %output: tensor<12582912xbf16>) -> tensor<12582912xbf16> {
// CHECK-DAG:     %[[BASE:[a-z0-9_]+]] = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %c0)
// CHECK-DAG:     %[[READ:[a-z0-9_]+]] = vector.transfer_read %input[%[[BASE]]], %{{[a-z0-9_]+}} {in_bounds = [true]} : tensor<12582912xbf16>, vector<4xbf16>
// CHECK-DAG:     %[[START:[a-z0-9_]+]] = arith.constant dense<0.000000e+00> : vector<4xbf16>
// CHECK:         %xla_loop:2 = scf.for %vector_index = %c0 to %c4 step %c1
// CHECK-SAME:      iter_args(%iter = %output, %[[VECTOR:[a-z0-9_]+]] = %[[START]]) -> (tensor<12582912xbf16>, vector<4xbf16>) {
// CHECK-NEXT:      %{{[a-z0-9_]+}} = vector.extract %[[READ]][%vector_index] : bf16 from vector<4xbf16>
// CHECK:           math.tanh
// CHECK:           %[[NEXT:[a-z0-9_]+]] = vector.insert %{{[a-z0-9_]+}}, %[[VECTOR]] [%vector_index] : bf16 into vector<4xbf16>
// CHECK-NEXT:      scf.yield %iter, %[[NEXT]] : tensor<12582912xbf16>, vector<4xbf16>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[WRITTEN:[a-z0-9_]+]] = vector.transfer_write %xla_loop#1, %output[%[[BASE]]] {in_bounds = [true]}
// CHECK-NEXT:    return %[[WRITTEN]] : tensor<12582912xbf16>

// UPSTREAM:     #xla.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x / 4096, (bl_x / 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index)
// UPSTREAM:     xla.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
// UPSTREAM-NEXT: xla.pure_call @gelu
// UPSTREAM-NOT: xla_gpu

// BACK:         #map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index)
// BACK:         xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2) in #map
// BACK-NEXT:    xla_gpu.pure_call @gelu
// BACK:         xla_gpu.yield
