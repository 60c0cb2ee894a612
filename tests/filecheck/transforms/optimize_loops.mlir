// RUN: xla-emitters-opt -p xla-gpu-optimize-loops --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-gpu-optimize-loops --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK
// RUN: xla-emitters-opt -p 'xla-gpu-optimize-loops{max_unroll_factor=8}' --split-input-file %s | filecheck %s --check-prefix EIGHT

// The seed's vectorised GELU becomes the seed's unrolled GELU: positions are constants, still in the dynamic form.
#map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
func.func @gelu(%input: tensor<12582912xbf16>, %output: tensor<12582912xbf16>) -> tensor<12582912xbf16> {
  %cst = arith.constant 0.000000e+00 : bf16
  %cst_0 = arith.constant dense<0.000000e+00> : vector<4xbf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
  %0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %c0)
  %2 = vector.transfer_read %input[%0], %cst {in_bounds = [true]} : tensor<12582912xbf16>, vector<4xbf16>
  %xla_loop:2 = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output, %iter_vector = %cst_0) -> (tensor<12582912xbf16>, vector<4xbf16>) {
    %5 = vector.extract %2[%vector_index] : bf16 from vector<4xbf16>
    %11 = math.tanh %5 : bf16
    %15 = vector.insert %11, %iter_vector[%vector_index] : bf16 into vector<4xbf16>
    scf.yield %iter, %15 : tensor<12582912xbf16>, vector<4xbf16>
  }
  %4 = vector.transfer_write %xla_loop#1, %output[%0] {in_bounds = [true]} : vector<4xbf16>, tensor<12582912xbf16>
  return %4 : tensor<12582912xbf16>
}
// CHECK-LABEL: @gelu
// CHECK-SAME:  %[[OUTPUT:[a-z]+]]: tensor<12582912xbf16>)
// CHECK-DAG:   %[[ZERO:[a-z0-9_]+]] = arith.constant dense<0.000000e+00> : vector<4xbf16>
// CHECK-DAG:   %[[C0:[a-z0-9_]+]] = arith.constant 0 : index
// CHECK-DAG:   %[[C1:[a-z0-9_]+]] = arith.constant 1 : index
// CHECK-DAG:   %[[C2:[a-z0-9_]+]] = arith.constant 2 : index
// CHECK-DAG:   %[[C3:[a-z0-9_]+]] = arith.constant 3 : index
// CHECK:       %[[BASE:.*]] = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %[[C0]])
// CHECK-NEXT:  %[[READ:.*]] = vector.transfer_read %{{.*}}[%[[BASE]]]
// CHECK-NEXT:  %[[X0:.*]] = vector.extract %[[READ]][%[[C0]]] : bf16 from vector<4xbf16>
// CHECK-NEXT:  %[[Y0:.*]] = math.tanh %[[X0]] : bf16
// CHECK-NEXT:  %[[V0:.*]] = vector.insert %[[Y0]], %[[ZERO]] [%[[C0]]] : bf16 into vector<4xbf16>
// CHECK-NEXT:  %[[X1:.*]] = vector.extract %[[READ]][%[[C1]]] : bf16 from vector<4xbf16>
// CHECK-NEXT:  %[[Y1:.*]] = math.tanh %[[X1]] : bf16
// CHECK-NEXT:  %[[V1:.*]] = vector.insert %[[Y1]], %[[V0]] [%[[C1]]] : bf16 into vector<4xbf16>
// CHECK-NEXT:  %[[X2:.*]] = vector.extract %[[READ]][%[[C2]]] : bf16 from vector<4xbf16>
// CHECK-NEXT:  %[[Y2:.*]] = math.tanh %[[X2]] : bf16
// CHECK-NEXT:  %[[V2:.*]] = vector.insert %[[Y2]], %[[V1]] [%[[C2]]] : bf16 into vector<4xbf16>
// CHECK-NEXT:  %[[X3:.*]] = vector.extract %[[READ]][%[[C3]]] : bf16 from vector<4xbf16>
// CHECK-NEXT:  %[[Y3:.*]] = math.tanh %[[X3]] : bf16
// CHECK-NEXT:  %[[V3:.*]] = vector.insert %[[Y3]], %[[V2]] [%[[C3]]] : bf16 into vector<4xbf16>
// CHECK-NEXT:  %[[WRITTEN:.*]] = vector.transfer_write %[[V3]], %[[OUTPUT]][%[[BASE]]] {in_bounds = [true]}
// CHECK-NEXT:  return %[[WRITTEN]]

