// RUN: xla-emitters-opt -p xla-vectorize-loads-stores --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-vectorize-loads-stores --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK
// RUN: xla-emitters-opt -p 'xla-vectorize-loads-stores{device="a100"}' --split-input-file %s | filecheck %s --check-prefix A100
// RUN: xla-emitters-opt -p 'xla-vectorize-loads-stores{device="a100"}' --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix A100-REMARK

// Four neighbours are added in one step from sm_90 on: what is added is read as a vector before.
#updates = #xla_gpu.indexing_map<"(bl_x, th_x, v) -> (bl_x * 512 + th_x * 4 + v), domain: bl_x in [0, 4999], th_x in [0, 127], v in [0, 3]">
#rows = #xla_gpu.indexing_map<"(row, th_x, v) -> (row * 512 + th_x * 4 + v), domain: row in [0, 99], th_x in [0, 127], v in [0, 3]">
func.func @add(%u: tensor<2560000xf32>, %out: tensor<51200xf32>, %row: index) -> tensor<51200xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %th_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %bl_x = gpu.block_id x {xla.range = [0 : index, 4999 : index]}
  %0 = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<51200xf32>) {
    %i = xla_gpu.apply_indexing #updates(%bl_x, %th_x, %v)
    %x = tensor.extract %u[%i] : tensor<2560000xf32>
    %j = xla_gpu.apply_indexing #rows(%row, %th_x, %v)
    %1 = xla_gpu.atomic_rmw %iter[%j] : tensor<51200xf32> {
    ^bb0(%current: f32):
      %sum = arith.addf %current, %x : f32
      xla_gpu.yield %sum : f32
    }
    scf.yield %1 : tensor<51200xf32>
  }
  return %0 : tensor<51200xf32>
}
// CHECK-LABEL: @add
// CHECK-DAG:   %[[TO:.*]] = xla_gpu.apply_indexing #map1(%row, %th_x, %c0)
// CHECK-DAG:   %[[READ:.*]] = vector.transfer_read %u
// CHECK:       scf.for
// CHECK-NOT:   atomic_rmw
// CHECK:       }
// CHECK-NEXT:  %[[DONE:.*]] = xla_gpu.atomic_rmw %out[%[[TO]]] : tensor<51200xf32> {
// CHECK-NEXT:  ^bb0(%[[OLD:.*]]: vector<4xf32>):
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[OLD]], %[[READ]] : vector<4xf32>
// CHECK-NEXT:    xla_gpu.yield %[[SUM]] : vector<4xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  return %[[DONE]]
// A100-LABEL:  @add
// A100:        vector.transfer_read
// A100:        scf.for
// A100:          xla_gpu.atomic_rmw %iter[
// A100-NEXT:     ^bb0(%{{.*}}: f32):
// A100-REMARK: skipped xla_gpu.atomic_rmw: sm_80 has no atomic addition to 4 x f32

// -----

