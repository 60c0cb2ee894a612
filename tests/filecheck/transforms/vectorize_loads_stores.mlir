// RUN: xla-emitters-opt -p xla-vectorize-loads-stores --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-vectorize-loads-stores --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The seed's flattened GELU becomes the seed's vectorised GELU.
#map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
func.func @gelu(%input: tensor<12582912xbf16>, %output: tensor<12582912xbf16>) -> tensor<12582912xbf16> {
  %cst = arith.constant 5.000000e-01 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
  %xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> (tensor<12582912xbf16>) {
    %dim = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %vector_index)
    %extracted = tensor.extract %input[%dim] : tensor<12582912xbf16>
    %0 = arith.mulf %extracted, %extracted : bf16
    %1 = arith.mulf %0, %cst : bf16
    %inserted = tensor.insert %1 into %iter[%dim] : tensor<12582912xbf16>
    scf.yield %inserted : tensor<12582912xbf16>
  }
  return %xla_loop : tensor<12582912xbf16>
}
// CHECK:       #map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index)
// CHECK-LABEL: @gelu
// CHECK-SAME:  (%[[INPUT:[a-z0-9_]+]]: tensor<12582912xbf16>, %[[OUTPUT:[a-z0-9_]+]]: tensor<12582912xbf16>)
// CHECK:       %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[BASE:.*]] = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %[[C0]])
// CHECK-DAG:   %[[PAD:.*]] = arith.constant 0.000000e+00 : bf16
// CHECK:       %[[READ:.*]] = vector.transfer_read %[[INPUT]][%[[BASE]]], %[[PAD]] {in_bounds = [true]} : tensor<12582912xbf16>, vector<4xbf16>
// CHECK:       %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<4xbf16>
// CHECK-NOT:   apply_indexing
// CHECK:       scf.for %[[V:.*]] = %[[C0]] to %{{.*}} step %{{.*}} iter_args(%[[ITER:.*]] = %[[OUTPUT]], %[[VECTOR:.*]] = %[[ZERO]]) -> (tensor<12582912xbf16>, vector<4xbf16>) {
// CHECK-NEXT:    %[[ELEMENT:.*]] = vector.extract %[[READ]][%[[V]]] : bf16 from vector<4xbf16>
// CHECK-NEXT:    %[[SQUARE:.*]] = arith.mulf %[[ELEMENT]], %[[ELEMENT]] : bf16
// CHECK-NEXT:    %[[HALF:.*]] = arith.mulf %[[SQUARE]], %{{.*}} : bf16
// CHECK-NEXT:    %[[NEXT:.*]] = vector.insert %[[HALF]], %[[VECTOR]] [%[[V]]] : bf16 into vector<4xbf16>
// CHECK-NEXT:    scf.yield %[[ITER]], %[[NEXT]] : tensor<12582912xbf16>, vector<4xbf16>
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[WRITTEN:.*]] = vector.transfer_write %xla_loop{{.*}}, %[[OUTPUT]][%[[BASE]]] {in_bounds = [true]} : vector<4xbf16>, tensor<12582912xbf16>
// CHECK-NEXT:  return %[[WRITTEN]]

// -----

// Two index computations with one map are one base.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 2 + d1), domain: d0 in [0, 63], d1 in [0, 1]">
func.func @same_map(%in: tensor<128xf64>, %out: tensor<128xf64>, %i: index {xla.range = [0 : index, 63 : index]}) -> tensor<128xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %loop = scf.for %v = %c0 to %c2 step %c1 iter_args(%iter = %out) -> (tensor<128xf64>) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %x = tensor.extract %in[%k] : tensor<128xf64>
    %y = arith.negf %x : f64
    %l = xla_gpu.apply_indexing #map(%i, %v)
    %t = tensor.insert %y into %iter[%l] : tensor<128xf64>
    scf.yield %t : tensor<128xf64>
  }
  return %loop : tensor<128xf64>
}
// CHECK-LABEL: @same_map
// CHECK-COUNT-1: apply_indexing
// CHECK:       vector.transfer_read {{.*}} : tensor<128xf64>, vector<2xf64>
// CHECK-NOT:   apply_indexing
// CHECK:       vector.transfer_write {{.*}} : vector<2xf64>, tensor<128xf64>

