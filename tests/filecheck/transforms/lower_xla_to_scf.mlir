// RUN: xla-emitters-opt -p xla-lower-xla-to-scf %s | filecheck %s
// RUN: xla-emitters-opt -p 'xla-lower-xla-to-scf{warp_size=64}' %s | filecheck %s --check-prefix WIDE

// CHECK-LABEL: func.func @insert
// CHECK:         %[[T:.*]] = scf.if %arg2 -> (tensor<2x3xf32>) {
// CHECK-NEXT:      %[[N:.*]] = tensor.insert %arg0 into %arg1[%arg3, %arg4] : tensor<2x3xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %arg1
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[T]]
func.func @insert(%arg0: f32, %arg1: tensor<2x3xf32>, %arg2: i1, %arg3: index, %arg4: index) -> tensor<2x3xf32> {
  %0 = xla_gpu.predicated_insert %arg0 into %arg1[%arg3, %arg4] if %arg2 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @extract
// CHECK:         %[[V:.*]] = scf.if %arg2 -> (f32) {
// CHECK-NEXT:      %[[N:.*]] = tensor.extract %arg1[%arg3] : tensor<3xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %arg0
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[V]]
func.func @extract(%arg0: f32, %arg1: tensor<3xf32>, %arg2: i1, %arg3: index) -> f32 {
  %0 = xla_gpu.predicated_extract %arg1[%arg3] if %arg2 else %arg0 : tensor<3xf32>
  return %0 : f32
}

func.func private @both(f32, i32, f32, i32) -> (f32, i32)
func.func private @f64(f64, f64) -> f64
func.func private @bf16(bf16, bf16) -> bf16
func.func private @i8(i8, i8) -> i8
func.func private @c64(complex<f32>, complex<f32>) -> complex<f32>
func.func private @i40(i40, i40) -> i40

// CHECK-LABEL: func.func @several
// CHECK-DAG:     %[[W:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         %[[A:.*]]:2 = gpu.shuffle down %arg0, %[[TWO]], %[[W]] : f32
// CHECK-NEXT:    %[[B:.*]]:2 = gpu.shuffle down %arg1, %[[TWO]], %[[W]] : i32
// CHECK-NEXT:    %[[P:.*]]:2 = xla_gpu.pure_call @both(%arg0, %arg1, %[[A]]#0, %[[B]]#0) : (f32, i32, f32, i32) -> (f32, i32)
// CHECK-NEXT:    %[[C:.*]]:2 = gpu.shuffle down %[[P]]#0, %[[ONE]], %[[W]] : f32
// CHECK-NEXT:    %[[D:.*]]:2 = gpu.shuffle down %[[P]]#1, %[[ONE]], %[[W]] : i32
// CHECK-NEXT:    %[[Q:.*]]:2 = xla_gpu.pure_call @both(%[[P]]#0, %[[P]]#1, %[[C]]#0, %[[D]]#0)
// CHECK-NEXT:    return %[[Q]]#0, %[[Q]]#1
// WIDE-LABEL:  func.func @several
// WIDE:          arith.constant 64 : i32
func.func @several(%arg0: f32, %arg1: i32) -> (f32, i32) {
  %0:2 = xla_gpu.shuffle_reduce(%arg0, %arg1) to 2 combiner=@both : f32, i32
  return %0#0, %0#1 : f32, i32
}

// Two words.
// CHECK-LABEL: func.func @double
// CHECK:         %[[I:.*]] = arith.bitcast %arg0 : f64 to i64
// CHECK-NEXT:    %[[L:.*]] = vector.from_elements %[[I]] : vector<1xi64>
// CHECK-NEXT:    %[[V:.*]] = vector.bitcast %[[L]] : vector<1xi64> to vector<2xi32>
// CHECK-NEXT:    %[[LO:.*]] = vector.extract %[[V]][0] : i32 from vector<2xi32>
// CHECK-NEXT:    %[[HI:.*]] = vector.extract %[[V]][1] : i32 from vector<2xi32>
// CHECK-NEXT:    %[[SLO:.*]]:2 = gpu.shuffle down %[[LO]], %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[SHI:.*]]:2 = gpu.shuffle down %[[HI]], %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[T:.*]] = vector.from_elements %[[SLO]]#0, %[[SHI]]#0 : vector<2xi32>
// CHECK-NEXT:    %[[B:.*]] = vector.bitcast %[[T]] : vector<2xi32> to vector<1xi64>
// CHECK-NEXT:    %[[E:.*]] = vector.extract %[[B]][0] : i64 from vector<1xi64>
// CHECK-NEXT:    %[[F:.*]] = arith.bitcast %[[E]] : i64 to f64
// CHECK-NEXT:    xla_gpu.pure_call @f64(%arg0, %[[F]])
func.func @double(%arg0: f64) -> f64 {
  %0 = xla_gpu.shuffle_reduce(%arg0) to 1 combiner=@f64 : f64
  return %0 : f64
}

