// RUN: exit 1 xla-emitters-opt %s 2>&1 | filecheck %s
// A rule that is broken is reported with its place and the source line.

// CHECK:      invalid.mlir:9:8: error: [ir.verify] xla_gpu.apply_indexing: apply_indexing takes no map with constraints
// CHECK-NEXT:   %0 = xla_gpu.apply_indexing
// CHECK-NEXT:        ^~~~~~~~~~~~~~~~~~~~~~
// CHECK-NOT:  Traceback
func.func @f(%a: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 7], d0 mod 2 in [0, 0]">(%a)
  return %0 : index
}
