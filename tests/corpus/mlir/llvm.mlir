// llvm vectors
llvm.func @f(%v: vector<4xf32>, %i: i32, %x: f32) -> f32 {
  %0 = llvm.extractelement %v[%i : i32] : vector<4xf32>
  %1 = llvm.insertelement %x, %v[%i : i32] : vector<4xf32>
  %2 = llvm.shufflevector %v, %1 [0, 4, 1, 5] : vector<4xf32>
  %3 = llvm.mlir.poison : vector<4xf32>
  %5 = llvm.mlir.undef : vector<4xf32>
  %6 = llvm.freeze %3 : vector<4xf32>
  llvm.return %0 : f32
}
// -----
// llvm atomics
llvm.func @f(%p: !llvm.ptr, %x: f32, %n: i32) -> i32 {
  %0 = llvm.atomicrmw fadd %p, %x syncscope("agent") monotonic : !llvm.ptr, f32
  %1 = llvm.atomicrmw volatile umax %p, %n acq_rel {alignment = 16 : i64} : !llvm.ptr, i32
  %2 = llvm.cmpxchg %p, %n, %n acq_rel monotonic : !llvm.ptr, i32
  %3 = llvm.cmpxchg weak volatile %p, %n, %n syncscope("agent") seq_cst acquire {alignment = 4 : i64} : !llvm.ptr, i32
  %4 = llvm.extractvalue %2[0] : !llvm.struct<(i32, i1)>
  llvm.return %4 : i32
}
// -----
// llvm memory
llvm.func @f(%p: !llvm.ptr, %q: !llvm.ptr<1>, %n: i64) -> f32 {
  %0 = llvm.load %p invariant {alignment = 4 : i64} : !llvm.ptr -> f32
  %1 = llvm.load volatile %p : !llvm.ptr -> f32
  llvm.store %0, %p atomic release {alignment = 4 : i64} : f32, !llvm.ptr
  llvm.store %0, %p {nontemporal} : f32, !llvm.ptr
  %4 = llvm.addrspacecast %q : !llvm.ptr<1> to !llvm.ptr
  %5 = llvm.getelementptr inbounds %p[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %6 = llvm.getelementptr inbounds|nuw %p[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %7 = llvm.getelementptr nusw %p[%n, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x f32>
  %c = llvm.mlir.constant(1 : i32) : i32
  %11 = llvm.alloca inalloca %c x f32 : (i32) -> !llvm.ptr
  llvm.return %0 : f32
}
// -----
// llvm aliasing metadata
#d = #llvm.alias_scope_domain<id = distinct[0]<>, description = "d">
#s = #llvm.alias_scope<id = distinct[1]<>, domain = #d, description = "s">
#s2 = #llvm.alias_scope<id = "x", domain = #d>
llvm.func @f(%p: !llvm.ptr) -> f32 {
  %0 = llvm.load %p {alias_scopes = [#s], noalias_scopes = [#s2]} : !llvm.ptr -> f32
  llvm.return %0 : f32
}
// -----
// llvm tbaa
#r = #llvm.tbaa_root<id = "root">
#t = #llvm.tbaa_type_desc<id = "int", members = {<#r, 0>}>
#g = #llvm.tbaa_tag<base_type = #t, access_type = #t, offset = 0>
llvm.func @f(%p: !llvm.ptr) -> f32 {
  %0 = llvm.load %p {tbaa = [#g]} : !llvm.ptr -> f32
  llvm.return %0 : f32
}
// -----
// llvm loops
#u = #llvm.loop_unroll<disable = true>
#l = #llvm.loop_annotation<unroll = #u, mustProgress = true>
llvm.func @f(%c: i1) {
  llvm.br ^bb1
^bb1:
  llvm.cond_br %c, ^bb1, ^bb2 {loop_annotation = #l}
^bb2:
  llvm.return
}
// -----
// llvm control
llvm.func @f(%n: i32, %c: i1, %p: !llvm.ptr) -> i32 {
  llvm.switch %n : i32, ^bb1(%n : i32) [
    1: ^bb2,
    -2: ^bb1(%n : i32)
  ]
^bb1(%m: i32):
  llvm.cond_br %c weights([3, 5]), ^bb2, ^bb3
^bb2:
  llvm.unreachable
^bb3:
  %0 = llvm.select %c, %n, %m : i1, i32
  %1 = llvm.call @g(%0) : (i32) -> i32
  %2 = llvm.call %p(%1) : !llvm.ptr, (i32) -> i32
  %3 = llvm.call tail @g(%2) {fastmathFlags = #llvm.fastmath<none>} : (i32) -> i32
  llvm.return %3 : i32
}
llvm.func @g(i32) -> i32
// -----
// llvm casts
llvm.func @f(%n: i32, %x: f32, %b: i1, %h: bf16) -> i32 {
  %2 = llvm.fptosi %x : f32 to i32
  %3 = llvm.fptoui %x : f32 to i32
  %4 = llvm.trunc %n overflow<nsw, nuw> : i32 to i8
  %8 = llvm.fpext %x : f32 to f64
  %9 = llvm.fptrunc %8 : f64 to f16
  %15 = llvm.udiv exact %n, %n : i32
  %16 = llvm.add %n, %n overflow<nsw, nuw> : i32
  %17 = llvm.fadd %x, %x {fastmathFlags = #llvm.fastmath<fast>} : f32
  llvm.return %2 : i32
}
// -----
// llvm intrinsics
llvm.func @f(%n: i32, %x: f32, %b: i1) -> f32 {
  %0 = llvm.intr.log10(%x) : (f32) -> f32
  %14 = "llvm.intr.abs"(%n) <{is_int_min_poison = false}> : (i32) -> i32
  %27 = "llvm.intr.cttz"(%n) <{is_zero_poison = false}> : (i32) -> i32
  %30 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32
  llvm.return %0 : f32
}
// -----
// llvm module and functions
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>]
  llvm.mlir.global internal unnamed_addr constant @g(dense<0.0> : tensor<4xf32>) {addr_space = 0 : i32, alignment = 64 : i64} : !llvm.array<4 x f32>
  llvm.mlir.global external hidden @h() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func ptx_kernelcc @k(%p: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 64 : i64}) {
    %0 = llvm.mlir.addressof @g : !llvm.ptr
    llvm.return
  }
  llvm.func internal @i() attributes {always_inline, passthrough = ["nounwind"]} {
    llvm.return
  }
  llvm.func @__nv_tanhf(f32) -> f32 attributes {memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>, no_unwind, will_return}
  llvm.func @v(i32, ...)
}
// -----
// llvm asm
llvm.func @f(%n: i32) -> i32 {
  %0 = llvm.inline_asm "mov.u32 $0, $1;", "=r,r" %n : (i32) -> i32
  %1 = llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 0;", "" %n : (i32) -> i32
  llvm.return %0 : i32
}
// -----
// llvm structs and constants
llvm.func @f(%s: !llvm.struct<(f32, i1)>, %x: f32) -> i1 {
  %0 = llvm.insertvalue %x, %s[0] : !llvm.struct<(f32, i1)>
  %1 = llvm.extractvalue %0[1] : !llvm.struct<(f32, i1)>
  %2 = llvm.mlir.constant(dense<[1, 2]> : vector<2xi32>) : vector<2xi32>
  %3 = llvm.mlir.constant(0x7FC0 : bf16) : bf16
  %4 = llvm.mlir.constant([1.0 : f32, 2.0 : f32]) : !llvm.struct<(f32, f32)>
  llvm.return %1 : i1
}
// -----
// llvm atomics of every kind
llvm.func @f(%p: !llvm.ptr, %x: f32, %n: i32, %q: !llvm.ptr<3>, %v: vector<2xf16>) {
  %0 = llvm.atomicrmw xchg %p, %p monotonic : !llvm.ptr, !llvm.ptr
  %1 = llvm.atomicrmw xchg %p, %x acquire : !llvm.ptr, f32
  %2 = llvm.atomicrmw add %p, %n release : !llvm.ptr, i32
  %3 = llvm.atomicrmw sub %p, %n acq_rel : !llvm.ptr, i32
  %4 = llvm.atomicrmw _and %p, %n seq_cst : !llvm.ptr, i32
  %12 = llvm.atomicrmw fsub %p, %x monotonic : !llvm.ptr, f32
  %13 = llvm.atomicrmw fmax %p, %x monotonic : !llvm.ptr, f32
  %14 = llvm.atomicrmw fmin %q, %x monotonic : !llvm.ptr<3>, f32
  %19 = llvm.atomicrmw fmaximum %p, %x monotonic : !llvm.ptr, f32
  %20 = llvm.atomicrmw fminimum %p, %x monotonic : !llvm.ptr, f32
  %21 = llvm.atomicrmw fadd %p, %v monotonic : !llvm.ptr, vector<2xf16>
  llvm.fence acq_rel {note}
  llvm.return
}
// -----
// llvm loops and switches
#g = #llvm.access_group<id = distinct[0]<>>
#g2 = #llvm.access_group<id = distinct[1]<>>
#v = #llvm.loop_vectorize<disable = false, predicateEnable = true, scalableEnable = false, width = 16 : i32>
#i = #llvm.loop_interleave<count = 32 : i32>
#u = #llvm.loop_unroll<disable = true, count = 64 : i32, runtimeDisable = false, full = true>
#j = #llvm.loop_unroll_and_jam<disable = false, count = 16 : i32>
#li = #llvm.loop_licm<disable = false, versioningDisable = true>
#d = #llvm.loop_distribute<disable = true>
#p = #llvm.loop_pipeline<disable = false, initiationinterval = 1 : i32>
#pe = #llvm.loop_peeled<count = 8 : i32>
#un = #llvm.loop_unswitch<partialDisable = false>
#l0 = #llvm.loop_annotation<mustProgress = true>
#uf = #llvm.loop_unroll<followupUnrolled = #l0, followupAll = #l0>
#l = #llvm.loop_annotation<disableNonforced = false, vectorize = #v, interleave = #i, unroll = #u, unrollAndJam = #j, licm = #li, distribute = #d, pipeline = #p, peeled = #pe, unswitch = #un, mustProgress = true, isVectorized = false, parallelAccesses = #g, #g2>
#l2 = #llvm.loop_annotation<unroll = #uf, parallelAccesses = #g>
llvm.func @f(%p: !llvm.ptr, %c: i1, %n: i32) {
  llvm.br ^bb1 {loop_annotation = #l}
^bb1:
  %0 = llvm.load %p {access_groups = [#g, #g2]} : !llvm.ptr -> f32
  llvm.cond_br %c weights([2000, 1]), ^bb1, ^bb2 {loop_annotation = #l2}
^bb2:
  llvm.switch %n : i32, ^bb3 [
    1: ^bb3,
    2: ^bb3
  ] {branch_weights = array<i32: 1, 2, 3>}
^bb3:
  llvm.switch %n : i32, ^bb4 [
  ]
^bb4:
  llvm.return
}
// -----
// llvm more intrinsics
llvm.func @f(%p: !llvm.ptr, %x: f32, %n: i32, %c: i1, %v: vector<4xf32>, %w: vector<4xi32>, %m: vector<4xi1>, %h: f16, %j: i64, %vp: vector<4x!llvm.ptr>) {
  %33 = "llvm.intr.scmp"(%n, %n) : (i32, i32) -> i8
  %34 = "llvm.intr.lrint"(%x) : (f32) -> i64
  %35 = "llvm.intr.lround"(%x) : (f32) -> i64
  %36 = "llvm.intr.ldexp"(%x, %n) : (f32, i32) -> f32
  %37 = "llvm.intr.frexp"(%x) : (f32) -> !llvm.struct<(f32, i32)>
  %38 = "llvm.intr.sincos"(%x) : (f32) -> !llvm.struct<(f32, f32)>
  %39 = "llvm.intr.masked.load"(%p, %m, %v) <{alignment = 4 : i32}> : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  "llvm.intr.masked.store"(%v, %p, %m) <{alignment = 4 : i32}> : (vector<4xf32>, !llvm.ptr, vector<4xi1>) -> ()
  %40 = "llvm.intr.masked.gather"(%vp, %m, %v) <{alignment = 4 : i32}> : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  "llvm.intr.masked.scatter"(%v, %vp, %m) <{alignment = 4 : i32}> : (vector<4xf32>, vector<4x!llvm.ptr>, vector<4xi1>) -> ()
  %b = llvm.mlir.constant(0 : i8) : i8
  "llvm.intr.memset"(%p, %b, %j) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
  %42 = "llvm.intr.vector.reduce.fmax"(%v) : (vector<4xf32>) -> f32
  "llvm.intr.lifetime.start"(%p) : (!llvm.ptr) -> ()
  "llvm.intr.trap"() : () -> ()
  "llvm.intr.debugtrap"() : () -> ()
  "llvm.intr.prefetch"(%p) <{rw = 0 : i32, hint = 3 : i32, cache = 1 : i32}> : (!llvm.ptr) -> ()
  %45 = "llvm.intr.expect.with.probability"(%n, %n) <{prob = 0.5 : f64}> : (i32, i32) -> i32
  %46 = "llvm.intr.vector.extract"(%v) <{pos = 0 : i64}> : (vector<4xf32>) -> vector<4xf32>
  %47 = "llvm.intr.vector.insert"(%v, %v) <{pos = 0 : i64}> : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %48 = "llvm.intr.launder.invariant.group"(%p) : (!llvm.ptr) -> !llvm.ptr
  %49 = "llvm.intr.strip.invariant.group"(%p) : (!llvm.ptr) -> !llvm.ptr
  %50 = "llvm.intr.ptrmask"(%p, %j) : (!llvm.ptr, i64) -> !llvm.ptr
  %51 = "llvm.intr.ssa.copy"(%x) : (f32) -> f32
  %52 = "llvm.intr.get.active.lane.mask"(%n, %n) : (i32, i32) -> vector<4xi1>
  %53 = "llvm.intr.stepvector"() : () -> vector<4xi32>
  llvm.intr.assume %c ["align"(%p, %n : !llvm.ptr, i32)] : i1
  %57 = "llvm.intr.abs"(%n) <{is_int_min_poison = false}> : (i32) -> i32
  llvm.return
}
// -----
// llvm calls
llvm.func @g(f32) -> f32
llvm.func @f(%x: f32, %p: !llvm.ptr) attributes {reciprocal_estimates = "x", prefer_vector_width = "128", no_unwind, inline_hint} {
  %0 = llvm.call fastcc @g(%x) {memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>, no_inline, always_inline, inline_hint, access_groups = [], alias_scopes = [], noalias_scopes = [], tbaa = [], branch_weights = array<i32: 1>, no_unwind, will_return, convergent, noreturn, returns_twice, hot, cold, noduplicate, noalias} : (f32) -> f32
  %1 = llvm.call @g(%x) ["a"(%x, %x : f32, f32), "b"()] : (f32) -> f32
  %2 = llvm.call @g(%x) : (f32 {llvm.noundef}) -> (f32 {llvm.noundef})
  %4 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) {fastmathFlags = #llvm.fastmath<nnan>, no_unwind} : (f32) -> f32
  llvm.call_intrinsic "llvm.nvvm.barrier0"() : () -> ()
  %5 = llvm.call_intrinsic "llvm.x"(%x) ["b"(%x : f32)] : (f32 {llvm.noundef}) -> f32
  %a = llvm.inline_asm has_side_effects is_align_stack tail_call_kind = <tail> asm_dialect = intel "a", "b" %x : (f32) -> f32
  llvm.return
}
// -----
// llvm metadata
#d = #llvm.alias_scope_domain<id = distinct[0]<>, description = "d">
#s = #llvm.alias_scope<id = distinct[1]<>, domain = #d, description = "s">
#s2 = #llvm.alias_scope<id = "x", domain = <id = distinct[3]<"a">>>
#r = #llvm.tbaa_root<id = "root">
#r0 = #llvm.tbaa_root
#t = #llvm.tbaa_type_desc<id = "int", members = {<#r, 0>}>
#t2 = #llvm.tbaa_type_desc<id = "int", members = {<#r, 0>, <#t, 8>}>
#g = #llvm.tbaa_tag<base_type = #t, access_type = #t, offset = 0>
#g1 = #llvm.tbaa_tag<base_type = #t2, access_type = #t, offset = 8, constant = true>
module attributes {t.z = #r0, t.x = distinct[7]<42 : i32>} {
llvm.func @f(%p: !llvm.ptr) -> f32 {
  %0 = llvm.load %p {alias_scopes = [#s], noalias_scopes = [#s2], tbaa = [#g, #g1]} : !llvm.ptr -> f32
  "llvm.intr.experimental.noalias.scope.decl"() <{scope = #s}> : () -> ()
  llvm.return %0 : f32
}
  llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>, #llvm.mlir.module_flag<min, "PIC Level", 2 : i32>, #llvm.mlir.module_flag<override, "probe-stack", "inline-asm">]
  llvm.mlir.global internal thread_local @a(1 : i32) {dso_local, section = "x", externally_initialized} : i32
  llvm.mlir.global external @b() : i32 {
    %0 = llvm.mlir.constant(1 : i32) : i32
    llvm.return %0 : i32
  }
}

