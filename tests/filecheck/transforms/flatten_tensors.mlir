// RUN: xla-emitters-opt -p xla-flatten-tensors --split-input-file %s | filecheck %s

// The seed's map, with its names: a read and a write of one element share it.
// CHECK:       #map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
// CHECK-LABEL: func.func @seed(%in: tensor<12582912xbf16> {xla.invariant}, %out: tensor<12582912xbf16>, %t: index, %b: index, %v: index) -> tensor<12582912xbf16>
// CHECK-NEXT:    %dim = xla_gpu.apply_indexing #map(%t, %b, %v)
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %in[%dim] : tensor<12582912xbf16>
// CHECK-NEXT:    %[[N:.*]] = tensor.insert %[[X]] into %out[%dim] : tensor<12582912xbf16>
// CHECK-NEXT:    return %[[N]] : tensor<12582912xbf16>
#m0 = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
#m1 = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ((bl_x floordiv 8) mod 512), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
#m2 = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ((bl_x mod 8) * 512 + th_x * 4 + vector_index), domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
func.func @seed(%in: tensor<6x512x4096xbf16> {xla.invariant}, %out: tensor<6x512x4096xbf16>, %t: index, %b: index, %v: index)
    -> tensor<6x512x4096xbf16> {
  %i = xla_gpu.apply_indexing #m0(%t, %b)[%v]
  %j = xla_gpu.apply_indexing #m1(%t, %b)[%v]
  %k = xla_gpu.apply_indexing #m2(%t, %b)[%v]
  %x = tensor.extract %in[%i, %j, %k] : tensor<6x512x4096xbf16>
  %n = tensor.insert %x into %out[%i, %j, %k] : tensor<6x512x4096xbf16>
  return %n : tensor<6x512x4096xbf16>
}

// -----

// Indices that are not results of maps; a constant one; column-major layouts in both spellings.
// CHECK-DAG:   #[[ROW:.*]] = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]">
// CHECK-DAG:   #[[COLUMN:.*]] = #xla_gpu.indexing_map<"(d0, d1) -> (d1 * 4 + d0), domain: d0 in [0, 3], d1 in [0, 7]">
// CHECK-DAG:   #[[FIXED:.*]] = #xla_gpu.indexing_map<"(d0) -> (d0 + 16), domain: d0 in [0, 7]">
// CHECK-LABEL: func.func @layouts(%a: tensor<32xf32>, %b: tensor<32xf32>, %c: tensor<32xf32>, %i: index, %j: index)
// CHECK:         %[[R:.*]] = xla_gpu.apply_indexing #[[ROW]](%i, %j)
// CHECK-NEXT:    tensor.extract %a[%[[R]]]
// CHECK-NEXT:    %[[C:.*]] = xla_gpu.apply_indexing #[[COLUMN]](%i, %j)
// CHECK-NEXT:    tensor.extract %b[%[[C]]]
// CHECK-NEXT:    tensor.extract %c[%[[C]]]
// CHECK-NEXT:    %[[F:.*]] = xla_gpu.apply_indexing #[[FIXED]](%j)
// CHECK-NEXT:    tensor.extract %a[%[[F]]]
// CHECK-NEXT:    tensor.extract %a[%c19]
func.func @layouts(%a: tensor<4x8xf32>, %b: tensor<4x8xf32, dense<[0, 1]> : tensor<2xi64>>, %c: tensor<4x8xf32, #hlo.layout<[0, 1]>>,
    %i: index, %j: index) -> (f32, f32, f32, f32, f32) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %0 = tensor.extract %a[%i, %j] : tensor<4x8xf32>
  %1 = tensor.extract %b[%i, %j] : tensor<4x8xf32, dense<[0, 1]> : tensor<2xi64>>
  %2 = tensor.extract %c[%i, %j] : tensor<4x8xf32, #hlo.layout<[0, 1]>>
  %3 = tensor.extract %a[%c2, %j] : tensor<4x8xf32>
  %4 = tensor.extract %a[%c2, %c3] : tensor<4x8xf32>
  return %0, %1, %2, %3, %4 : f32, f32, f32, f32, f32
}

// -----

