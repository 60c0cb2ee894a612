// RUN: xla-emitters-opt -p xla-convert-math-to-libdevice --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-convert-math-to-libdevice --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// bf16 goes through f32; the function is declared once.
func.func @gelu(%x: bf16) -> bf16 {
  %0 = math.tanh %x : bf16
  %1 = math.tanh %0 : bf16
  func.return %1 : bf16
}
// CHECK:         func.func private @__nv_tanhf(f32) -> f32
// CHECK-NOT:     func.func private
// CHECK-LABEL: func.func @gelu
// CHECK-SAME:    %[[X:.*]]: bf16
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK-NEXT:    %[[CALLED:.*]] = call @__nv_tanhf(%[[WIDE]]) : (f32) -> f32
// CHECK-NEXT:    %[[Y:.*]] = arith.truncf %[[CALLED]] : f32 to bf16
// CHECK-NEXT:    arith.extf %[[Y]]

// -----

// f64 has its own functions; two operands; an integer power.
func.func @wide(%x: f64, %y: f64, %z: f32, %n: i32) {
  %0 = math.atan2 %x, %y : f64
  %1 = math.powf %z, %z : f32
  %2 = math.fpowi %z, %n : f32, i32
  func.return
}
// CHECK-LABEL: func.func @wide
// CHECK-NEXT:    call @__nv_atan2(%{{.*}}, %{{.*}}) : (f64, f64) -> f64
// CHECK-NEXT:    call @__nv_powf(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
// CHECK-NEXT:    call @__nv_powif(%{{.*}}, %{{.*}}) : (f32, i32) -> f32

// -----

// afn: the fast variant where there is one.
func.func @fast(%x: bf16, %y: f32) {
  %0 = math.exp %x fastmath<afn> : bf16
  %1 = math.log %y fastmath<afn> : f32
  %2 = math.tanh %y fastmath<afn> : f32
  %3 = math.exp %y : f32
  func.return
}
// CHECK-LABEL: func.func @fast
// CHECK:         call @__nv_fast_expf
// CHECK:         call @__nv_fast_logf
// CHECK:         call @__nv_tanhf
// CHECK:         call @__nv_expf

// -----

// What LLVM does by itself stays.
func.func @intrinsics(%x: f32) {
  %0 = math.absf %x : f32
  %1 = math.trunc %x : f32
  %2 = math.fma %x, %x, %x : f32
  %3 = math.floor %x : f32
  %4 = math.roundeven %x : f32
  %5 = math.copysign %x, %x : f32
  func.return
}
// CHECK-LABEL: func.func @intrinsics
// CHECK-NOT:     call
// CHECK:         return

// -----

// libdevice's are shorter than LLVM's: sqrt.approx.f32 for a correctly rounded root, an addition towards zero for compares and selects.
func.func @shorter(%x: f32, %y: f64, %z: bf16) {
  %0 = math.sqrt %x : f32
  %1 = math.sqrt %y : f64
  %2 = math.round %x : f32
  %3 = math.round %z : bf16
  func.return
}
// CHECK-LABEL: func.func @shorter
// CHECK-NEXT:    call @__nv_sqrtf(%{{.*}}) : (f32) -> f32
// CHECK-NEXT:    call @__nv_sqrt(%{{.*}}) : (f64) -> f64
// CHECK-NEXT:    call @__nv_roundf(%{{.*}}) : (f32) -> f32
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    call @__nv_roundf(%{{.*}}) : (f32) -> f32
// CHECK-NEXT:    arith.truncf

// -----

// A function that the module declares is not declared again; vectors stay.
func.func private @__nv_tanhf(f32) -> f32
func.func @declared(%x: f32, %v: vector<4xf32>) -> (f32, vector<4xf32>) {
  %y = math.tanh %x : f32
  %w = math.tanh %v : vector<4xf32>
  func.return %y, %w : f32, vector<4xf32>
}
// CHECK:       func.func private @__nv_tanhf(f32) -> f32
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @declared
// CHECK-NEXT:    call @__nv_tanhf(%x) : (f32) -> f32
// CHECK-NEXT:    math.tanh %v : vector<4xf32>
// REMARK:        skipped math.tanh: libdevice has no function on vector<4xf32>
