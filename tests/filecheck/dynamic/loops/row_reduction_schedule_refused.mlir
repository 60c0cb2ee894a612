// RUN: exit 1 xla-emitters-opt -p disc-lhlo-legalize-to-loop %s 2>&1 | filecheck %s
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @main(%x: memref<?x4x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?x4xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kRowReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 2>, name = "y", to_apply = @add} : (memref<?x4x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK:      .mlir:{{[0-9]+:[0-9]+}}: error: [loops] 'lmhlo.reduce' (%y) reduces neither rows nor columns of a matrix
// CHECK:      help: run disc-canonicalize-reduction before