// -----

// Three iterations, all of them, with two carried values that change places.
func.func @three(%a: f32, %b: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %v = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (f32, f32) {
    %z = arith.subf %x, %y : f32
    scf.yield %y, %z : f32, f32
  }
  return %r#0, %r#1 : f32, f32
}
// CHECK-LABEL: @three
// CHECK-SAME:  (%[[A:[a-z]+]]: f32, %[[B:[a-z]+]]: f32)
// CHECK:       %[[Z0:.*]] = arith.subf %[[A]], %[[B]] : f32
// CHECK:       %[[Z1:.*]] = arith.subf %[[B]], %[[Z0]] : f32
// CHECK:       %[[Z2:.*]] = arith.subf %[[Z0]], %[[Z1]] : f32
// CHECK-NEXT:  return %[[Z1]], %[[Z2]]

// -----

// 64 iterations of a body of 26 (tanh counts 20): 400 / 26 = 15 copies would fit, and the next divisor of 64 is 8.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 7], d1 in [0, 63]">
func.func @partial(%in: tensor<512xf32>, %i: index {xla.range = [0 : index, 7 : index]}, %a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %v = %c0 to %c64 step %c1 iter_args(%x = %a) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %x, %y : f32
    %w = math.tanh %z : f32
    %u = arith.negf %w : f32
    %t = arith.negf %u : f32
    scf.yield %t : f32
  }
  return %r : f32
}
// CHECK:       #[[NEXT:map[0-9]*]] = #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 56]">
// CHECK-LABEL: @partial
// CHECK:       %[[C0:.*]] = arith.constant 0 : index
// CHECK:       %[[C64:.*]] = arith.constant 64 : index
// CHECK:       %[[C8:.*]] = arith.constant 8 : index
// CHECK-NEXT:  %[[R:.*]] = scf.for %[[V:.*]] = %[[C0]] to %[[C64]] step %[[C8]] iter_args(%[[X:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT:    %[[K0:.*]] = xla_gpu.apply_indexing #map{{[0-9]*}}(%{{.*}}, %[[V]])
// CHECK-NEXT:    %[[Y0:.*]] = tensor.extract %{{.*}}[%[[K0]]]
// CHECK-NEXT:    arith.addf %[[X]], %[[Y0]]
// CHECK-NEXT:    math.tanh
// CHECK-NEXT:    arith.negf
// CHECK-NEXT:    %[[T0:.*]] = arith.negf
// CHECK-NEXT:    %[[V1:.*]] = xla_gpu.apply_indexing #[[NEXT]](%[[V]])
// CHECK-NEXT:    %[[K1:.*]] = xla_gpu.apply_indexing #map{{[0-9]*}}(%{{.*}}, %[[V1]])
// CHECK-NEXT:    %[[Y1:.*]] = tensor.extract %{{.*}}[%[[K1]]]
// CHECK-NEXT:    arith.addf %[[T0]], %[[Y1]]
// CHECK-COUNT-7: math.tanh
// CHECK-NOT:     math.tanh
// CHECK:         scf.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  return %[[R]]

// -----

// 7 iterations of a body of 101: three copies would fit, but only 1 and 7 divide 7. Short enough loops go whatever their size.
func.func @prime(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = scf.for %v = %c0 to %c7 step %c1 iter_args(%x = %a) -> (f32) {
    %b = math.tanh %x : f32
    %c = math.exp %b : f32
    %d = math.exp %c : f32
    %e = math.exp %d : f32
    %f = math.erf %e : f32
    scf.yield %f : f32
  }
  return %r : f32
}
// CHECK-LABEL: @prime
// CHECK:       scf.for
// CHECK-COUNT-1: math.tanh
// CHECK-NOT:   math.tanh
// EIGHT-LABEL: @prime
// EIGHT-NOT:   scf.for
// EIGHT-COUNT-7: math.erf
// EIGHT-NOT:   math.erf
// REMARK:      xla-gpu-optimize-loops: skipped scf.for: no unroll factor divides its 7 iterations and fits a body of size 101

