// RUN: exit 1 xla-emitters-opt -p xla-simplify-affine,xla-lower-affine %s 2>&1 | filecheck %s

// 2147483647 * 3 wraps in 32 bits; half of what is left is not half of it.
#map = #xla_gpu.indexing_map<"(d0) -> ((d0 * 3) floordiv 2), domain: d0 in [0, 2147483647]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @beyond(%x: index) -> index {
    %0 = xla_gpu.apply_indexing #map(%x)
    func.return %0 : index
  }
}
// CHECK:      error: [xla-lower-affine] 'v0 * 3', which xla_gpu.apply_indexing divides or compares, may overflow an index of 32 bits
// CHECK:      help: say that index has 64 bits: dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>
