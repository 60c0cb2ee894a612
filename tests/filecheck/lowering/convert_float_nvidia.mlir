// RUN: xla-emitters-opt -p xla-gpu-convert-float-nvidia --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p "xla-gpu-convert-float-nvidia{device=a100}" --split-input-file %s | filecheck %s --check-prefix OLD
// RUN: xla-emitters-opt -p "xla-gpu-convert-float-nvidia{compute_capability_major=9 ptx_version_major=7 ptx_version_minor=7}" --split-input-file %s | filecheck %s --check-prefix OLD
// RUN: xla-emitters-opt -p "xla-gpu-convert-float-nvidia{compute_capability_major=8 compute_capability_minor=9 ptx_version_major=8 ptx_version_minor=1}" --split-input-file %s | filecheck %s

// The instruction gives 448 for what is larger: above 464, where the nearest number would be 480, NaN is put there instead.
func.func @round(%x: f32) -> f8E4M3FN {
  %y = arith.truncf %x : f32 to f8E4M3FN
  func.return %y : f8E4M3FN
}
// CHECK-LABEL: func.func @round(
// CHECK-SAME:    %[[X:.*]]: f32
// CHECK-NEXT:    %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%[[X]], %[[X]]) : (f32, f32) -> i16
// CHECK-NEXT:    %[[CODE:.*]] = arith.trunci %[[PAIR]] : i16 to i8
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK-NEXT:    %[[MASK:.*]] = arith.constant 2147483647 : i32
// CHECK-NEXT:    %[[SIZE:.*]] = arith.andi %[[BITS]], %[[MASK]] : i32
// CHECK-NEXT:    %[[TIE:.*]] = arith.constant 1139277824 : i32
// CHECK-NEXT:    %[[BEYOND:.*]] = arith.cmpi ugt, %[[SIZE]], %[[TIE]] : i32
// CHECK:         arith.constant 2139095040 : i32
// CHECK:         %[[SPECIAL:.*]] = arith.ori %{{.*}}, %{{.*}} : i8
// CHECK:         %[[RESULT:.*]] = arith.select %{{.*}}, %[[SPECIAL]], %[[CODE]] : i8
// CHECK-NEXT:    arith.bitcast %[[RESULT]] : i8 to f8E4M3FN
// OLD-LABEL:   func.func @round(
// OLD-NEXT:      arith.truncf

// -----

func.func @widen(%x: f8E5M2) -> f32 {
  %y = arith.extf %x : f8E5M2 to f32
  func.return %y : f32
}
// CHECK-LABEL: func.func @widen(
// CHECK-NEXT:    %[[CODE:.*]] = arith.bitcast %{{.*}} : f8E5M2 to i8
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extui %[[CODE]] : i8 to i16
// CHECK-NEXT:    %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"(%[[WIDE]]) : (i16) -> vector<2xf16>
// CHECK-NEXT:    %[[HALF:.*]] = vector.extract %[[PAIR]][0] : f16 from vector<2xf16>
// CHECK-NEXT:    arith.extf %[[HALF]] : f16 to f32
// OLD-LABEL:   func.func @widen(
// OLD-NEXT:      arith.extf
