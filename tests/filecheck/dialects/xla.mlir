// RUN: xla-emitters-opt %s | filecheck %s
// RUN: xla-emitters-opt %s --spelling upstream | filecheck %s --check-prefix UPSTREAM
// RUN: xla-emitters-opt %s --spelling upstream | xla-emitters-opt | filecheck %s
// What today's XLA prints is read into the seed's ops, and written in its spelling on request.

#indexing_map = #xla.indexing_map<"(th_x, bl_x)[s0] -> (bl_x / 8, (bl_x mod 8) * 512 + th_x * 4 + s0), domain: th_x in [0, 127], bl_x in [0, 63], s0 in [0, 3]">
module @kernel attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @fusion(%arg0: tensor<8x4096xf32> {xla.invariant}, %arg1: tensor<8x4096xf32>) -> tensor<8x4096xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %0 = xla.workgroup_id x {xla.range = [0 : index, 63 : index]}
    %1 = scf.forall (%arg2) in (128) shared_outs(%arg3 = %arg1) -> (tensor<8x4096xf32>) {
      %xla_loop = xla.loop (%arg2, %0)[%i] -> (%ra, %rb) in #indexing_map iter_args(%iter = %arg3) -> (tensor<8x4096xf32>) {
        %pure_call = xla.pure_call @f(%arg0, %ra, %rb) : (tensor<8x4096xf32>, index, index) -> f32
        %inserted = tensor.insert %pure_call into %iter[%ra, %rb] : tensor<8x4096xf32>
        xla.yield %inserted : tensor<8x4096xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %xla_loop into %arg3[0, 0] [8, 4096] [1, 1] : tensor<8x4096xf32> into tensor<8x4096xf32>
      }
    }
    return %1 : tensor<8x4096xf32>
  }
  func.func private @f(%arg0: tensor<8x4096xf32>, %arg1: index, %arg2: index) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg0[%arg1, %arg2] : tensor<8x4096xf32>
    return %extracted : f32
  }
}

// CHECK:      #map = #xla_gpu.indexing_map<"(th_x, bl_x)[s0] -> (bl_x floordiv 8,
// CHECK:      module @kernel attributes
// CHECK:        attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
// CHECK-NEXT:     %0 = xla.workgroup_id x {xla.range = [0 : index, 63 : index]}
// CHECK-NEXT:     %1 = scf.forall (%arg2) in (128) shared_outs(%arg3 = %arg1) -> (tensor<8x4096xf32>) {
// CHECK-NEXT:       %xla_loop = xla_gpu.loop (%arg2, %0)[%i] -> (%ra, %rb) in #map iter_args(%iter = %arg3) -> (tensor<8x4096xf32>) {
// CHECK-NEXT:         %pure_call = xla_gpu.pure_call @f(%arg0, %ra, %rb)
// CHECK:              xla_gpu.yield %inserted
// CHECK:            scf.forall.in_parallel {
// CHECK-NEXT:         tensor.parallel_insert_slice %xla_loop into %arg3[0, 0] [8, 4096] [1, 1]
// CHECK:        attributes {llvm.linkage = #llvm.linkage<internal>} {

// UPSTREAM:     #indexing_map = #xla.indexing_map<"(th_x, bl_x)[s0] -> (bl_x / 8,
// UPSTREAM:     xla.loop (%arg2, %0)[%i] -> (%ra, %rb) in #indexing_map
// UPSTREAM:     xla.pure_call @f
// UPSTREAM:     xla.yield
