// RUN: xla-emitters-opt -p xla-lower-tensors --split-input-file %s | filecheck %s

// The seed's unrolled GELU, cut short: one invariant vector load, one vector store, no result. The index is 32 bits wide.
#map = #xla_gpu.indexing_map<"(th_x, bl_x) -> (th_x * 4 + bl_x * 512), domain: th_x in [0, 127], bl_x in [0, 24575]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @gelu(%arg0: tensor<12582912xbf16> {llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<12582912xbf16> {llvm.align = 256 : index, llvm.dereferenceable = 25165824 : index, xla.slice_index = 1 : index}) -> tensor<12582912xbf16> attributes {xla.entry} {
    %cst = arith.constant 0.000000e+00 : bf16
    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
    %0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)
    %1 = vector.transfer_read %arg0[%0], %cst {in_bounds = [true]} : tensor<12582912xbf16>, vector<4xbf16>
    %2 = vector.transfer_write %1, %arg1[%0] {in_bounds = [true]} : vector<4xbf16>, tensor<12582912xbf16>
    return %2 : tensor<12582912xbf16>
  }
}
// CHECK-LABEL: @gelu
// CHECK-SAME:  (%[[IN:[a-z0-9_]+]]: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index, xla.invariant, xla.slice_index = 0 : index}, %[[OUT:[a-z0-9_]+]]: !llvm.ptr {llvm.align = 256 : index, llvm.dereferenceable = 25165824 : index, xla.slice_index = 1 : index}) attributes {xla.entry} {
// CHECK:       %[[I:.*]] = xla_gpu.apply_indexing
// CHECK-NEXT:  %[[I32:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK-NEXT:  %[[FROM:.*]] = llvm.getelementptr inbounds %[[IN]][%[[I32]]] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
// CHECK-NEXT:  %[[V:.*]] = llvm.load %[[FROM]] invariant : !llvm.ptr -> vector<4xbf16>
// CHECK-NEXT:  %[[J32:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK-NEXT:  %[[TO:.*]] = llvm.getelementptr inbounds %[[OUT]][%[[J32]]] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
// CHECK-NEXT:  llvm.store %[[V]], %[[TO]] : vector<4xbf16>, !llvm.ptr
// CHECK-NEXT:  return
// CHECK-NEXT:  }

// -----