// Loops, branches and calls carry the flat types; ranks 0 and 1 stay, a layout of rank 1 says nothing and goes.
// CHECK-LABEL: func.func @carriers(%t: tensor<32xf32>, %s: tensor<f32>, %v: tensor<8xf32>, %w: tensor<8xf32>
// CHECK:         scf.for {{.*}} iter_args(%a = %t) -> (tensor<32xf32>)
// CHECK:           scf.if {{.*}} -> (tensor<32xf32>)
// CHECK:         xla_gpu.pure_call @f(%{{.*}}, %i) : (tensor<32xf32>, index) -> f32
// CHECK:         tensor.extract %s[] : tensor<f32>
// CHECK:         tensor.extract %v[%i] : tensor<8xf32>
// CHECK:         tensor.extract %w[%i] : tensor<8xf32>
// CHECK:       func.func private @f(tensor<32xf32>, index) -> f32
func.func @carriers(%t: tensor<4x8xf32>, %s: tensor<f32>, %v: tensor<8xf32>, %w: tensor<8xf32, dense<[0]> : tensor<1xi64>>,
    %i: index, %n: index, %c: i1, %x: f32) -> (f32, f32, f32, f32) {
  %0 = scf.for %j = %i to %n step %n iter_args(%a = %t) -> (tensor<4x8xf32>) {
    %5 = scf.if %c -> (tensor<4x8xf32>) {
      %6 = tensor.insert %x into %a[%i, %j] : tensor<4x8xf32>
      scf.yield %6 : tensor<4x8xf32>
    } else {
      scf.yield %a : tensor<4x8xf32>
    }
    scf.yield %5 : tensor<4x8xf32>
  }
  %1 = xla_gpu.pure_call @f(%0, %i) : (tensor<4x8xf32>, index) -> f32
  %2 = tensor.extract %s[] : tensor<f32>
  %3 = tensor.extract %v[%i] : tensor<8xf32>
  %4 = tensor.extract %w[%i] : tensor<8xf32, dense<[0]> : tensor<1xi64>>
  return %1, %2, %3, %4 : f32, f32, f32, f32
}
func.func private @f(tensor<4x8xf32>, index) -> f32

// -----

// Constants lie in memory as their layout says: [[1, 2, 3], [4, 5, 6]] by columns is 1, 4, 2, 5, 3, 6.
// CHECK-LABEL: func.func @constants
// CHECK-DAG:     arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]> : tensor<6xf32>
// CHECK-DAG:     arith.constant dense<[1, 4, 2, 5, 3, 6]> : tensor<6xi32>
// CHECK-DAG:     arith.constant dense<7> : tensor<6xi8>
func.func @constants(%i: index, %j: index) -> (f32, i32, i8) {
  %a = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32, dense<[0, 1]> : tensor<2xi64>>
  %c = arith.constant dense<7> : tensor<2x3xi8, dense<[0, 1]> : tensor<2xi64>>
  %0 = tensor.extract %a[%i, %j] : tensor<2x3xf32>
  %1 = tensor.extract %b[%i, %j] : tensor<2x3xi32, dense<[0, 1]> : tensor<2xi64>>
  %2 = tensor.extract %c[%i, %j] : tensor<2x3xi8, dense<[0, 1]> : tensor<2xi64>>
  return %0, %1, %2 : f32, i32, i8
}

// -----

// An index used elsewhere stays; an offset made inside a branch does not serve the code after it. Values that are indices themselves
// come first among an offset's operands, as where maps are canonicalised.
// CHECK-LABEL: func.func @shared
// CHECK:         %i = xla_gpu.apply_indexing #{{.*}}(%t)
// CHECK:         scf.if
// CHECK-NEXT:      %[[A:.*]] = xla_gpu.apply_indexing #[[M:.*]](%j, %t)
// CHECK-NEXT:      tensor.extract %a[%[[A]]]
// CHECK:         %[[B:.*]] = xla_gpu.apply_indexing #[[M]](%j, %t)
// CHECK-NEXT:    tensor.extract %a[%[[B]]]
// CHECK-NEXT:    return {{.*}}, %i
func.func @shared(%a: tensor<4x8xf32>, %t: index, %j: index, %c: i1, %x: f32) -> (f32, f32, index) {
  %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 4), domain: d0 in [0, 15]">(%t)
  %0 = scf.if %c -> (f32) {
    %2 = tensor.extract %a[%i, %j] : tensor<4x8xf32>
    scf.yield %2 : f32
  } else {
    scf.yield %x : f32
  }
  %1 = tensor.extract %a[%i, %j] : tensor<4x8xf32>
  return %0, %1, %i : f32, f32, index
}

