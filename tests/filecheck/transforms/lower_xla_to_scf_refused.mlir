// RUN: not xla-emitters-opt -p xla-lower-xla-to-scf %s 2>&1 | filecheck %s
// CHECK: error: [xla-lower-xla-to-scf] xla_gpu.shuffle_reduce: the distance is 3 lanes, but must be a power of two below 32
func.func private @add(f32, f32) -> f32
func.func @three(%arg0: f32) -> f32 {
  %0 = xla_gpu.shuffle_reduce(%arg0) to 3 combiner=@add : f32
  return %0 : f32
}
