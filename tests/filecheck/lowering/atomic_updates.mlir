// RUN: xla-emitters-opt --split-input-file -p xla-lower-tensors %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p 'xla-lower-tensors{device="a100"}' %s | filecheck %s --check-prefix A100

// One instruction adds; the index is that of any access.
func.func @add(%t: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> {
  ^bb0(%old: f32):
    %n = arith.addf %old, %x : f32
    xla_gpu.yield %n : f32
  }
  return %r : tensor<8xf32>
}
// CHECK-LABEL: func.func @add(%t: !llvm.ptr
// CHECK:         %[[AT:.*]] = llvm.getelementptr inbounds %t[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    llvm.atomicrmw fadd %[[AT]], %x monotonic : !llvm.ptr, f32
// CHECK-NEXT:    return

// -----

// bf16 is added by one instruction from sm_90 on; before, the word that it is in is compared and swapped.
func.func @add_bf16(%t: tensor<8xbf16>, %i: index, %x: bf16) -> tensor<8xbf16> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xbf16> {
  ^bb0(%old: bf16):
    %n = arith.addf %x, %old : bf16
    xla_gpu.yield %n : bf16
  }
  return %r : tensor<8xbf16>
}
// CHECK-LABEL: func.func @add_bf16
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %x monotonic : !llvm.ptr, bf16
// A100-LABEL:  func.func @add_bf16
// A100:          %[[NUMBER:.*]] = llvm.ptrtoint %[[AT:.*]] : !llvm.ptr to i64
// A100:          %[[BEHIND:.*]] = arith.andi %[[NUMBER]], %{{.*}} : i64
// A100:          %[[WORD:.*]] = llvm.getelementptr %[[AT]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// A100:          %[[SHIFT:.*]] = arith.shli
// A100:          %[[FIRST:.*]] = llvm.load %[[WORD]] atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32
// A100:          scf.while (%[[OLD:.*]] = %[[FIRST]]) : (i32) -> i32 {
// A100:            %[[LOW:.*]] = arith.shrui %[[OLD]], %[[SHIFT]]
// A100:            %[[PART:.*]] = arith.trunci %[[LOW]] : i32 to i16
// A100:            %[[CURRENT:.*]] = arith.bitcast %[[PART]] : i16 to bf16
// A100:            %[[NEW:.*]] = arith.addf %x, %[[CURRENT]]
// A100:            arith.bitcast %[[NEW]] : bf16 to i16
// A100:            %[[PAIR:.*]] = llvm.cmpxchg %[[WORD]], %[[OLD]], %{{.*}} monotonic monotonic : !llvm.ptr, i32
// A100:            %[[SEEN:.*]] = llvm.extractvalue %[[PAIR]][0]
// A100:            llvm.extractvalue %[[PAIR]][1]
// A100:            scf.condition(%{{.*}}) %[[SEEN]] : i32
// A100:          } do {

// -----

// Widened, added and rounded once is what the instruction does.
func.func @widened(%t: tensor<8xf16>, %i: index, %x: f16) -> tensor<8xf16> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xf16> {
  ^bb0(%old: f16):
    %a = arith.extf %old : f16 to f32
    %b = arith.extf %x : f16 to f32
    %s = arith.addf %a, %b : f32
    %n = arith.truncf %s : f32 to f16
    xla_gpu.yield %n : f16
  }
  return %r : tensor<8xf16>
}
// CHECK-LABEL: func.func @widened
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %x monotonic : !llvm.ptr, f16

// -----

// What takes the place of the old element is stored, whole.
func.func @replace(%t: tensor<8xi16>, %i: index, %x: i16) -> tensor<8xi16> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xi16> {
  ^bb0(%old: i16):
    xla_gpu.yield %x : i16
  }
  return %r : tensor<8xi16>
}
// CHECK-LABEL: func.func @replace
// CHECK:         llvm.store %x, %{{.*}} atomic unordered {alignment = 2 : i64} : i16, !llvm.ptr
// CHECK-NEXT:    return

// -----

