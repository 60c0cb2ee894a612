// RUN: xla-emitters-opt -p xla-from-upstream-spelling %s | filecheck %s
// RUN: xla-emitters-opt -p xla-to-upstream-spelling,xla-from-upstream-spelling %s | filecheck %s
// RUN: xla-emitters-opt -p xla-from-upstream-spelling --remarks %s 2>&1 | filecheck %s --check-prefix REMARK
// Workgroup ids become block ids, the indices of the one forall become thread ids, and the launch stands on the function.

#indexing_map = #xla.indexing_map<"(th_x, bl_x)[s0] -> (bl_x / 8, (bl_x mod 8) * 512 + th_x * 4 + s0), domain: th_x in [0, 127], bl_x in [0, 63], s0 in [0, 3]">

// CHECK:       #map = #xla_gpu.indexing_map<"(th_x, bl_x)[s0] -> (bl_x floordiv 8,
// CHECK:       func.func @kernel(
// CHECK-SAME:    gpu.known_block_size = array<i32: 128, 1, 1>
// CHECK-SAME:    gpu.known_grid_size = array<i32: 64, 1, 1>
// CHECK-NEXT:    %bl = gpu.block_id x {xla.range = [0 : index, 63 : index]}
// CHECK-NEXT:    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
// CHECK-NEXT:    %xla_loop = xla_gpu.loop (%thread_id_x, %bl)[%i] -> (%ra, %rb) in #map iter_args(%iter = %arg1)
// CHECK-NOT:     scf.forall
// CHECK:         return %xla_loop
func.func @kernel(%arg0: tensor<8x4096xf32>, %arg1: tensor<8x4096xf32>) -> tensor<8x4096xf32> attributes {xla.entry} {
  %bl = xla.workgroup_id x {xla.range = [0 : index, 63 : index]}
  %0 = scf.forall (%arg2) in (128) shared_outs(%arg3 = %arg1) -> (tensor<8x4096xf32>) {
    %xla_loop = xla.loop (%arg2, %bl)[%i] -> (%ra, %rb) in #indexing_map iter_args(%iter = %arg3) -> (tensor<8x4096xf32>) {
      %extracted = tensor.extract %arg0[%ra, %rb] : tensor<8x4096xf32>
      %inserted = tensor.insert %extracted into %iter[%ra, %rb] : tensor<8x4096xf32>
      xla.yield %inserted : tensor<8x4096xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %xla_loop into %arg3[0, 0] [8, 4096] [1, 1] : tensor<8x4096xf32> into tensor<8x4096xf32>
    }
  }
  return %0 : tensor<8x4096xf32>
}

// A forall that puts down parts of a tensor is no launch.
// CHECK:       func.func @parts
// CHECK:         scf.forall (%{{.*}}) in (32)
// REMARK:      it does not insert one whole tensor into each of its shared outs
func.func @parts(%arg0: tensor<1xf32>, %arg1: tensor<32xf32>) -> tensor<32xf32> {
  %0 = scf.forall (%i) in (32) shared_outs(%o = %arg1) -> (tensor<32xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %arg0 into %o[%i] [1] [1] : tensor<1xf32> into tensor<32xf32>
    }
  }
  return %0 : tensor<32xf32>
}