// -----

// A copy has no vector.insert: what was read is written. The index is the induction variable itself.
func.func @copy(%in: tensor<64xi8>, %out: tensor<64xi8>) -> tensor<64xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %loop = scf.for %v = %c0 to %c32 step %c1 iter_args(%iter = %out) -> (tensor<64xi8>) {
    %x = tensor.extract %in[%v] : tensor<64xi8>
    %t = tensor.insert %x into %iter[%v] : tensor<64xi8>
    scf.yield %t : tensor<64xi8>
  }
  return %loop : tensor<64xi8>
}
// CHECK-LABEL: @copy
// CHECK:       %[[C0:.*]] = arith.constant 0 : index
// CHECK:       %[[READ:.*]] = vector.transfer_read %{{.*}}[%[[C0]]], {{.*}} : tensor<64xi8>, vector<32xi8>
// CHECK:       scf.for
// CHECK-NOT:   vector.insert
// CHECK:       vector.transfer_write %[[READ]], %{{.*}}[%[[C0]]]

// -----

// Two outputs, one of them written with what the other reads: two carried vectors, two writes.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 127], d1 in [0, 3]">
func.func @two_outputs(%in: tensor<512xf32>, %a: tensor<512xf32>, %b: tensor<512xf16>, %i: index {xla.range = [0 : index, 127 : index]}) -> (tensor<512xf32>, tensor<512xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%p = %a, %q = %b) -> (tensor<512xf32>, tensor<512xf16>) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %x = tensor.extract %in[%k] : tensor<512xf32>
    %y = arith.negf %x : f32
    %z = arith.truncf %y : f32 to f16
    %t = tensor.insert %y into %p[%k] : tensor<512xf32>
    %u = tensor.insert %z into %q[%k] : tensor<512xf16>
    scf.yield %t, %u : tensor<512xf32>, tensor<512xf16>
  }
  return %loop#0, %loop#1 : tensor<512xf32>, tensor<512xf16>
}
// CHECK-LABEL: @two_outputs
// CHECK-SAME:  (%{{.*}}: tensor<512xf32>, %[[A:[a-z0-9_]+]]: tensor<512xf32>, %[[B:[a-z0-9_]+]]: tensor<512xf16>
// CHECK:       scf.for {{.*}} -> (tensor<512xf32>, tensor<512xf16>, vector<4xf32>, vector<4xf16>) {
// CHECK:       %[[WA:.*]] = vector.transfer_write %{{.*}}, %[[A]][%[[BASE:.*]]] {in_bounds = [true]} : vector<4xf32>, tensor<512xf32>
// CHECK-NEXT:  %[[WB:.*]] = vector.transfer_write %{{.*}}, %[[B]][%[[BASE]]] {in_bounds = [true]} : vector<4xf16>, tensor<512xf16>
// CHECK-NEXT:  return %[[WA]], %[[WB]]

// -----

// In place: each element is read before it is written, in its own iteration. Reads may go up and writes down.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 127], d1 in [0, 3]">
func.func @in_place(%in: tensor<512xf32> {xla.slice_index = 0 : index}, %out: tensor<512xf32> {xla.slice_index = 0 : index}, %i: index {xla.range = [0 : index, 127 : index]}) -> tensor<512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<512xf32>) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %x = tensor.extract %in[%k] : tensor<512xf32>
    %y = arith.negf %x : f32
    %t = tensor.insert %y into %iter[%k] : tensor<512xf32>
    scf.yield %t : tensor<512xf32>
  }
  return %loop : tensor<512xf32>
}
// CHECK-LABEL: @in_place
// CHECK:       vector.transfer_read
// CHECK:       vector.transfer_write

// -----