// As integers, those above zero are in order, those below in the opposite one. The NaN that stays is above all for maximum.
func.func @greatest(%t: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> {
  ^bb0(%old: f32):
    %n = arith.maximumf %old, %x : f32
    xla_gpu.yield %n : f32
  }
  return %r : tensor<8xf32>
}
// CHECK-LABEL: func.func @greatest
// CHECK:         %[[OLD:.*]] = llvm.load %[[AT:.*]] atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK:         arith.constant 2143289344 : i32
// CHECK:         arith.cmpf uno, %x, %x
// CHECK:         %[[VALUE:.*]] = arith.select
// CHECK:         arith.cmpf ord, %[[OLD]], %[[OLD]]
// CHECK:         arith.cmpf ult, %[[OLD]], %[[VALUE]]
// CHECK:         scf.if
// CHECK:           %[[BITS:.*]] = arith.bitcast %[[VALUE]] : f32 to i32
// CHECK:           arith.cmpi sge, %[[BITS]]
// CHECK:             llvm.atomicrmw max %[[AT]], %[[BITS]] monotonic : !llvm.ptr, i32
// CHECK:           } else {
// CHECK:             llvm.atomicrmw umin %[[AT]], %[[BITS]] monotonic : !llvm.ptr, i32

// -----

// The parts of a sum of complex numbers are sums of their own.
func.func @complex_sum(%t: tensor<8xcomplex<f64>>, %i: index, %x: complex<f64>) -> tensor<8xcomplex<f64>> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xcomplex<f64>> {
  ^bb0(%old: complex<f64>):
    %n = complex.add %old, %x : complex<f64>
    xla_gpu.yield %n : complex<f64>
  }
  return %r : tensor<8xcomplex<f64>>
}
// CHECK-LABEL: func.func @complex_sum
// CHECK:         %[[REAL:.*]] = complex.re %x
// CHECK:         llvm.atomicrmw fadd %[[AT:.*]], %[[REAL]] monotonic : !llvm.ptr, f64
// CHECK:         %[[NEXT:.*]] = llvm.getelementptr inbounds %[[AT]][1] : (!llvm.ptr) -> !llvm.ptr, f64
// CHECK:         llvm.atomicrmw fadd %[[NEXT]], %{{.*}} monotonic : !llvm.ptr, f64

// -----

// What does not need the old element is computed once, not each time that the word has changed.
func.func @once(%t: tensor<8xi64>, %i: index, %x: i64) -> tensor<8xi64> {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<8xi64> {
  ^bb0(%old: i64):
    %square = arith.muli %x, %x : i64
    %n = arith.muli %old, %square : i64
    xla_gpu.yield %n : i64
  }
  return %r : tensor<8xi64>
}
// CHECK-LABEL: func.func @once
// CHECK:         %[[SQUARE:.*]] = arith.muli %x, %x
// CHECK:         scf.while
// CHECK-NEXT:      arith.muli %{{.*}}, %[[SQUARE]]
// CHECK-NEXT:      llvm.cmpxchg

// -----

// Two and four neighbouring f32 of an aligned argument are added by one instruction from sm_90 on; before, each by itself.
#fours = #xla_gpu.indexing_map<"(i) -> (i * 4), domain: i in [0, 15]">
func.func @add_vector(%t: tensor<64xf32> {llvm.align = 16 : index}, %i: index, %x: vector<4xf32>) -> tensor<64xf32> {
  %at = xla_gpu.apply_indexing #fours(%i)
  %r = xla_gpu.atomic_rmw %t[%at] : tensor<64xf32> {
  ^bb0(%old: vector<4xf32>):
    %n = arith.addf %old, %x : vector<4xf32>
    xla_gpu.yield %n : vector<4xf32>
  }
  return %r : tensor<64xf32>
}
// CHECK-LABEL: func.func @add_vector
// CHECK:         %[[AT:.*]] = llvm.getelementptr inbounds %t[
// CHECK-NEXT:    %[[A:.*]] = vector.extract %x[0]
// CHECK-NEXT:    %[[B:.*]] = vector.extract %x[1]
// CHECK-NEXT:    %[[C:.*]] = vector.extract %x[2]
// CHECK-NEXT:    %[[D:.*]] = vector.extract %x[3]
// CHECK-NEXT:    llvm.inline_asm has_side_effects "atom.global.v4.f32.add {$0, $1, $2, $3}, [$4], {$5, $6, $7, $8};", "=f,=f,=f,=f,l,f,f,f,f" %[[AT]], %[[A]], %[[B]], %[[C]], %[[D]] : (!llvm.ptr, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK-NEXT:    return
// A100-LABEL:  func.func @add_vector
// A100-COUNT-4:  llvm.atomicrmw fadd %{{.*}}, %{{.*}} monotonic : !llvm.ptr, f32
// A100-NEXT:     return

