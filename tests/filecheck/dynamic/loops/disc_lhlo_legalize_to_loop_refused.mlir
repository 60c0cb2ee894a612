// RUN: exit 1 xla-emitters-opt -p disc-lhlo-legalize-to-loop %s 2>&1 | filecheck %s
func.func @main(%x: memref<?x4xf32, "gpu">, %w: memref<4x4xf32, "gpu">, %z: memref<?x4xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.dot %x, %w -> %z {name = "product", lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (memref<?x4xf32, "gpu">, memref<4x4xf32, "gpu">) -> memref<?x4xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK:      .mlir:{{[0-9]+:[0-9]+}}: error: [loops] 'dot' (instruction %product) has no code of one element
// CHECK:      help: leave it outside of fusions: it is computed by a library's product