// In place but reversed: iteration 2 reads what iteration 1 wrote. Neither moves.
#map = #xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 3]">
#map1 = #xla_gpu.indexing_map<"(d0) -> (d0 * -1 + 3), domain: d0 in [0, 3]">
func.func @in_place_reversed(%in: tensor<512xf32> {xla.slice_index = 0 : index}, %out: tensor<512xf32> {xla.slice_index = 0 : index}) -> tensor<512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<512xf32>) {
    %k = xla_gpu.apply_indexing #map(%v)
    %l = xla_gpu.apply_indexing #map1(%v)
    %x = tensor.extract %in[%k] : tensor<512xf32>
    %t = tensor.insert %x into %iter[%l] : tensor<512xf32>
    scf.yield %t : tensor<512xf32>
  }
  return %loop : tensor<512xf32>
}
// CHECK-LABEL: @in_place_reversed
// CHECK-NOT:   vector.
// REMARK:      xla-vectorize-loads-stores: skipped tensor.extract: tensor.insert in the same loop may access the same element of its buffer before it
// REMARK:      xla-vectorize-loads-stores: skipped tensor.insert: its stride is -1, not 1

// -----

// The same with the read after the write.
func.func @in_place_read_late(%in: tensor<512xf32> {xla.slice_index = 0 : index}, %out: tensor<512xf32> {xla.slice_index = 0 : index}, %x: f32) -> (tensor<512xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out, %sum = %x) -> (tensor<512xf32>, f32) {
    %t = tensor.insert %x into %iter[%v] : tensor<512xf32>
    %y = tensor.extract %in[%v] : tensor<512xf32>
    %z = arith.addf %sum, %y : f32
    scf.yield %t, %z : tensor<512xf32>, f32
  }
  return %loop#0 : tensor<512xf32>
}
// CHECK-LABEL: @in_place_read_late
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.insert: tensor.extract in the same loop may access the same element of its buffer after it
// REMARK:      skipped tensor.extract: tensor.insert in the same loop may access the same element of its buffer before it

// -----