// -----

// Not taken: other steps and starts, unknown ends, calls, big expansions; integer loops.
func.func private @f(f32) -> f32
func.func @stay(%a: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %r0 = scf.for %v = %c0 to %c4 step %c2 iter_args(%x = %a) -> (f32) {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  }
  %r1 = scf.for %v = %c1 to %c4 step %c1 iter_args(%x = %r0) -> (f32) {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  }
  %r2 = scf.for %v = %c0 to %n step %c1 iter_args(%x = %r1) -> (f32) {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  }
  %r3 = scf.for %v = %c0 to %c4 step %c1 iter_args(%x = %r2) -> (f32) {
    %y = func.call @f(%x) : (f32) -> f32
    scf.yield %y : f32
  }
  %r4 = scf.for %v = %c0 to %c4 step %c1 iter_args(%x = %r3) -> (f32) {
    %y = math.asinh %x : f32
    scf.yield %y : f32
  }
  %r5 = scf.for %v = %i0 to %i2 step %i1 iter_args(%x = %r4) -> (f32) : i32 {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  }
  return %r5 : f32
}
// CHECK-LABEL: @stay
// CHECK-COUNT-6: scf.for
// REMARK-DAG:  skipped scf.for: step is not 1
// REMARK-DAG:  skipped scf.for: it does not start at 0
// REMARK-DAG:  skipped scf.for: its upper bound is not a constant
// REMARK-DAG:  skipped scf.for: it contains func.call
// REMARK-DAG:  skipped scf.for: it contains math.asinh
// REMARK-DAG:  skipped scf.for: its induction variable is i32, not index

// -----

// A nest: once the inner loop is gone, the outer one may go too.
func.func @nest(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %v = %c0 to %c2 step %c1 iter_args(%x = %a) -> (f32) {
    %s = scf.for %w = %c0 to %c2 step %c1 iter_args(%y = %x) -> (f32) {
      %z = arith.negf %y : f32
      scf.yield %z : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}
// CHECK-LABEL: @nest
// CHECK-NOT:   scf.for
// CHECK-COUNT-4: arith.negf
// CHECK-NOT:   arith.negf

// -----

// An inner loop that stays keeps the outer one.
func.func @nest_stays(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %v = %c0 to %c2 step %c1 iter_args(%x = %a) -> (f32) {
    %s = scf.for %w = %c0 to %c2 step %c2 iter_args(%y = %x) -> (f32) {
      %z = arith.negf %y : f32
      scf.yield %z : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}
// CHECK-LABEL: @nest_stays
// CHECK-COUNT-2: scf.for
// REMARK:      skipped scf.for: it contains scf.for

// -----

// Values of the body used in nested regions are those of the same copy.
func.func @regions(%a: f32, %p: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %v = %c0 to %c2 step %c1 iter_args(%x = %a) -> (f32) {
    %y = arith.negf %x : f32
    %z = scf.if %p -> (f32) {
      %w = arith.addf %x, %y : f32
      scf.yield %w : f32
    } else {
      scf.yield %y : f32
    }
    scf.yield %z : f32
  }
  return %r : f32
}
// CHECK-LABEL: @regions
// CHECK-SAME:  (%[[A:[a-z]+]]: f32, %[[P:[a-z]+]]: i1)
// CHECK-NOT:   scf.for
// CHECK:       %[[Y0:.*]] = arith.negf %[[A]]
// CHECK-NEXT:  %[[Z0:.*]] = scf.if %[[P]] -> (f32) {
// CHECK-NEXT:    arith.addf %[[A]], %[[Y0]]
// CHECK:         scf.yield %[[Y0]]
// CHECK:       %[[Y1:.*]] = arith.negf %[[Z0]]
// CHECK-NEXT:  %[[Z1:.*]] = scf.if %[[P]] -> (f32) {
// CHECK-NEXT:    arith.addf %[[Z0]], %[[Y1]]
// CHECK:         scf.yield %[[Y1]]
// CHECK:       return %[[Z1]]