// Less than a word.
// CHECK-LABEL: func.func @half
// CHECK:         %[[I:.*]] = arith.bitcast %arg0 : bf16 to i16
// CHECK-NEXT:    %[[W:.*]] = arith.extui %[[I]] : i16 to i32
// CHECK-NEXT:    %[[S:.*]]:2 = gpu.shuffle down %[[W]]
// CHECK-NEXT:    %[[T:.*]] = arith.trunci %[[S]]#0 : i32 to i16
// CHECK-NEXT:    %[[F:.*]] = arith.bitcast %[[T]] : i16 to bf16
// CHECK-NEXT:    xla_gpu.pure_call @bf16(%arg0, %[[F]])
func.func @half(%arg0: bf16) -> bf16 {
  %0 = xla_gpu.shuffle_reduce(%arg0) to 1 combiner=@bf16 : bf16
  return %0 : bf16
}

// CHECK-LABEL: func.func @byte
// CHECK:         %[[W:.*]] = arith.extui %arg0 : i8 to i32
// CHECK-NEXT:    %[[S:.*]]:2 = gpu.shuffle down %[[W]]
// CHECK-NEXT:    arith.trunci %[[S]]#0 : i32 to i8
func.func @byte(%arg0: i8) -> i8 {
  %0 = xla_gpu.shuffle_reduce(%arg0) to 1 combiner=@i8 : i8
  return %0 : i8
}

// Between one word and two.
// CHECK-LABEL: func.func @odd
// CHECK:         %[[W:.*]] = arith.extui %arg0 : i40 to i64
// CHECK-NEXT:    vector.from_elements %[[W]] : vector<1xi64>
// CHECK:         %[[E:.*]] = vector.extract %{{.*}}[0] : i64 from vector<1xi64>
// CHECK-NEXT:    arith.trunci %[[E]] : i64 to i40
func.func @odd(%arg0: i40) -> i40 {
  %0 = xla_gpu.shuffle_reduce(%arg0) to 1 combiner=@i40 : i40
  return %0 : i40
}

// CHECK-LABEL: func.func @complex
// CHECK:         %[[R:.*]] = complex.re %arg0 : complex<f32>
// CHECK-NEXT:    %[[I:.*]] = complex.im %arg0 : complex<f32>
// CHECK-NEXT:    %[[SR:.*]]:2 = gpu.shuffle down %[[R]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    %[[SI:.*]]:2 = gpu.shuffle down %[[I]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    %[[C:.*]] = complex.create %[[SR]]#0, %[[SI]]#0 : complex<f32>
// CHECK-NEXT:    xla_gpu.pure_call @c64(%arg0, %[[C]])
func.func @complex(%arg0: complex<f32>) -> complex<f32> {
  %0 = xla_gpu.shuffle_reduce(%arg0) to 1 combiner=@c64 : complex<f32>
  return %0 : complex<f32>
}

// Nothing of these: left alone.
// CHECK-LABEL: func.func @others
// CHECK-NEXT:    tensor.extract
// CHECK-NEXT:    xla_gpu.pure_call @f64
func.func @others(%arg0: tensor<3xf64>, %arg1: index) -> f64 {
  %0 = tensor.extract %arg0[%arg1] : tensor<3xf64>
  %1 = xla_gpu.pure_call @f64(%0, %0) : (f64, f64) -> f64
  return %1 : f64
}

// -----

// No distance, no step.
// CHECK-LABEL: func.func @no_step
// CHECK-NOT:     gpu.shuffle
// CHECK:         return %a
func.func @no_step(%a: f32) -> f32 {
  %0 = xla_gpu.shuffle_reduce(%a) to 0 combiner=@f : f32
  return %0 : f32
}
func.func private @f(%a: f32, %b: f32) -> f32 {
  return %a : f32
}
