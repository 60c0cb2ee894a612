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