// What is computed in the loop is collected in a vector; the flags of the addition stay.
func.func @computed(%out: tensor<64xf32>, %x: f32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = scf.for %v = %c0 to %c2 step %c1 iter_args(%iter = %out) -> (tensor<64xf32>) {
    %i = arith.index_cast %v : index to i32
    %f = arith.sitofp %i : i32 to f32
    %y = arith.mulf %f, %x : f32
    %1 = xla_gpu.atomic_rmw %iter[%v] : tensor<64xf32> {
    ^bb0(%current: f32):
      %sum = arith.addf %y, %current fastmath<nsz> : f32
      xla_gpu.yield %sum : f32
    }
    scf.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}
// CHECK-LABEL: @computed
// CHECK:       %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[ITER:.*]] = %out, %[[VECTOR:.*]] = %cst)
// CHECK:         %[[Y:.*]] = arith.mulf
// CHECK-NEXT:    %[[NEXT:.*]] = vector.insert %[[Y]], %[[VECTOR]] [%v] : f32 into vector<2xf32>
// CHECK-NEXT:    scf.yield %[[ITER]], %[[NEXT]]
// CHECK:       xla_gpu.atomic_rmw %out[%c0] : tensor<64xf32> {
// CHECK-NEXT:  ^bb0(%[[OLD:.*]]: vector<2xf32>):
// CHECK-NEXT:    arith.addf %[[OLD]], %[[LOOP]]#1 fastmath<nsz> : vector<2xf32>

// -----

// What stays: another op, another type, another number, a row that starts anywhere, an element that is read before, shared memory.
#odd = #xla_gpu.indexing_map<"(row, v) -> (row * 511 + v), domain: row in [0, 99], v in [0, 3]">
func.func @others(%a: tensor<51200xf32>, %b: tensor<51200xf64>, %row: index, %x: f32, %y: f64)
    -> (tensor<51200xf32>, tensor<51200xf64>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %minimum:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%i = %a, %j = %b) -> (tensor<51200xf32>, tensor<51200xf64>) {
    %m = xla_gpu.atomic_rmw %i[%v] : tensor<51200xf32> {
    ^bb0(%current: f32):
      %r = arith.minimumf %current, %x : f32
      xla_gpu.yield %r : f32
    }
    %n = xla_gpu.atomic_rmw %j[%v] : tensor<51200xf64> {
    ^bb0(%current: f64):
      %r = arith.addf %current, %y : f64
      xla_gpu.yield %r : f64
    }
    scf.yield %m, %n : tensor<51200xf32>, tensor<51200xf64>
  }
  %eight = scf.for %v = %c0 to %c8 step %c1 iter_args(%i = %minimum#0) -> (tensor<51200xf32>) {
    %m = xla_gpu.atomic_rmw %i[%v] : tensor<51200xf32> {
    ^bb0(%current: f32):
      %r = arith.addf %current, %x : f32
      xla_gpu.yield %r : f32
    }
    scf.yield %m : tensor<51200xf32>
  }
  %rows = scf.for %v = %c0 to %c4 step %c1 iter_args(%i = %eight) -> (tensor<51200xf32>) {
    %k = xla_gpu.apply_indexing #odd(%row, %v)
    %m = xla_gpu.atomic_rmw %i[%k] : tensor<51200xf32> {
    ^bb0(%current: f32):
      %r = arith.addf %current, %x : f32
      xla_gpu.yield %r : f32
    }
    scf.yield %m : tensor<51200xf32>
  }
  %read:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%i = %rows, %f = %x) -> (tensor<51200xf32>, f32) {
    %m = xla_gpu.atomic_rmw %i[%v] : tensor<51200xf32> {
    ^bb0(%current: f32):
      %r = arith.addf %current, %f : f32
      xla_gpu.yield %r : f32
    }
    %g = tensor.extract %m[%v] : tensor<51200xf32>
    scf.yield %m, %g : tensor<51200xf32>, f32
  }
  %shared = xla_gpu.allocate_shared : tensor<64xf32>
  %tile = scf.for %v = %c0 to %c4 step %c1 iter_args(%i = %shared) -> (tensor<64xf32>) {
    %m = xla_gpu.atomic_rmw %i[%v] : tensor<64xf32> {
    ^bb0(%current: f32):
      %r = arith.addf %current, %x : f32
      xla_gpu.yield %r : f32
    }
    scf.yield %m : tensor<64xf32>
  }
  %z = tensor.extract %tile[%c0] : tensor<64xf32>
  return %read#0, %minimum#1, %z : tensor<51200xf32>, tensor<51200xf64>, f32
}
// CHECK-LABEL: @others
// CHECK-NOT:   vector
// REMARK:      skipped xla_gpu.atomic_rmw: it does more than add a float
// REMARK:      skipped xla_gpu.atomic_rmw: sm_90 has no atomic addition to 4 x f64
// REMARK:      skipped xla_gpu.atomic_rmw: sm_90 has no atomic addition to 8 x f32
// REMARK:      skipped xla_gpu.atomic_rmw: it starts at a multiple of 511, not of 4
// REMARK:      skipped xla_gpu.atomic_rmw: its result is used for more than the next iteration's tensor
// REMARK:      skipped xla_gpu.atomic_rmw: the tensor is not known to be in global memory
