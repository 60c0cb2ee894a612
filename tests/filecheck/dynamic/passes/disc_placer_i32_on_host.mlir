// RUN: xla-emitters-opt -p disc-placer{i32-on-host=true} %s | filecheck %s

// The seed's second rule: arithmetic of s32 is on the host; the gather is not, as its first operand is f32.
// CHECK:         %ids = hlo.parameter 0 {disc.device = "gpu"
// CHECK:         %[[H:.*]] = hlo.d2h %ids
// CHECK:         %twice = hlo.add %[[H]], %[[H]] {disc.device = "cpu"
// CHECK:         %[[D:.*]] = hlo.h2d %twice
// CHECK-NEXT:    %g = hlo.gather %table, %[[D]] {{.*}}disc.device = "gpu"
hlo.computation @ids entry {
  %ids = hlo.parameter 0 {name = "ids"} : tensor<?x1xi32>
  %table = hlo.parameter 1 {name = "table"} : tensor<9x4xf32>
  %twice = hlo.add %ids, %ids {name = "twice"} : tensor<?x1xi32>
  %g = hlo.gather %table, %twice {collapsed_slice_dims = array<i64: 0>, index_vector_dim = 1 : i64, name = "g", offset_dims = array<i64: 1>, slice_sizes = array<i64: 1, 4>, start_index_map = array<i64: 0>} : (tensor<9x4xf32>, tensor<?x1xi32>) -> tensor<?x4xf32>
  hlo.return %g : tensor<?x4xf32>
}