// Loops and branches stop carrying tensors; other carried values stay, in order. Without a data layout indices have 64 bits.
func.func @structure(%in: tensor<8xf32>, %out: tensor<8xf32>, %x: f32, %p: i1) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %loop:3 = scf.for %v = %c0 to %c8 step %c1 iter_args(%a = %x, %iter = %out, %b = %x) -> (f32, tensor<8xf32>, f32) {
    %if:2 = scf.if %p -> (tensor<8xf32>, f32) {
      %y = tensor.extract %in[%v] : tensor<8xf32>
      %t = tensor.insert %y into %iter[%v] : tensor<8xf32>
      scf.yield %t, %y : tensor<8xf32>, f32
    } else {
      scf.yield %iter, %b : tensor<8xf32>, f32
    }
    scf.yield %b, %if#0, %if#1 : f32, tensor<8xf32>, f32
  }
  %last = scf.if %p -> (tensor<8xf32>) {
    %t = tensor.insert %loop#2 into %loop#1[%c0] : tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  } else {
    scf.yield %loop#1 : tensor<8xf32>
  }
  return %last : tensor<8xf32>
}
// CHECK-LABEL: @structure
// CHECK-SAME:  (%[[IN:[a-z0-9_]+]]: !llvm.ptr, %[[OUT:[a-z0-9_]+]]: !llvm.ptr, %[[X:[a-z0-9_]+]]: f32, %[[P:[a-z0-9_]+]]: i1) {
// CHECK:       scf.for %[[V:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[X]], %[[B:.*]] = %[[X]]) -> (f32, f32) {
// CHECK-NEXT:    %[[IF:.*]] = scf.if %[[P]] -> (f32) {
// CHECK-NEXT:      %[[I:.*]] = arith.index_castui %[[V]] : index to i64
// CHECK-NEXT:      %[[FROM:.*]] = llvm.getelementptr inbounds %[[IN]][%[[I]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:      %[[Y:.*]] = llvm.load %[[FROM]] : !llvm.ptr -> f32
// CHECK-NEXT:      %[[J:.*]] = arith.index_castui %[[V]] : index to i64
// CHECK-NEXT:      %[[TO:.*]] = llvm.getelementptr inbounds %[[OUT]][%[[J]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:      llvm.store %[[Y]], %[[TO]] : f32, !llvm.ptr
// CHECK-NEXT:      scf.yield %[[Y]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[B]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.yield %[[B]], %[[IF]] : f32, f32
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.if %[[P]] {
// CHECK:         llvm.store
// CHECK-NEXT:  }
// CHECK-NEXT:  return
// CHECK-NEXT:  }

// -----

// Two tensors carried, a number between them; a branch that writes in its else too.
func.func @two(%a: tensor<8xf32>, %b: tensor<8xf64>, %x: f32, %y: f64, %p: i1) -> (tensor<8xf32>, tensor<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %loop:3 = scf.for %v = %c0 to %c8 step %c1 iter_args(%i = %a, %n = %x, %j = %b) -> (tensor<8xf32>, f32, tensor<8xf64>) {
    %t = tensor.insert %n into %i[%v] : tensor<8xf32>
    %m = arith.negf %n : f32
    %u = tensor.insert %y into %j[%v] : tensor<8xf64>
    scf.yield %t, %m, %u : tensor<8xf32>, f32, tensor<8xf64>
  }
  %if = scf.if %p -> (tensor<8xf32>) {
    %t = tensor.insert %x into %loop#0[%c0] : tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  } else {
    %t = tensor.insert %x into %loop#0[%c1] : tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  }
  return %if, %loop#2 : tensor<8xf32>, tensor<8xf64>
}
// CHECK-LABEL: @two
// CHECK-SAME:  (%[[A:[a-z0-9_]+]]: !llvm.ptr, %[[B:[a-z0-9_]+]]: !llvm.ptr, %[[X:[a-z0-9_]+]]: f32, %[[Y:[a-z0-9_]+]]: f64, %{{.*}}: i1) {
// CHECK:       scf.for {{.*}} iter_args(%[[N:.*]] = %[[X]]) -> (f32) {
// CHECK:         llvm.getelementptr inbounds %[[A]][
// CHECK-NEXT:    llvm.store %[[N]],
// CHECK-NEXT:    %[[M:.*]] = arith.negf %[[N]]
// CHECK:         llvm.getelementptr inbounds %[[B]][
// CHECK-NEXT:    llvm.store %[[Y]],
// CHECK-NEXT:    scf.yield %[[M]] : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.if %{{.*}} {
// CHECK:         llvm.store %[[X]],
// CHECK-NEXT:  } else {
// CHECK:         llvm.store %[[X]],
// CHECK-NEXT:  }
// CHECK-NEXT:  return
// CHECK-NEXT:  }

// -----

// Calls pass pointers; scalars keep their types. A callee's loads are invariant where its argument is.
func.func private @f(%in: tensor<8xf64> {xla.invariant}, %i: index {xla.range = [0 : index, 7 : index]}) -> f64 {
  %x = tensor.extract %in[%i] : tensor<8xf64>
  return %x : f64
}
func.func @call(%in: tensor<8xf64> {xla.invariant}, %out: tensor<8xf64>, %i: index) -> tensor<8xf64> attributes {xla.entry} {
  %x = func.call @f(%in, %i) : (tensor<8xf64>, index) -> f64
  %t = tensor.insert %x into %out[%i] : tensor<8xf64>
  return %t : tensor<8xf64>
}
// CHECK-LABEL: func.func private @f
// CHECK-SAME:  (%[[IN:[a-z0-9_]+]]: !llvm.ptr {xla.invariant}, %{{.*}}: index {xla.range = [0 : index, 7 : index]}) -> f64 {
// CHECK:       %[[X:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr -> f64
// CHECK-NEXT:  return %[[X]] : f64
// CHECK-LABEL: @call
// CHECK-SAME:  (%[[IN:[a-z0-9_]+]]: !llvm.ptr {xla.invariant}, %[[OUT:[a-z0-9_]+]]: !llvm.ptr, %[[I:[a-z0-9_]+]]: index) attributes {xla.entry}
// CHECK-NEXT:  call @f(%[[IN]], %[[I]]) : (!llvm.ptr, index) -> f64

// -----

// Alignment is stated where it is less than natural. Natural is 16 bytes here: 4 elements of f32 times ...
#by4 = #xla_gpu.indexing_map<"(d0) -> (d0 * 4), domain: d0 in [0, 7]">
#by2 = #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 7]">
#by1 = #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 7]">
func.func @alignment(%a: tensor<64xf32> {llvm.align = 16 : index}, %b: tensor<64xf32>, %c: tensor<64xf64> {llvm.align = 16 : index}, %i: index) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf64>) {
  %pad = arith.constant 0.000000e+00 : f32
  %pad64 = arith.constant 0.000000e+00 : f64
  %c0 = arith.constant 0 : index
  %4 = xla_gpu.apply_indexing #by4(%i)
  %2 = xla_gpu.apply_indexing #by2(%i)
  %1 = xla_gpu.apply_indexing #by1(%i)
  %x = vector.transfer_read %a[%4], %pad {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %y = vector.transfer_read %a[%2], %pad {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %z = vector.transfer_read %a[%1], %pad {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %u = vector.transfer_read %b[%4], %pad {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %v = vector.transfer_read %c[%c0], %pad64 {in_bounds = [true]} : tensor<64xf64>, vector<4xf64>
  return %x, %y, %z, %u, %v : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf64>
}
// CHECK-LABEL: @alignment
// CHECK:       llvm.load %{{[^ ]*}} : !llvm.ptr -> vector<4xf32>
// CHECK:       llvm.load %{{[^ ]*}} {alignment = 8 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:       llvm.load %{{[^ ]*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
// An argument that promises nothing is aligned as an element is.
// CHECK:       llvm.load %{{[^ ]*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
// 32 bytes on a 16-byte promise.
// CHECK:       llvm.load %{{[^ ]*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf64>

// -----

// A tensor without dimensions is its one element.
func.func @rank_0(%in: tensor<f32>, %out: tensor<f32>) -> tensor<f32> {
  %x = tensor.extract %in[] : tensor<f32>
  %t = tensor.insert %x into %out[] : tensor<f32>
  return %t : tensor<f32>
}
// CHECK-LABEL: @rank_0
// CHECK-SAME:  (%[[IN:[a-z0-9_]+]]: !llvm.ptr, %[[OUT:[a-z0-9_]+]]: !llvm.ptr) {
// CHECK-NEXT:  %[[X:.*]] = llvm.load %[[IN]] : !llvm.ptr -> f32
// CHECK-NEXT:  llvm.store %[[X]], %[[OUT]] : f32, !llvm.ptr
// CHECK-NEXT:  return

// -----

// i1 takes a byte; narrow floats are bytes with a cast.
func.func @bytes(%a: tensor<8xi1>, %b: tensor<8xf8E4M3FN>, %p: tensor<8xi1>, %q: tensor<8xf8E4M3FN>, %i: index) -> (tensor<8xi1>, tensor<8xf8E4M3FN>) {
  %x = tensor.extract %a[%i] : tensor<8xi1>
  %y = tensor.extract %b[%i] : tensor<8xf8E4M3FN>
  %t = tensor.insert %x into %p[%i] : tensor<8xi1>
  %u = tensor.insert %y into %q[%i] : tensor<8xf8E4M3FN>
  return %t, %u : tensor<8xi1>, tensor<8xf8E4M3FN>
}
// CHECK-LABEL: @bytes
// CHECK:       llvm.getelementptr inbounds %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:  %[[BYTE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:  %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK-NEXT:  %[[X:.*]] = arith.cmpi ne, %[[BYTE]], %[[ZERO]] : i8
// CHECK:       llvm.getelementptr inbounds %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:  %[[CODE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:  %[[Y:.*]] = arith.bitcast %[[CODE]] : i8 to f8E4M3FN
// CHECK:       %[[ONE:.*]] = arith.extui %[[X]] : i1 to i8
// CHECK-NEXT:  llvm.store %[[ONE]], %{{.*}} : i8, !llvm.ptr
// CHECK:       %[[BACK:.*]] = arith.bitcast %[[Y]] : f8E4M3FN to i8
// CHECK-NEXT:  llvm.store %[[BACK]], %{{.*}} : i8, !llvm.ptr

// -----

// Vectors of them.
func.func @byte_vectors(%a: tensor<8xi1> {llvm.align = 16 : index}, %b: tensor<8xf8E5M2> {llvm.align = 16 : index}, %p: tensor<8xi1> {llvm.align = 16 : index}, %q: tensor<8xf8E5M2> {llvm.align = 16 : index}) -> (tensor<8xi1>, tensor<8xf8E5M2>) {
  %c0 = arith.constant 0 : index
  %false = arith.constant false
  %pad = arith.constant 0.000000e+00 : f8E5M2
  %x = vector.transfer_read %a[%c0], %false {in_bounds = [true]} : tensor<8xi1>, vector<2xi1>
  %y = vector.transfer_read %b[%c0], %pad {in_bounds = [true]} : tensor<8xf8E5M2>, vector<2xf8E5M2>
  %t = vector.transfer_write %x, %p[%c0] {in_bounds = [true]} : vector<2xi1>, tensor<8xi1>
  %u = vector.transfer_write %y, %q[%c0] {in_bounds = [true]} : vector<2xf8E5M2>, tensor<8xf8E5M2>
  return %t, %u : tensor<8xi1>, tensor<8xf8E5M2>
}
// CHECK-LABEL: @byte_vectors
// CHECK:       %[[BYTES:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<2xi8>
// CHECK:       vector.extract %[[BYTES]][0] : i8 from vector<2xi8>
// CHECK:       arith.cmpi ne, %{{.*}}, %{{.*}} : i8
// CHECK:       vector.insert %{{.*}}, %{{.*}} [0] : i1 into vector<2xi1>
// CHECK:       vector.extract %[[BYTES]][1] : i8 from vector<2xi8>
// CHECK:       arith.cmpi ne, %{{.*}}, %{{.*}} : i8
// CHECK:       %[[X:.*]] = vector.insert %{{.*}}, %{{.*}} [1] : i1 into vector<2xi1>
// CHECK:       %[[CODES:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<2xi8>
// CHECK-NEXT:  %[[Y:.*]] = arith.bitcast %[[CODES]] : vector<2xi8> to vector<2xf8E5M2>
// CHECK:       vector.extract %[[X]][0] : i1 from vector<2xi1>
// CHECK-NEXT:  arith.extui %{{.*}} : i1 to i8
// CHECK-NEXT:  vector.insert %{{.*}}, %{{.*}} [0] : i8 into vector<2xi8>
// CHECK-NEXT:  vector.extract %[[X]][1] : i1 from vector<2xi1>
// CHECK-NEXT:  arith.extui %{{.*}} : i1 to i8
// CHECK-NEXT:  %[[STORED:.*]] = vector.insert %{{.*}}, %{{.*}} [1] : i8 into vector<2xi8>
// CHECK-NEXT:  llvm.store %[[STORED]], %{{.*}} : vector<2xi8>, !llvm.ptr
// CHECK:       arith.bitcast %[[Y]] : vector<2xf8E5M2> to vector<2xi8>
// CHECK-NEXT:  llvm.store

// -----

// Nibbles: element 5 is the high half of byte 2. A vector of four starts at whole bytes and moves two.
#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 4), domain: d0 in [0, 1]">
func.func @nibbles(%in: tensor<8xi4> {llvm.align = 16 : index}, %f: tensor<8xf4E2M1FN>, %out: tensor<8xi4> {llvm.align = 16 : index}, %i: index) -> tensor<8xi4> {
  %pad = arith.constant 0 : i4
  %x = tensor.extract %in[%i] : tensor<8xi4>
  %y = tensor.extract %f[%i] : tensor<8xf4E2M1FN>
  %z = func.call @use(%x, %y) : (i4, f4E2M1FN) -> i4
  %k = xla_gpu.apply_indexing #map(%i)
  %v = vector.transfer_read %in[%k], %pad {in_bounds = [true]} : tensor<8xi4>, vector<4xi4>
  %w = vector.insert %z, %v [0] : i4 into vector<4xi4>
  %t = vector.transfer_write %w, %out[%k] {in_bounds = [true]} : vector<4xi4>, tensor<8xi4>
  return %t : tensor<8xi4>
}
func.func private @use(i4, f4E2M1FN) -> i4
// CHECK-LABEL: @nibbles
// CHECK:       %[[I:.*]] = arith.index_castui %{{.*}} : index to i64
// CHECK-NEXT:  %[[C1:.*]] = arith.constant 1 : i64
// CHECK-NEXT:  %[[BYTE_NUMBER:.*]] = arith.shrui %[[I]], %[[C1]] : i64
// CHECK-NEXT:  %[[AT:.*]] = llvm.getelementptr inbounds %{{.*}}[%[[BYTE_NUMBER]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:  %[[BYTE:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i8
// CHECK-NEXT:  %[[I_:.*]] = arith.index_castui %{{.*}} : index to i64
// CHECK-NEXT:  %[[C1_:.*]] = arith.constant 1 : i64
// CHECK-NEXT:  %[[WHICH:.*]] = arith.andi %[[I_]], %[[C1_]] : i64
// CHECK-NEXT:  %[[WHICH8:.*]] = arith.trunci %[[WHICH]] : i64 to i8
// CHECK-NEXT:  %[[C4:.*]] = arith.constant 4 : i8
// CHECK-NEXT:  %[[SHIFT:.*]] = arith.muli %[[WHICH8]], %[[C4]] : i8
// CHECK-NEXT:  %[[DOWN:.*]] = arith.shrui %[[BYTE]], %[[SHIFT]] : i8
// CHECK-NEXT:  arith.trunci %[[DOWN]] : i8 to i4
// CHECK:       arith.bitcast %{{.*}} : i4 to f4E2M1FN
// CHECK:       arith.shrui
// CHECK:       llvm.load %{{.*}} : !llvm.ptr -> vector<4xi4>
// CHECK:       arith.shrui
// CHECK:       llvm.store %{{.*}} : vector<4xi4>, !llvm.ptr

// -----

// One nibble is written without a word to whoever writes its neighbour: both steps are atomic, and leave the other bits as they are.
func.func @one_nibble(%out: tensor<33xi4>, %x: i4, %i: index) -> tensor<33xi4> {
  %t = tensor.insert %x into %out[%i] : tensor<33xi4>
  return %t : tensor<33xi4>
}
// CHECK-LABEL: @one_nibble
// CHECK:       %[[AT:.*]] = llvm.getelementptr inbounds %{{.*}} : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:  %[[C15:.*]] = arith.constant 15 : i8
// CHECK-NEXT:  %[[BITS:.*]] = arith.extui %{{.*}} : i4 to i8
// CHECK:       %[[SHIFT:.*]] = arith.muli %{{.*}} : i8
// CHECK-NEXT:  %[[OWN:.*]] = arith.shli %[[C15]], %[[SHIFT]] : i8
// CHECK-NEXT:  %[[NEW:.*]] = arith.shli %[[BITS]], %[[SHIFT]] : i8
// CHECK-NEXT:  %[[ALL:.*]] = arith.constant -1 : i8
// CHECK-NEXT:  %[[OTHERS:.*]] = arith.xori %[[OWN]], %[[ALL]] : i8
// CHECK-NEXT:  llvm.atomicrmw _and %[[AT]], %[[OTHERS]] monotonic : !llvm.ptr, i8
// CHECK-NEXT:  llvm.atomicrmw _or %[[AT]], %[[NEW]] monotonic : !llvm.ptr, i8
// CHECK-NEXT:  return

// -----

// Four-bit floats as the integers that they are; the only element is in the low bits.
func.func @one_float(%out: tensor<f4E2M1FN>, %x: f4E2M1FN) -> tensor<f4E2M1FN> {
  %t = tensor.insert %x into %out[] : tensor<f4E2M1FN>
  return %t : tensor<f4E2M1FN>
}
// CHECK-LABEL: @one_float
// CHECK:       arith.bitcast %{{.*}} : f4E2M1FN to i4
// CHECK-NOT:   arith.shli
// CHECK:       llvm.atomicrmw _or

// -----

// The only nibble of a tensor without dimensions is the low one.
func.func @nibble(%in: tensor<i4>, %out: tensor<4xi4>) -> tensor<4xi4> {
  %x = tensor.extract %in[] : tensor<i4>
  %unused = func.call @use(%x) : (i4) -> i4
  return %out : tensor<4xi4>
}
func.func private @use(i4) -> i4
// CHECK-LABEL: @nibble
// CHECK-NEXT:  %[[BYTE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:  %[[X:.*]] = arith.trunci %[[BYTE]] : i8 to i4
// CHECK-NEXT:  call @use(%[[X]])

// -----

// Constants of two and more elements are globals, one for equal ones; splats and single elements are values.
func.func @constants(%out: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %table = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %again = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %splat = arith.constant dense<3.000000e+00> : tensor<4xf32>
  %one = arith.constant dense<5.000000e+00> : tensor<1xf32>
  %x = tensor.extract %table[%i] : tensor<2xf32>
  %y = tensor.extract %again[%c0] : tensor<2xf32>
  %z = tensor.extract %splat[%i] : tensor<4xf32>
  %u = tensor.extract %one[%c0] : tensor<1xf32>
  %r = func.call @use4(%x, %y, %z, %u) : (f32, f32, f32, f32) -> f32
  %t = tensor.insert %r into %out[%i] : tensor<4xf32>
  return %t : tensor<4xf32>
}
func.func private @use4(f32, f32, f32, f32) -> f32
// CHECK:       llvm.mlir.global private constant @global_cst_0(dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>) {{.*}}alignment = 16 : i64{{.*}} : !llvm.array<2 x f32>
// CHECK-NOT:   llvm.mlir.global
// CHECK-LABEL: @constants
// CHECK:       %[[TABLE:.*]] = llvm.mlir.addressof @global_cst_0 : !llvm.ptr
// CHECK:       %[[AGAIN:.*]] = llvm.mlir.addressof @global_cst_0 : !llvm.ptr
// CHECK:       llvm.getelementptr inbounds %[[TABLE]][
// CHECK:       %[[X:.*]] = llvm.load
// CHECK:       llvm.getelementptr inbounds %[[AGAIN]][
// CHECK:       %[[Y:.*]] = llvm.load
// CHECK:       %[[Z:.*]] = arith.constant 3.000000e+00 : f32
// CHECK:       %[[U:.*]] = arith.constant 5.000000e+00 : f32
// CHECK:       call @use4(%[[X]], %[[Y]], %[[Z]], %[[U]])

// -----

// Narrow constants are bytes in memory: i1 as 0 and 1, nibbles with the first one low.
func.func @narrow_constants(%i: index) -> (i1, i4, f8E4M3FN) {
  %a = arith.constant dense<[true, false, true]> : tensor<3xi1>
  %b = arith.constant dense<[1, 2, 3, -1, 5]> : tensor<5xi4>
  %c = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf8E4M3FN>
  %x = tensor.extract %a[%i] : tensor<3xi1>
  %y = tensor.extract %b[%i] : tensor<5xi4>
  %z = tensor.extract %c[%i] : tensor<2xf8E4M3FN>
  return %x, %y, %z : i1, i4, f8E4M3FN
}
// 1.0 is exponent 7 of bias 7, 0b0_0111_000; 2.0 is 0b0_1000_000.
// CHECK-DAG:   constant @global_cst_{{[0-9]}}(dense<[1, 0, 1]> : tensor<3xi8>)
// CHECK-DAG:   constant @global_cst_{{[0-9]}}(dense<[33, -13, 5]> : tensor<3xi8>)
// CHECK-DAG:   constant @global_cst_{{[0-9]}}(dense<[56, 64]> : tensor<2xi8>)
// CHECK-LABEL: @narrow_constants

// -----

// A dead insert is no store; an invariant argument that shares its buffer with a written one is not invariant after all.
func.func @dead(%in: tensor<8xf32> {xla.invariant, xla.slice_index = 0 : index}, %out: tensor<8xf32> {xla.slice_index = 0 : index}, %i: index) -> tensor<8xf32> {
  %x = tensor.extract %in[%i] : tensor<8xf32>
  %c0 = arith.constant 0 : index
  %dead = tensor.insert %x into %out[%c0] : tensor<8xf32>
  %t = tensor.insert %x into %out[%i] : tensor<8xf32>
  return %t : tensor<8xf32>
}
// CHECK-LABEL: @dead
// CHECK:       llvm.load %{{[^ ]*}} : !llvm.ptr -> f32
// CHECK-COUNT-1: llvm.store
// CHECK-NOT:   llvm.store

// -----

// A complex number is a vector of two in memory, as aligned as both together, which one access moves.
func.func @complex(%in: tensor<8xcomplex<f32>> {llvm.align = 16 : index, xla.invariant}, %out: tensor<8xcomplex<f32>> {llvm.align = 4 : index}, %i: index) -> tensor<8xcomplex<f32>> {
  %z = tensor.extract %in[%i] : tensor<8xcomplex<f32>>
  %t = tensor.insert %z into %out[%i] : tensor<8xcomplex<f32>>
  return %t : tensor<8xcomplex<f32>>
}
// CHECK-LABEL: @complex
// CHECK-SAME:  (%[[IN:[a-z0-9_]+]]: !llvm.ptr {{.*}}, %[[OUT:[a-z0-9_]+]]: !llvm.ptr {{.*}}, %[[I:[a-z0-9_]+]]: index) {
// CHECK:       %[[FROM:.*]] = llvm.getelementptr inbounds %[[IN]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, vector<2xf32>
// CHECK-NEXT:  %[[V:.*]] = llvm.load %[[FROM]] invariant : !llvm.ptr -> vector<2xf32>
// CHECK-NEXT:  %[[X:.*]] = vector.extract %[[V]][0] : f32 from vector<2xf32>
// CHECK-NEXT:  %[[Y:.*]] = vector.extract %[[V]][1] : f32 from vector<2xf32>
// CHECK-NEXT:  %[[Z:.*]] = complex.create %[[X]], %[[Y]] : complex<f32>
// CHECK:       %[[TO:.*]] = llvm.getelementptr inbounds %[[OUT]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, vector<2xf32>
// CHECK-NEXT:  %[[RE:.*]] = complex.re %[[Z]] : complex<f32>
// CHECK-NEXT:  %[[IM:.*]] = complex.im %[[Z]] : complex<f32>
// CHECK-NEXT:  %[[W:.*]] = vector.from_elements %[[RE]], %[[IM]] : vector<2xf32>
// CHECK-NEXT:  llvm.store %[[W]], %[[TO]] {alignment = 4 : i64} : vector<2xf32>, !llvm.ptr

// -----

// Complex constants: part after part in a global; one that is the same everywhere is used as it is.
func.func @complex_constants(%out: tensor<2xcomplex<f64>>, %i: index) -> tensor<2xcomplex<f64>> {
  %c = arith.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f64>>
  %s = arith.constant dense<(0.5, -1.0)> : tensor<2xcomplex<f64>>
  %x = tensor.extract %c[%i] : tensor<2xcomplex<f64>>
  %y = tensor.extract %s[%i] : tensor<2xcomplex<f64>>
  %z = complex.add %x, %y : complex<f64>
  %t = tensor.insert %z into %out[%i] : tensor<2xcomplex<f64>>
  return %t : tensor<2xcomplex<f64>>
}
// CHECK:       llvm.mlir.global private constant @global_cst_0(dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, -4.000000e+00]> : tensor<4xf64>)
// CHECK-SAME:  : !llvm.array<4 x f64>
// CHECK-LABEL: @complex_constants
// CHECK:       llvm.load %{{.*}} : !llvm.ptr -> vector<2xf64>
// CHECK:       complex.constant [5.000000e-01 : f64, -1.000000e+00 : f64] : complex<f64>

// -----

// Shared memory: each allocation is a global of its own, waiting is a barrier, and what is read and written is not invariant.
func.func @shared(%in: tensor<64xf32> {llvm.align = 16 : index, xla.invariant}, %out: tensor<64xf32> {llvm.align = 16 : index}, %i: index, %j: index) -> tensor<64xf32> {
  %a = xla_gpu.allocate_shared : tensor<1056xf32>
  %b = xla_gpu.allocate_shared : tensor<33xi4>
  %zero = arith.constant dense<0> : vector<8xi4>
  %c0 = arith.constant 0 : index
  %x = tensor.extract %in[%i] : tensor<64xf32>
  %a1 = tensor.insert %x into %a[%i] : tensor<1056xf32>
  %b1 = vector.transfer_write %zero, %b[%c0] {in_bounds = [true]} : vector<8xi4>, tensor<33xi4>
  %s:2 = xla_gpu.sync_threads %a1, %b1 : tensor<1056xf32>, tensor<33xi4>
  %y = tensor.extract %s#0[%j] : tensor<1056xf32>
  %t = tensor.insert %y into %out[%i] : tensor<64xf32>
  return %t : tensor<64xf32>
}
// CHECK-DAG:   llvm.mlir.global private @shared_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1056 x f32>
// CHECK-DAG:   llvm.mlir.global private @shared_1() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<20 x i8>
// CHECK-LABEL: func.func @shared
// CHECK:       %[[A:.*]] = llvm.mlir.addressof @shared_0 : !llvm.ptr<3>
// CHECK-NEXT:  %[[P:.*]] = llvm.addrspacecast %[[A]] : !llvm.ptr<3> to !llvm.ptr
// CHECK:       llvm.mlir.addressof @shared_1 : !llvm.ptr<3>
// CHECK:       %[[X:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr -> f32
// CHECK:       %[[TO:.*]] = llvm.getelementptr inbounds %[[P]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:  llvm.store %[[X]], %[[TO]] : f32, !llvm.ptr
// CHECK:       llvm.store {{.*}} : vector<8xi4>, !llvm.ptr
// CHECK-NEXT:  gpu.barrier
// CHECK:       %[[FROM:.*]] = llvm.getelementptr inbounds %[[P]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:  llvm.load %[[FROM]] : !llvm.ptr -> f32

// -----

// Writes to tensors that nothing reads are no stores: the last one goes, and then the one that only it read.
func.func @dead_writes(%t: tensor<8xf32>, %i: index, %x: f32) -> f32 {
  %0 = tensor.insert %x into %t[%i] : tensor<8xf32>
  %1 = tensor.insert %x into %0[%i] : tensor<8xf32>
  return %x : f32
}
// CHECK-LABEL: func.func @dead_writes
// CHECK-NOT:     llvm.store
// CHECK:         return %x

// -----

// Accesses inside other ops with regions.
func.func @switch(%t: tensor<8xf32>, %i: index, %x: f32) -> f32 {
  %y = scf.index_switch %i -> f32
  case 0 {
    %z = tensor.extract %t[%i] : tensor<8xf32>
    scf.yield %z : f32
  }
  default {
    scf.yield %x : f32
  }
  return %y : f32
}
// CHECK-LABEL: @switch(%{{[a-z]*}}: !llvm.ptr,
// CHECK:       scf.index_switch
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK-NOT:   tensor.extract

// -----

// The name of a global is one that the module does not have.
func.func @global_cst_0(%i: index) -> i32 {
  %t = arith.constant dense<[1, 2]> : tensor<2xi32>
  %x = tensor.extract %t[%i] : tensor<2xi32>
  return %x : i32
}
// CHECK:       llvm.mlir.global private constant @global_cst_1(dense<[1, 2]> : tensor<2xi32>)
// CHECK-LABEL: @global_cst_0(

// -----

// A constant that a call takes is a global even if all of its elements are equal.
func.func private @g(%t: tensor<2xi32>, %i: index) -> i32 {
  %x = tensor.extract %t[%i] : tensor<2xi32>
  return %x : i32
}
func.func @f(%i: index) -> i32 {
  %t = arith.constant dense<7> : tensor<2xi32>
  %x = func.call @g(%t, %i) : (tensor<2xi32>, index) -> i32
  return %x : i32
}
// CHECK:       llvm.mlir.global private constant @global_cst_0(dense<7> : tensor<2xi32>)
// CHECK-LABEL: @f(
// CHECK:       %[[T:.*]] = llvm.mlir.addressof @global_cst_0 : !llvm.ptr
// CHECK-NEXT:  call @g(%[[T]], %{{.*}}) : (!llvm.ptr, index) -> i32
