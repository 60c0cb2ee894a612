// RUN: xla-emitters-opt -p "disc-lhlo-legalize-to-loop{target=cpu}" %s | filecheck %s
// A sort of rows: copied to the result, then runs are merged to a second buffer and back, four times as wide each round.
hlo.computation @before {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.compare %a, %b {name = "r", direction = "LT", type = "FLOAT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  hlo.return %r : tensor<i1>
}
func.func @main(%x: memref<3x50xf32, "gpu">) -> memref<3x50xf32, "gpu"> {
  %y = memref.alloc() : memref<3x50xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kSingleOp", fusion_name = "f"}> ({
    lmhlo.sort %x -> %y {name = "y", dimensions = array<i64: 1>, is_stable = true, to_apply = @before} : (memref<3x50xf32, "gpu">) -> memref<3x50xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %y : memref<3x50xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %runs = memref.alloc() : memref<3x50xf32, "gpu">
// CHECK:         scf.parallel (%[[ROW:.*]]) = (%{{.*}}) to (%{{.*}}) step (%{{.*}}) {
// CHECK:           scf.for %[[I:.*]] =
// CHECK:             %[[E:.*]] = memref.load %x[%[[ROW]], %[[I]]]
// CHECK:             memref.store %[[E]], %y[%[[ROW]], %[[I]]]
// CHECK:           scf.for {{.*}} iter_args(%[[WIDTH:.*]] = %{{.*}}) -> (index) {
// CHECK:             arith.cmpi slt, %[[WIDTH]], %{{.*}} : index
// CHECK:             scf.if
// CHECK:               memref.load %y[%[[ROW]], %[[INSIDE:.*]]]
// CHECK-NEXT:          memref.load %y[%[[ROW]], %[[LEFT:.*]]]
// CHECK-NEXT:          arith.cmpf olt
// CHECK:               memref.store %{{.*}}, %runs[%[[ROW]], %{{.*}}]
// CHECK:               memref.load %runs[%[[ROW]], %{{.*}}]
// CHECK:               memref.store %{{.*}}, %y[%[[ROW]], %{{.*}}]
// CHECK:         lmhlo.terminator
// CHECK:         memref.dealloc %runs
