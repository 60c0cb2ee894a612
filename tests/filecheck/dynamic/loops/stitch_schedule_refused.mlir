// RUN: exit 1 xla-emitters-opt -p disc-lhlo-legalize-to-loop %s 2>&1 | filecheck %s
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["r", "c"]}, %i: memref<f32, "gpu">, %m: memref<?xf32, "gpu"> {disc.sizes = ["r"]},
                %y: memref<?x?xf32, "gpu"> {disc.sizes = ["r", "d"]}) {
  "lmhlo.fusion"() <{kind = "kStitch", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %m {dimensions = array<i64: 1>, name = "m", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.broadcast %m -> %y {dimensions = array<i64: 0>, name = "y"} : (memref<?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK:      .mlir:{{[0-9]+:[0-9]+}}: error: [loops] 'lmhlo.broadcast' (%y) cannot be computed row by row: r,d is not known to be one element a row, or one for each element of the rows
// CHECK:      help: leave it outside of the fusion
