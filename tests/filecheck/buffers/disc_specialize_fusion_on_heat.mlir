// RUN: xla-emitters-opt --split-input-file -p disc-specialize-fusion-on-heat %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-specialize-fusion-on-heat --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The fusion runs where nothing was compiled for these sizes. What is inside of it (%t) is no array of the question.
func.func @main(%x: memref<?xf32, "gpu"> {disc.sizes = ["n"]}, %n: index) -> memref<?xf32, "gpu"> {
  %t = memref.alloc(%n) {disc.sizes = ["n"]} : memref<?xf32, "gpu">
  %y = memref.alloc(%n) {disc.sizes = ["n"]} : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.negate %t -> %y {name = "y"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  memref.dealloc %t : memref<?xf32, "gpu">
  return %y : memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[RAN:.*]] = "lmhlo.run_hot"(%x, %y) <{fusion = "f", operandSegmentSizes = array<i32: 1, 1, 0>}>
// CHECK-NEXT:    scf.if %[[RAN]] {
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
// CHECK-NEXT:        lmhlo.abs %x -> %t
// CHECK-NEXT:        lmhlo.negate %t -> %y

// -----

// A size of %t that no array outside has, and the elements of a list that is no shape, are numbers; a list that is the shape of %b is not.
func.func @main(%x: memref<?xf32, "gpu"> {disc.sizes = ["n"]}, %n: index, %m: index, %shape: memref<1xi64, "cpu">, %low: memref<1xi64, "cpu">) -> memref<?xf32, "gpu"> {
  %c = memref.alloc() : memref<f32, "gpu">
  %t = memref.alloc(%m) {disc.sizes = ["m"]} : memref<?xf32, "gpu">
  %b = memref.alloc(%n) {disc.sizes = ["n"]} : memref<?xf32, "gpu">
  %y = memref.alloc(%n) {disc.sizes = ["n"]} : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.constant -> %c {name = "c", value = dense<1.0> : tensor<f32>} : () -> memref<f32, "gpu">
    lmhlo.dynamic_pad %x, %c, %low, %low, %low -> %t {name = "t"} : (memref<?xf32, "gpu">, memref<f32, "gpu">, memref<1xi64, "cpu">, memref<1xi64, "cpu">, memref<1xi64, "cpu">) -> memref<?xf32, "gpu">
    lmhlo.dynamic_broadcast_in_dim %c, %shape -> %b {dimensions = array<i64>, name = "b"} : (memref<f32, "gpu">, memref<1xi64, "cpu">) -> memref<?xf32, "gpu">
    lmhlo.real_dynamic_slice %t, %low, %low, %low -> %y {name = "y"} : (memref<?xf32, "gpu">, memref<1xi64, "cpu">, memref<1xi64, "cpu">, memref<1xi64, "cpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y : memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[LOW:.*]] = memref.load %low[%[[ZERO]]] : memref<1xi64, "cpu">
// CHECK:         "lmhlo.run_hot"(%x, %y, %m, %[[LOW]]) <{fusion = "f", operandSegmentSizes = array<i32: 1, 1, 2>}>

// -----

// What the first fusion writes is an argument: the caller may have passed it twice. The second reads a float of the host.
func.func @main(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %s: memref<f32, "cpu">, %n: index) -> (memref<?xf32, "gpu">, memref<1xf32, "gpu">) {
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.abs %x -> %y {name = "y"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  %z = memref.alloc() : memref<1xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "g", kind = "kLoop"}> ({
    lmhlo.reshape %s -> %z {name = "z"} : (memref<f32, "cpu">) -> memref<1xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y, %z : memref<?xf32, "gpu">, memref<1xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     run_hot
// CHECK-NOT:     scf.if
// REMARK: skipped lmhlo.fusion: it writes into memory that it did not get for itself
// REMARK: skipped lmhlo.fusion: it reads a number of the host that is not an integer