// th_x * 4 + v + 1 is contiguous, but starts between vectors.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1 + 1), domain: d0 in [0, 126], d1 in [0, 3]">
func.func @unaligned(%in: tensor<512xf32>, %i: index {xla.range = [0 : index, 126 : index]}, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %iter, %y : f32
    scf.yield %z : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @unaligned
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.extract: it starts at a multiple of 1, not of 4

// -----

#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1 * 2), domain: d0 in [0, 63], d1 in [0, 3]">
func.func @stride_2(%in: tensor<512xf32>, %i: index {xla.range = [0 : index, 63 : index]}, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %iter, %y : f32
    scf.yield %z : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @stride_2
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.extract: its stride is 2, not 1

// -----

// The induction variable twice is a stride of 2.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 3], d1 in [0, 3]">
func.func @variable_twice(%in: tensor<512xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%v, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %iter, %y : f32
    scf.yield %z : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @variable_twice
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.extract: its stride is 2, not 1

// -----

// Whether elements are neighbours depends on where the remainder wraps.
#map = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 4 + d1) mod 6), domain: d0 in [0, 63], d1 in [0, 3]">
func.func @mod_around(%in: tensor<512xf32>, %i: index {xla.range = [0 : index, 63 : index]}, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %iter, %y : f32
    scf.yield %z : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @mod_around
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.extract: its index is not linear in the induction variable

// -----

// A remainder beside it is fine: (d0 mod 2) * 4 is a multiple of 4, and so is (d0 * 8) mod 12.
#map = #xla_gpu.indexing_map<"(d0, d1) -> ((d0 mod 2) * 4 + (d0 * 8) mod 12 + d1), domain: d0 in [0, 63], d1 in [0, 3]">
func.func @mod_beside(%in: tensor<512xf32>, %i: index {xla.range = [0 : index, 63 : index]}, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %iter, %y : f32
    scf.yield %z : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @mod_beside
// CHECK:       vector.transfer_read
// CHECK:       vector.extract

// -----

// 513 elements: the last vector would leave the tensor, and nothing says that the base is never its start.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 127], d1 in [0, 3]">
func.func @odd_size(%in: tensor<513xf32>, %i: index {xla.range = [0 : index, 127 : index]}, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<513xf32>
    %z = arith.addf %iter, %y : f32
    scf.yield %z : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @odd_size
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.extract: 4 does not divide the tensor's 513 elements

// -----

// 4 x f64 is 256 bits: taken. 8 x f64 is 512: not.
func.func @f64(%in: tensor<512xf64>, %x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f64) {
    %y = tensor.extract %in[%v] : tensor<512xf64>
    %z = arith.addf %iter, %y : f64
    scf.yield %z : f64
  }
  %sum2 = scf.for %v = %c0 to %c8 step %c1 iter_args(%iter = %sum) -> (f64) {
    %y = tensor.extract %in[%v] : tensor<512xf64>
    %z = arith.addf %iter, %y : f64
    scf.yield %z : f64
  }
  return %sum2 : f64
}
// CHECK-LABEL: @f64
// CHECK:       vector.transfer_read {{.*}} vector<4xf64>
// CHECK:       scf.for
// CHECK:       scf.for
// CHECK-NEXT:    tensor.extract
// REMARK:      skipped tensor.extract: 8 x f64 is more than 256 bits

// -----

// What takes two instructions each goes by halves, if the reads of the second need not wait for the writes of the first.
#map = #xla_gpu.indexing_map<"(th_x, v) -> (th_x * 4 + v), domain: th_x in [0, 127], v in [0, 3]">
func.func @halves(%in: tensor<512xf64> {xla.invariant}, %out: tensor<512xf64>, %t: index {xla.range = [0 : index, 127 : index]}) -> tensor<512xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<512xf64>) {
    %k = xla_gpu.apply_indexing #map(%t, %v)
    %x = tensor.extract %in[%k] : tensor<512xf64>
    %y = math.exp %x : f64
    %z = tensor.insert %y into %iter[%k] : tensor<512xf64>
    scf.yield %z : tensor<512xf64>
  }
  return %loop : tensor<512xf64>
}
// CHECK:       #[[$MAP:.*]] = #xla_gpu.indexing_map<"(th_x, v, half) -> (th_x * 4 + half * 2 + v), domain: th_x in [0, 127], v in [0, 1], half in [0, 1]">
// CHECK-LABEL: @halves
// CHECK:       %[[LOOP:.*]] = scf.for %[[HALF:.*]] = %c0 to %c2 step %c1 iter_args(%[[OUT:.*]] = %out) -> (tensor<512xf64>) {
// CHECK-NEXT:    %[[BASE:.*]] = xla_gpu.apply_indexing #[[$MAP]](%t, %c0, %[[HALF]])
// CHECK:         %[[READ:.*]] = vector.transfer_read %in[%[[BASE]]], {{.*}} vector<2xf64>
// CHECK:         %[[ELEMENTS:.*]]:2 = scf.for %[[V:.*]] = %c0 to %c2 step %c1
// CHECK-NEXT:      vector.extract %[[READ]][%[[V]]]
// CHECK-NEXT:      math.exp
// CHECK-NEXT:      vector.insert
// CHECK-NEXT:      scf.yield
// CHECK:         %[[WRITTEN:.*]] = vector.transfer_write %[[ELEMENTS]]#1, %[[OUT]][%[[BASE]]]
// CHECK-NEXT:    scf.yield %[[WRITTEN]]
// CHECK:       return %[[LOOP]]

// -----

// One of 128 bits among them: the loop stays whole.
func.func @one_is_narrow(%in: tensor<512xf32> {xla.invariant}, %out: tensor<512xf64>) -> tensor<512xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<512xf64>) {
    %x = tensor.extract %in[%v] : tensor<512xf32>
    %y = arith.extf %x : f32 to f64
    %z = tensor.insert %y into %iter[%v] : tensor<512xf64>
    scf.yield %z : tensor<512xf64>
  }
  return %loop : tensor<512xf64>
}
// CHECK-LABEL: @one_is_narrow
// CHECK:       vector.transfer_read {{.*}} vector<4xf32>
// CHECK:       scf.for
// CHECK-NOT:   scf.for
// CHECK:       vector.transfer_write {{.*}} vector<4xf64>

// -----

// Types: f8 and i4 are fine, two i2 are half a byte, complex numbers have no vectors.
func.func @types(%a: tensor<512xf8E4M3FN>, %b: tensor<512xi4>, %c: tensor<512xi2>, %d: tensor<512xcomplex<f32>>, %x: f8E4M3FN, %p: i4, %q: i2, %r: complex<f32>) -> (f8E4M3FN, i4, i2, complex<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %sum:4 = scf.for %v = %c0 to %c2 step %c1 iter_args(%i = %x, %j = %p, %k = %q, %l = %r) -> (f8E4M3FN, i4, i2, complex<f32>) {
    %w = tensor.extract %a[%v] : tensor<512xf8E4M3FN>
    %y = tensor.extract %b[%v] : tensor<512xi4>
    %z = tensor.extract %c[%v] : tensor<512xi2>
    %u = tensor.extract %d[%v] : tensor<512xcomplex<f32>>
    scf.yield %w, %y, %z, %u : f8E4M3FN, i4, i2, complex<f32>
  }
  return %sum#0, %sum#1, %sum#2, %sum#3 : f8E4M3FN, i4, i2, complex<f32>
}
// CHECK-LABEL: @types
// CHECK:       vector.transfer_read {{.*}} vector<2xf8E4M3FN>
// CHECK:       vector.transfer_read {{.*}} vector<2xi4>
// CHECK:       scf.for
// CHECK-NEXT:    vector.extract
// CHECK-NEXT:    vector.extract
// CHECK-NEXT:    tensor.extract
// CHECK-NEXT:    tensor.extract
// REMARK:      skipped tensor.extract: 2 x i2 does not fill whole bytes
// REMARK:      skipped tensor.extract: there are no vectors of complex<f32>

// -----

// Loops of another shape: step 2, 3 iterations, 64 iterations, from 1, to a value.
func.func @loops(%in: tensor<512xf32>, %x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %a = scf.for %v = %c0 to %c4 step %c2 iter_args(%iter = %x) -> (f32) {
    %y = tensor.extract %in[%v] : tensor<512xf32>
    scf.yield %y : f32
  }
  %b = scf.for %v = %c0 to %c3 step %c1 iter_args(%iter = %a) -> (f32) {
    %y = tensor.extract %in[%v] : tensor<512xf32>
    scf.yield %y : f32
  }
  %c = scf.for %v = %c0 to %c64 step %c1 iter_args(%iter = %b) -> (f32) {
    %y = tensor.extract %in[%v] : tensor<512xf32>
    scf.yield %y : f32
  }
  %d = scf.for %v = %c1 to %c2 step %c1 iter_args(%iter = %c) -> (f32) {
    %y = tensor.extract %in[%v] : tensor<512xf32>
    scf.yield %y : f32
  }
  %e = scf.for %v = %c0 to %n step %c1 iter_args(%iter = %d) -> (f32) {
    %y = tensor.extract %in[%v] : tensor<512xf32>
    scf.yield %y : f32
  }
  return %e : f32
}
// CHECK-LABEL: @loops
// CHECK-NOT:   vector.
// REMARK-DAG:  skipped scf.for: step is not 1
// REMARK-DAG:  skipped scf.for: 3 iterations are not a power of two from 2 to 32
// REMARK-DAG:  skipped scf.for: 64 iterations are not a power of two from 2 to 32
// REMARK-DAG:  skipped scf.for: it does not start at 0
// REMARK-DAG:  skipped scf.for: its upper bound is not a constant

// -----

// An access inside scf.if may not run at all.
func.func @nested(%in: tensor<512xf32>, %x: f32, %inbounds: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    %y = scf.if %inbounds -> (f32) {
      %z = tensor.extract %in[%v] : tensor<512xf32>
      scf.yield %z : f32
    } else {
      scf.yield %iter : f32
    }
    scf.yield %y : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @nested
// CHECK-NOT:   vector.
// REMARK:      skipped tensor.extract: it is inside scf.if, not directly in the loop

// -----

// Writes that stay: a result that is also read, a tensor that is also read, one that is not carried, one handed to another place.
func.func @writes(%a: tensor<512xf32>, %b: tensor<512xf32>, %x: f32) -> (tensor<512xf32>, tensor<512xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %p:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %a, %sum = %x) -> (tensor<512xf32>, f32) {
    %t = tensor.insert %x into %iter[%v] : tensor<512xf32>
    %y = tensor.extract %t[%v] : tensor<512xf32>
    %z = arith.addf %sum, %y : f32
    scf.yield %t, %z : tensor<512xf32>, f32
  }
  %q:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %p#0, %sum = %x) -> (tensor<512xf32>, f32) {
    %y = tensor.extract %iter[%c9] : tensor<512xf32>
    %t = tensor.insert %x into %iter[%v] : tensor<512xf32>
    %z = arith.addf %sum, %y : f32
    scf.yield %t, %z : tensor<512xf32>, f32
  }
  %r = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %q#0) -> (tensor<512xf32>) {
    %t = tensor.insert %x into %q#0[%v] : tensor<512xf32>
    scf.yield %t : tensor<512xf32>
  }
  %s:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%i = %r, %j = %b) -> (tensor<512xf32>, tensor<512xf32>) {
    %t = tensor.insert %x into %i[%v] : tensor<512xf32>
    scf.yield %j, %t : tensor<512xf32>, tensor<512xf32>
  }
  return %s#0, %s#1, %q#1 : tensor<512xf32>, tensor<512xf32>, f32
}
// CHECK-LABEL: @writes
// CHECK-NOT:   vector.
// REMARK-DAG:  skipped tensor.insert: its result is used for more than the next iteration's tensor
// REMARK-DAG:  skipped tensor.insert: the tensor has other uses in the loop
// REMARK-DAG:  skipped tensor.insert: the tensor is not carried by the loop
// REMARK-DAG:  skipped tensor.extract: the tensor is made inside the loop

