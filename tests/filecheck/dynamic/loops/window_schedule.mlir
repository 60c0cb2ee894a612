// RUN: xla-emitters-opt -p "disc-lhlo-legalize-to-loop{target=cpu}" %s | filecheck %s
// A window as large as the array, of which all but the last place is padding before it: each row is one pass, which has blocks, and the
// loop of single windows has none. A window of three elements has that loop alone.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<4x9xf32, "gpu">, %zero: memref<f32, "gpu">) -> (memref<4x9xf32, "gpu">, memref<4x7xf32, "gpu">) {
  %y = memref.alloc() : memref<4x9xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kSingleOp", fusion_name = "f"}> ({
    lmhlo.reduce_window %x, %zero -> %y {name = "y", to_apply = @add, window = #hlo.window<size = [1, 9], pad = [0, 0, 8, 0]>} : (memref<4x9xf32, "gpu">, memref<f32, "gpu">) -> memref<4x9xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  %z = memref.alloc() : memref<4x7xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kSingleOp", fusion_name = "g"}> ({
    lmhlo.reduce_window %x, %zero -> %z {name = "z", to_apply = @add, window = #hlo.window<size = [1, 3]>} : (memref<4x9xf32, "gpu">, memref<f32, "gpu">) -> memref<4x7xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %y, %z : memref<4x9xf32, "gpu">, memref<4x7xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[PREFIX:.*]] = arith.select %[[IS:.*]], %{{.*}}, %{{.*}} : index
// CHECK:         "lmhlo.fusion"() <{kind = "kSingleOp", fusion_name = "f"}> ({
// CHECK-NEXT:      scf.parallel (%[[ROW:.*]]) = (%{{.*}}) to (%[[PREFIX]])
// CHECK:             %[[INIT:.*]] = memref.load %zero[]
// CHECK:             scf.for %[[I:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[INIT]]) -> (f32) {
// CHECK-NEXT:          %[[E:.*]] = memref.load %x[%[[ROW]], %[[I]]]
// CHECK-NEXT:          %[[S:.*]] = arith.addf %[[A]], %[[E]] : f32
// CHECK-NEXT:          memref.store %[[S]], %y[%[[ROW]], %[[I]]]
// CHECK:         "lmhlo.fusion"() <{kind = "kSingleOp", fusion_name = "g"}> ({
// CHECK-NEXT:      scf.parallel
// CHECK-NOT:       scf.parallel
// CHECK:           memref.store %{{.*}}, %z
// CHECK:         return
