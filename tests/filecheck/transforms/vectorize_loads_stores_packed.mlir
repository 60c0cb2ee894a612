// RUN: xla-emitters-opt -p xla-vectorize-loads-stores,xla-lower-tensors --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p 'xla-vectorize-loads-stores{device="a100"}' --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix A100
// RUN: xla-emitters-opt -p xla-vectorize-loads-stores --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// Four neighbours of 16 bits are added as two words, each with two of them, where the update allows it.
#at = #xla_gpu.indexing_map<"(th_x, v) -> (th_x * 4 + v), domain: th_x in [0, 127], v in [0, 3]">
func.func @packed(%u: tensor<512xbf16>, %out: tensor<512xbf16> {llvm.align = 16 : index}) -> tensor<512xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %th_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %0 = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<512xbf16>) {
    %i = xla_gpu.apply_indexing #at(%th_x, %v)
    %x = tensor.extract %u[%i] : tensor<512xbf16>
    %1 = xla_gpu.atomic_rmw %iter[%i] {packed} : tensor<512xbf16> {
    ^bb0(%current: bf16):
      %sum = arith.addf %current, %x : bf16
      xla_gpu.yield %sum : bf16
    }
    scf.yield %1 : tensor<512xbf16>
  }
  return %0 : tensor<512xbf16>
}
// CHECK-LABEL: @packed
// CHECK:         %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<4xbf16> to vector<2xi32>
// CHECK-DAG:     %[[LOW:.*]] = vector.extract %[[WORDS]][0] : i32 from vector<2xi32>
// CHECK-DAG:     %[[HIGH:.*]] = vector.extract %[[WORDS]][1] : i32 from vector<2xi32>
// CHECK:         llvm.inline_asm has_side_effects "atom.global.add.noftz.v2.bf16x2 {$0, $1}, [$2], {$3, $4};", "=r,=r,l,r,r" %{{.*}}, %[[LOW]], %[[HIGH]]
// A100:        : sm_80 has no atomic addition to 4 x bf16

// -----

// Without the attribute each element is added by itself, as by XLA.
#at = #xla_gpu.indexing_map<"(th_x, v) -> (th_x * 2 + v), domain: th_x in [0, 127], v in [0, 1]">
func.func @single(%u: tensor<256xf16>, %out: tensor<256xf16> {llvm.align = 16 : index}) -> tensor<256xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %th_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %0 = scf.for %v = %c0 to %c2 step %c1 iter_args(%iter = %out) -> (tensor<256xf16>) {
    %i = xla_gpu.apply_indexing #at(%th_x, %v)
    %x = tensor.extract %u[%i] : tensor<256xf16>
    %1 = xla_gpu.atomic_rmw %iter[%i] : tensor<256xf16> {
    ^bb0(%current: f16):
      %sum = arith.addf %current, %x : f16
      xla_gpu.yield %sum : f16
    }
    scf.yield %1 : tensor<256xf16>
  }
  return %0 : tensor<256xf16>
}
// CHECK-LABEL: @single
// CHECK-NOT:     llvm.inline_asm
// CHECK:         llvm.atomicrmw fadd
// REMARK:      updates of f16 are single as XLA's are; the attribute 'packed' allows words of two