// -----

// A pair that may lie across a boundary of 8 bytes, and integers: each element by itself.
func.func @each(%t: tensor<64xf32> {llvm.align = 16 : index}, %u: tensor<64xi32>, %i: index, %x: vector<2xf32>, %y: vector<2xi32>)
    -> (tensor<64xf32>, tensor<64xi32>) {
  %r = xla_gpu.atomic_rmw %t[%i] : tensor<64xf32> {
  ^bb0(%old: vector<2xf32>):
    %n = arith.addf %x, %old : vector<2xf32>
    xla_gpu.yield %n : vector<2xf32>
  }
  %s = xla_gpu.atomic_rmw %u[%i] : tensor<64xi32> {
  ^bb0(%old: vector<2xi32>):
    %n = arith.maxsi %old, %y : vector<2xi32>
    xla_gpu.yield %n : vector<2xi32>
  }
  return %r, %s : tensor<64xf32>, tensor<64xi32>
}
// CHECK-LABEL: func.func @each
// CHECK:         %[[AT:.*]] = llvm.getelementptr inbounds %t[
// CHECK:         %[[SECOND:.*]] = vector.extract %x[1]
// CHECK-NEXT:    %[[P:.*]] = llvm.getelementptr inbounds %[[AT]][0]
// CHECK-NEXT:    llvm.atomicrmw fadd %[[P]], %{{.*}} monotonic : !llvm.ptr, f32
// CHECK-NEXT:    %[[Q:.*]] = llvm.getelementptr inbounds %[[AT]][1] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:    llvm.atomicrmw fadd %[[Q]], %[[SECOND]] monotonic : !llvm.ptr, f32
// CHECK-COUNT-2: llvm.atomicrmw max %{{.*}}, %{{.*}} monotonic : !llvm.ptr, i32

// -----

// Integers of all four widths that memory has are added by one instruction; LLVM makes a loop of those that the chip lacks.
func.func @add_integers(%a: tensor<8xi8>, %b: tensor<8xi16>, %c: tensor<8xi64>, %i: index, %x: i8, %y: i16, %z: i64)
    -> (tensor<8xi8>, tensor<8xi16>, tensor<8xi64>) {
  %r = xla_gpu.atomic_rmw %a[%i] : tensor<8xi8> {
  ^bb0(%old: i8):
    %n = arith.addi %old, %x : i8
    xla_gpu.yield %n : i8
  }
  %s = xla_gpu.atomic_rmw %b[%i] : tensor<8xi16> {
  ^bb0(%old: i16):
    %n = arith.addi %old, %y : i16
    xla_gpu.yield %n : i16
  }
  %t = xla_gpu.atomic_rmw %c[%i] : tensor<8xi64> {
  ^bb0(%old: i64):
    %n = arith.addi %old, %z : i64
    xla_gpu.yield %n : i64
  }
  return %r, %s, %t : tensor<8xi8>, tensor<8xi16>, tensor<8xi64>
}
// CHECK-LABEL: func.func @add_integers
// CHECK:         llvm.atomicrmw add %{{.*}}, %x monotonic : !llvm.ptr, i8
// CHECK:         llvm.atomicrmw add %{{.*}}, %y monotonic : !llvm.ptr, i16
// CHECK:         llvm.atomicrmw add %{{.*}}, %z monotonic : !llvm.ptr, i64
