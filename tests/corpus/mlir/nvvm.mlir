// nvvm
llvm.func @f(%a: f32, %n: i32) -> f32 attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
  %1 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 128> : i32
  nvvm.barrier id = %n number_of_threads = %n
  %7 = nvvm.shfl.sync bfly %n, %a, %n, %n : f32 -> f32
  %8 = nvvm.shfl.sync down %n, %a, %n, %n {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  llvm.return %7 : f32
}
// -----
// nvvm attrs
module attributes {gpu.container_module} {
  gpu.module @m [#nvvm.target<chip = "sm_90", features = "+ptx80", O = 3>] {
  }
}
// -----
// nvvm fences, barriers in memory, copies
llvm.func @f(%a: f32, %n: i32, %c: i1, %p: !llvm.ptr, %s: !llvm.ptr<3>, %g: !llvm.ptr<1>, %j: i64) {
  "nvvm.barrier"(%n) <{reductionOp = #nvvm.reduction<popc>, operandSegmentSizes = array<i32: 0, 0, 1>}> : (i32) -> i32
  %14 = nvvm.match.sync any %n, %n : i32 -> i32
  %15 = nvvm.match.sync all %n, %j : i64 -> !llvm.struct<(i32, i1)>
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  nvvm.memory.barrier #nvvm.mem_scope<gpu>
  nvvm.cp.async.shared.global %s, %g, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.mbarrier.arrive %s : !llvm.ptr<3>
  nvvm.cluster.arrive
  %38 = nvvm.read.ptx.sreg.clusterid.x range <i32, 0, 8> : i32
  llvm.return
}