// -----

// Vectors along the minor dimension.
// CHECK-LABEL: func.func @vectors
// CHECK:         %[[O:.*]] = xla_gpu.apply_indexing #{{.*}}(%i, %j)
// CHECK-NEXT:    %[[V:.*]] = vector.transfer_read %a[%[[O]]], %x {in_bounds = [true]} : tensor<32xf32>, vector<4xf32>
// CHECK-NEXT:    vector.transfer_write %[[V]], %b[%[[O]]] {in_bounds = [true]} : vector<4xf32>, tensor<32xf32>
func.func @vectors(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %i: index, %j: index, %x: f32) -> tensor<4x8xf32> {
  %0 = vector.transfer_read %a[%i, %j], %x {in_bounds = [true]} : tensor<4x8xf32>, vector<4xf32>
  %1 = vector.transfer_write %0, %b[%i, %j] {in_bounds = [true]} : vector<4xf32>, tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Shared memory has one dimension too, and so has what threads wait with.
// CHECK-LABEL: func.func @shared
// CHECK:         %[[S:.*]] = xla_gpu.allocate_shared : tensor<1056xf32>
// CHECK:         %[[I:.*]] = tensor.insert %x into %[[S]][%{{.*}}] : tensor<1056xf32>
// CHECK-NEXT:    %[[W:.*]]:2 = xla_gpu.sync_threads %[[I]], %t : tensor<1056xf32>, tensor<8xf32>
// CHECK:         tensor.extract %[[W]]#0[%{{.*}}] : tensor<1056xf32>
func.func @shared(%t: tensor<8xf32>, %x: f32, %i: index, %j: index) -> f32 {
  %s = xla_gpu.allocate_shared : tensor<32x1x33xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.insert %x into %s[%i, %c0, %j] : tensor<32x1x33xf32>
  %w:2 = xla_gpu.sync_threads %n, %t : tensor<32x1x33xf32>, tensor<8xf32>
  %y = tensor.extract %w#0[%j, %c0, %i] : tensor<32x1x33xf32>
  return %y : f32
}

// -----

// Vectors too, when only their elements are touched, wherever they go.
// CHECK:       #[[M:.*]] = #xla_gpu.indexing_map<"(d0) -> (d0 * 3 + 2), domain: d0 in [0, 1]">
// CHECK-LABEL: func.func @vectors(%v: vector<6xf32>
// CHECK:         %[[C:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]> : vector<6xf32>
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %v) -> (vector<6xf32>)
// CHECK-NEXT:      %[[K:.*]] = xla_gpu.apply_indexing #[[M]](%i)
// CHECK-NEXT:      %[[E:.*]] = vector.extract %[[C]][%[[K]]] : f32 from vector<6xf32>
// CHECK-NEXT:      %[[N:.*]] = vector.insert %[[E]], %{{.*}} [1] : f32 into vector<6xf32>
// CHECK-NEXT:      %[[A:.*]] = arith.addf %[[N]], %[[C]] : vector<6xf32>
// CHECK-NEXT:      scf.yield %[[A]]
// CHECK:         vector.from_elements {{.*}} : vector<6xf32>
func.func @vectors(%v: vector<2x3xf32>, %x: f32) -> (vector<2x3xf32>, vector<2x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : vector<2x3xf32>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%w = %v) -> (vector<2x3xf32>) {
    %0 = vector.extract %c[%i, 2] : f32 from vector<2x3xf32>
    %1 = vector.insert %0, %w [0, 1] : f32 into vector<2x3xf32>
    %2 = arith.addf %1, %c : vector<2x3xf32>
    scf.yield %2 : vector<2x3xf32>
  }
  %3 = vector.from_elements %x, %x, %x, %x, %x, %x : vector<2x3xf32>
  return %r, %3 : vector<2x3xf32>, vector<2x3xf32>
}

