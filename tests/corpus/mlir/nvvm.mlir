// nvvm
llvm.func @f(%a: f32, %n: i32) -> f32 attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
  %0 = nvvm.read.ptx.sreg.tid.x : i32
  %1 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 128> : i32
  %2 = nvvm.read.ptx.sreg.ctaid.x : i32
  %3 = nvvm.read.ptx.sreg.ntid.x : i32
  %4 = nvvm.read.ptx.sreg.nctaid.x : i32
  %5 = nvvm.read.ptx.sreg.laneid : i32
  %6 = nvvm.read.ptx.sreg.warpsize : i32
  nvvm.barrier0
  nvvm.barrier id = %n number_of_threads = %n
  nvvm.bar.warp.sync %n : i32
  %7 = nvvm.shfl.sync bfly %n, %a, %n, %n : f32 -> f32
  %8 = nvvm.shfl.sync down %n, %a, %n, %n {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>
  %9 = nvvm.rcp.approx.ftz.f %a : f32
  %10 = nvvm.redux.sync add %n, %n : i32 -> i32
  %11 = nvvm.elect.sync -> i1
  %12 = nvvm.vote.sync ballot %n, %11 -> i32
  nvvm.griddepcontrol wait
  nvvm.griddepcontrol launch_dependents
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
  nvvm.bar.warp.sync %n : i32
  %10 = nvvm.redux.sync add %n, %n : i32 -> i32
  %109 = nvvm.redux.sync fmin %a, %n {abs = true, nan = true} : f32 -> f32
  %11 = nvvm.elect.sync -> i1
  %119 = nvvm.elect.sync %n -> i1
  %12 = nvvm.vote.sync ballot %n, %c -> i32
  %13 = nvvm.vote.sync any %n, %c -> i1
  %14 = nvvm.match.sync any %n, %n : i32 -> i32
  %15 = nvvm.match.sync all %n, %j : i64 -> !llvm.struct<(i32, i1)>
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  nvvm.fence.mbarrier.init
  nvvm.fence.sc.cluster
  nvvm.memory.barrier #nvvm.mem_scope<gpu>
  nvvm.mbarrier.init %s, %n : !llvm.ptr<3>, i32
  nvvm.mbarrier.inval %s : !llvm.ptr<3>
  %20 = nvvm.mbarrier.arrive %s : !llvm.ptr<3> -> i64
  %21 = nvvm.mbarrier.test.wait %s, %j : !llvm.ptr<3>, i64 -> i1
  nvvm.mbarrier.try_wait.parity %s, %n, %n : !llvm.ptr<3>, i32, i32
  nvvm.cp.async.shared.global %s, %g, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.shared.global %s, %g, 16, cache = cg, %n : !llvm.ptr<3>, !llvm.ptr<1>, i32
  nvvm.cp.async.commit.group
  nvvm.cp.async.wait.group 0
  nvvm.cp.async.mbarrier.arrive %s : !llvm.ptr<3>
  nvvm.cluster.arrive
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
  nvvm.breakpoint
  nvvm.nanosleep %n
  nvvm.setmaxregister decrease 80
  %30 = nvvm.read.ptx.sreg.clock : i32
  %31 = nvvm.read.ptx.sreg.clock64 : i64
  %32 = nvvm.read.ptx.sreg.globaltimer : i64
  %33 = nvvm.read.ptx.sreg.lanemask.lt : i32
  %34 = nvvm.read.ptx.sreg.smid : i32
  %35 = nvvm.read.ptx.sreg.nwarpid : i32
  %36 = nvvm.read.ptx.sreg.gridid : i32
  %37 = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
  %38 = nvvm.read.ptx.sreg.clusterid.x range <i32, 0, 8> : i32
  %39 = nvvm.read.ptx.sreg.envreg0 : i32
  %40 = nvvm.read.ptx.sreg.dynamic.smem.size : i32
  %41 = nvvm.rcp.approx.ftz.f %a : f32
  llvm.return
}