// -----

// A barrier in the loop keeps everything where it is; a call that reads the written buffer keeps the write.
func.func private @f(tensor<512xf32>, index) -> f32
func.func @order(%in: tensor<512xf32> {xla.slice_index = 0 : index}, %out: tensor<512xf32> {xla.slice_index = 0 : index}, %x: f32) -> (f32, tensor<512xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %x) -> (f32) {
    gpu.barrier
    %y = tensor.extract %in[%v] : tensor<512xf32>
    scf.yield %y : f32
  }
  %loop = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<512xf32>) {
    %y = xla_gpu.pure_call @f(%in, %v) : (tensor<512xf32>, index) -> f32
    %t = tensor.insert %y into %iter[%v] : tensor<512xf32>
    scf.yield %t : tensor<512xf32>
  }
  return %sum, %loop : f32, tensor<512xf32>
}
// CHECK-LABEL: @order
// CHECK-NOT:   vector.
// REMARK-DAG:  skipped scf.for: gpu.barrier inside it may synchronize or write memory
// REMARK-DAG:  skipped tensor.insert: xla_gpu.pure_call in the same loop may access the same element of its buffer after it

// -----

// Inner loops first; the outer loop then sees vector accesses, which it leaves alone.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 7], d1 in [0, 3]">
func.func @nest(%in: tensor<512xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %w = %c0 to %c8 step %c1 iter_args(%outer = %x) -> (f32) {
    %inner = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %outer) -> (f32) {
      %k = xla_gpu.apply_indexing #map(%w, %v)
      %y = tensor.extract %in[%k] : tensor<512xf32>
      %z = arith.addf %iter, %y : f32
      scf.yield %z : f32
    }
    scf.yield %inner : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @nest
// CHECK:       scf.for
// CHECK:         vector.transfer_read {{.*}} vector<4xf32>
// CHECK:         scf.for

// -----

// A loop that counts unsigned still does.
#map = #xla_gpu.indexing_map<"(th_x, v) -> (th_x * 4 + v), domain: th_x in [0, 3], v in [0, 3]">
func.func @unsigned(%in: tensor<16xf32> {llvm.align = 16 : index, xla.invariant, xla.slice_index = 0 : index}, %out: tensor<16xf32> {llvm.align = 16 : index, xla.slice_index = 1 : index}) -> tensor<16xf32> attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 3 : index]}
  %l = scf.for unsigned %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<16xf32>) {
    %i = xla_gpu.apply_indexing #map(%t, %v)
    %x = tensor.extract %in[%i] : tensor<16xf32>
    %y = arith.mulf %x, %x : f32
    %b = tensor.insert %y into %iter[%i] : tensor<16xf32>
    scf.yield %b : tensor<16xf32>
  }
  return %l : tensor<16xf32>
}
// CHECK-LABEL: @unsigned
// CHECK:         scf.for unsigned
// CHECK:         vector.transfer_write