// -----

// An element of a vector that has another element replaced.
// CHECK-LABEL: func.func @chain
// CHECK:         %[[N:.*]] = vector.insert %x, %v [2] : f32 into vector<6xf32>
// CHECK:         vector.extract %[[N]][4] : f32 from vector<6xf32>
func.func @chain(%v: vector<2x3xf32>, %x: f32) -> f32 {
  %0 = vector.insert %x, %v [0, 2] : f32 into vector<2x3xf32>
  %1 = vector.extract %0[1, 1] : f32 from vector<2x3xf32>
  return %1 : f32
}

// -----

// A row of a vector is no element: vectors stay as they are, tensors do not.
// CHECK-LABEL: func.func @row(%v: vector<2x3xf32>, %t: tensor<6xf32>
// CHECK:         vector.extract %v[1] : vector<3xf32> from vector<2x3xf32>
// CHECK:         vector.extract %v[0, 2] : f32 from vector<2x3xf32>
func.func @row(%v: vector<2x3xf32>, %t: tensor<2x3xf32>, %i: index) -> (vector<3xf32>, f32, f32) {
  %0 = vector.extract %v[1] : vector<3xf32> from vector<2x3xf32>
  %1 = vector.extract %v[0, 2] : f32 from vector<2x3xf32>
  %2 = tensor.extract %t[%i, %i] : tensor<2x3xf32>
  return %0, %1, %2 : vector<3xf32>, f32, f32
}

// -----

// Other maps depend on no more than they need: the row is the same in every column. What the division by 8 takes apart comes together in the offset.
func.func @needed(%a: tensor<4x8x8xi32>, %t: index, %v: index) -> i32 {
  %row = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p)[s] -> (p floordiv 8), domain: p in [0, 255], s in [0, 1]">(%t)[%v]
  %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(r) -> (r floordiv 8), domain: r in [0, 31]">(%row)
  %j = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(r) -> (r mod 8), domain: r in [0, 31]">(%row)
  %0 = tensor.extract %a[%i, %j, %v] : tensor<4x8x8xi32>
  %1 = arith.index_cast %row : index to i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
// CHECK-DAG:   #[[ROW:.*]] = #xla_gpu.indexing_map<"(p) -> (p floordiv 8), domain: p in [0, 255]">
// CHECK-DAG:   #[[AT:.*]] = #xla_gpu.indexing_map<"(d0, r) -> (r * 8 + d0), domain: d0 in [0, 7], r in [0, 31]">
// CHECK-LABEL: @needed
// CHECK-NEXT:    %[[R:.*]] = xla_gpu.apply_indexing #[[ROW]](%t)
// CHECK-NEXT:    %[[K:.*]] = xla_gpu.apply_indexing #[[AT]](%v, %[[R]])
// CHECK-NEXT:    tensor.extract %a[%[[K]]]

// -----

// The row is 0 whatever %i is: %i goes, and so does %k, which only %i read.
func.func @one_row(%a: tensor<1x16xi32>, %t: index) -> i32 {
  %k = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p) -> (p + 1), domain: p in [0, 9]">(%t)
  %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p) -> (p floordiv 20), domain: p in [1, 10]">(%k)
  %0 = tensor.extract %a[%i, %t] : tensor<1x16xi32>
  return %0 : i32
}
// CHECK-LABEL: @one_row
// CHECK-NEXT:    tensor.extract %a[%t] : tensor<16xi32>

// -----

// A constant of one value stays one value, whatever the order in memory.
func.func @splat() -> tensor<3x4xi32, dense<[0, 1]> : tensor<2xi64>> {
  %0 = arith.constant dense<7> : tensor<3x4xi32, dense<[0, 1]> : tensor<2xi64>>
  return %0 : tensor<3x4xi32, dense<[0, 1]> : tensor<2xi64>>
}
// CHECK-LABEL: @splat
// CHECK-NEXT:    arith.constant dense<7> : tensor<12xi32>
