// RUN: xla-emitters-opt --split-input-file -p disc-convert-const-to-ral %s | filecheck %s

// The seed's constant, [0, 1] of i32, under the seed's name. Nothing frees it; equal ones are one entry; a splat is one element.
func.func @main(%ctx: !disc_ral.context) {
  %a = memref.alloc() : memref<2xi32, "cpu">
  lmhlo.constant -> %a {name = "a", value = dense<[0, 1]> : tensor<2xi32>} : () -> memref<2xi32, "cpu">
  %b = memref.alloc() : memref<2xi32, "gpu">
  lmhlo.constant -> %b {name = "b", value = dense<[0, 1]> : tensor<2xi32>} : () -> memref<2xi32, "gpu">
  %c = memref.alloc() : memref<64xf32, "gpu">
  lmhlo.constant -> %c {name = "c", value = dense<2.0> : tensor<64xf32>} : () -> memref<64xf32, "gpu">
  memref.dealloc %a : memref<2xi32, "cpu">
  memref.dealloc %b : memref<2xi32, "gpu">
  memref.dealloc %c : memref<64xf32, "gpu">
  return
}
// CHECK:      attributes {disc.constants = {"40F7E71261729523BBE798C4347EEA1B_i32_2" = dense<[0, 1]> : tensor<2xi32>, {{"?[0-9A-F]*}}_f32_64{{"?}} = dense<2.000000e+00> : tensor<1xf32>}}
// CHECK:        %stream = disc_ral.stream %ctx
// CHECK-NEXT:   %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:   %a = disc_ral.dispatch "ral_const" on "cpu"(%ctx, %stream, %[[ZERO]]) config "40F7E71261729523BBE798C4347EEA1B_i32_2" : (!disc_ral.context, !disc_ral.stream, index) -> memref<2xi32, "cpu">
// CHECK-NEXT:   %[[SAME:.*]] = arith.constant 0 : index
// CHECK-NEXT:   %b = disc_ral.dispatch "ral_const" on "gpu"(%ctx, %stream, %[[SAME]]) config "40F7E71261729523BBE798C4347EEA1B_i32_2"
// CHECK-NEXT:   %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:   %c = disc_ral.dispatch "ral_const" on "gpu"(%ctx, %stream, %[[ONE]]) config "{{.*}}_f32_64"
// CHECK-NEXT:   return

// -----

// A constant that becomes a result is copied: the caller's buffer must be its own.
func.func @main(%ctx: !disc_ral.context) {
  %a = memref.alloc() : memref<i1, "gpu">
  lmhlo.constant -> %a {name = "a", value = dense<true> : tensor<i1>} : () -> memref<i1, "gpu">
  disc_ral.send_output %ctx, 0, %a : memref<i1, "gpu">
  return
}
// CHECK:      %a = memref.alloc()
// CHECK:      %[[HELD:.*]] = disc_ral.dispatch "ral_const" on "gpu"(%ctx, %stream, %{{.*}}) config "{{[0-9A-F]*}}_i8"
// CHECK-NEXT: disc_ral.dispatch "d2d" on "gpu"(%ctx, %stream, %[[HELD]], %a)
// CHECK-NEXT: disc_ral.send_output %ctx, 0, %a
