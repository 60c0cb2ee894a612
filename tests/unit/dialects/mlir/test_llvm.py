"""Every op of the `llvm` dialect keeps its meaning through our text and back, as MLIR 22 sees it."""

from unit.dialects.mlir_opt import assert_generic_form_is_read, assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_printer import print_ir

ARGUMENTS = (
    "%p: !llvm.ptr, %q: !llvm.ptr<3>, %c: i1, %n: i8, %h: i16, %i: i32, %j: i64, %b: bf16, %x: f32, %d: f64, "
    "%v: vector<4xf32>, %w: vector<4xi32>, %m: vector<4xi1>, %ps: vector<4x!llvm.ptr>, %half: vector<2xf32>, "
    "%s: !llvm.struct<(f32, i1)>, %a: !llvm.array<2 x f32>"
)

FLOAT_UNARY = (
    "fabs sqrt ceil floor trunc round roundeven rint nearbyint exp exp2 exp10 "
    "log log2 log10 sin cos tan asin acos atan sinh cosh tanh"
)
FLOAT_BINARY = "copysign maxnum minnum maximum minimum pow atan2"
INTEGER_BINARY = "smax smin umax umin sadd.sat uadd.sat ssub.sat usub.sat sshl.sat ushl.sat"
OVERFLOWING = "sadd uadd ssub usub smul umul"
ATOMIC_INTEGERS = "xchg add sub _and nand _or _xor max min umax umin uinc_wrap udec_wrap usub_cond usub_sat"
ATOMIC_FLOATS = "xchg fadd fsub fmax fmin fmaximum fminimum"

# What stands inside a function with the ARGUMENTS; a line each, or several where an op needs more.
LINES = (
    *(f"%r = llvm.{op} %i, %i : i32" for op in "add sub mul udiv sdiv urem srem and or xor shl lshr ashr".split()),
    *(f"%r = llvm.{op} %w, %w : vector<4xi32>" for op in ("add", "mul", "lshr")),
    "%r = llvm.add %i, %i overflow<nsw> : i32",
    "%r = llvm.mul %i, %i overflow<nsw, nuw> : i32",
    "%r = llvm.shl %i, %i overflow<nuw> : i32",
    "%r = llvm.sdiv exact %i, %i : i32",
    "%r = llvm.lshr exact %i, %i : i32",
    "%r = llvm.or disjoint %i, %i : i32",
    *(f"%r = llvm.{op} %x, %x : f32" for op in "fadd fsub fmul fdiv frem".split()),
    "%r = llvm.fadd %b, %b : bf16",
    "%r = llvm.fadd %v, %v {fastmathFlags = #llvm.fastmath<nnan, nsz>} : vector<4xf32>",
    "%r = llvm.fneg %x : f32",
    *(f"%r = llvm.intr.{op}(%x) : (f32) -> f32" for op in FLOAT_UNARY.split()),
    *(f"%r = llvm.intr.{op}(%v) : (vector<4xf32>) -> vector<4xf32>" for op in ("fabs", "roundeven")),
    "%r = llvm.intr.roundeven(%x) {fastmathFlags = #llvm.fastmath<nnan>} : (f32) -> f32",
    *(f"%r = llvm.intr.{op}(%x, %x) : (f32, f32) -> f32" for op in FLOAT_BINARY.split()),
    *(f"%r = llvm.intr.{op}(%x, %x, %x) : (f32, f32, f32) -> f32" for op in ("fma", "fmuladd")),
    "%r = llvm.intr.powi(%x, %i) : (f32, i32) -> f32",
    '%r = "llvm.intr.is.fpclass"(%x) <{bit = 3 : i32}> : (f32) -> i1',
    *(f"%r = llvm.intr.{op}(%i, %i) : (i32, i32) -> i32" for op in INTEGER_BINARY.split()),
    *(f"%r = llvm.intr.{op}(%i) : (i32) -> i32" for op in ("ctpop", "bitreverse", "bswap")),
    *(f"%r = llvm.intr.{op}(%i, %i, %i) : (i32, i32, i32) -> i32" for op in ("fshl", "fshr")),
    '%r = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32',
    '%r = "llvm.intr.cttz"(%i) <{is_zero_poison = true}> : (i32) -> i32',
    '%r = "llvm.intr.abs"(%w) <{is_int_min_poison = false}> : (vector<4xi32>) -> vector<4xi32>',
    *(
        f'%r = "llvm.intr.{op}.with.overflow"(%i, %i) : (i32, i32) -> !llvm.struct<(i32, i1)>'
        for op in OVERFLOWING.split()
    ),
    *(f"%r = llvm.intr.{op}(%i, %i) : (i32, i32) -> i8" for op in ("scmp", "ucmp")),
    *(f"%r = llvm.intr.{op}(%x) : (f32) -> i64" for op in ("lrint", "llrint", "lround", "llround")),
    "%r = llvm.intr.ldexp(%x, %i) : (f32, i32) -> f32",
    "%r = llvm.intr.frexp(%x) : (f32) -> !llvm.struct<(f32, i32)>",
    "%r = llvm.intr.sincos(%x) {fastmathFlags = #llvm.fastmath<nnan>} : (f32) -> !llvm.struct<(f32, f32)>",
    "%r = llvm.intr.expect %i, %i : i32",
    "%r = llvm.intr.expect.with.probability %c, %c, 5.000000e-01 : i1",
    "llvm.intr.assume %c : i1",
    'llvm.intr.assume %c ["align"(%p, %i : !llvm.ptr, i32), "cold"()] : i1',
    '%r = "llvm.intr.is.constant"(%i) : (i32) -> i1',
    "%r = llvm.intr.ssa.copy %x : f32",
    "llvm.intr.trap",
    "llvm.intr.debugtrap",
    *(f"llvm.intr.lifetime.{end} %p : !llvm.ptr" for end in ("start", "end")),
    '"llvm.intr.prefetch"(%p) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}> : (!llvm.ptr) -> ()',
    *(f"%r = llvm.intr.{op}.invariant.group %p : !llvm.ptr" for op in ("launder", "strip")),
    "%r = llvm.intr.ptrmask %p, %j : (!llvm.ptr, i64) -> !llvm.ptr",
    *(
        f'%r = "llvm.intr.vector.reduce.{op}"(%w) : (vector<4xi32>) -> i32'
        for op in "add mul and or xor smax smin umax umin".split()
    ),
    *(
        f"%r = llvm.intr.vector.reduce.{op}(%v) : (vector<4xf32>) -> f32"
        for op in "fmax fmin fmaximum fminimum".split()
    ),
    "%r = llvm.intr.vector.extract %v[2] : vector<2xf32> from vector<4xf32>",
    "%r = llvm.intr.vector.insert %half, %v[2] : vector<2xf32> into vector<4xf32>",
    '%r = "llvm.intr.vector.interleave2"(%v, %v) : (vector<4xf32>, vector<4xf32>) -> vector<8xf32>',
    '%r = "llvm.intr.vector.deinterleave2"(%v) : (vector<4xf32>) -> !llvm.struct<(vector<2xf32>, vector<2xf32>)>',
    "%r = llvm.intr.stepvector : vector<4xi32>",
    "%r = llvm.intr.get.active.lane.mask %i, %i : i32, i32 to vector<4xi1>",
    "%r = llvm.trunc %i : i32 to i16",
    "%r = llvm.trunc %i overflow<nsw> : i32 to i16",
    "%r = llvm.zext %i : i32 to i64",
    "%r = llvm.zext nneg %i : i32 to i64",
    "%r = llvm.sext %i : i32 to i64",
    "%r = llvm.sitofp %i : i32 to f32",
    "%r = llvm.uitofp %i : i32 to f32",
    "%r = llvm.uitofp nneg %i : i32 to f32",
    "%r = llvm.fptosi %x : f32 to i32",
    "%r = llvm.fptoui %v : vector<4xf32> to vector<4xi32>",
    "%r = llvm.fpext %b : bf16 to f32",
    "%r = llvm.fptrunc %x : f32 to bf16",
    "%r = llvm.bitcast %x : f32 to i32",
    "%r = llvm.inttoptr %j : i64 to !llvm.ptr",
    "%r = llvm.ptrtoint %p : !llvm.ptr to i64",
    "%r = llvm.addrspacecast %q : !llvm.ptr<3> to !llvm.ptr",
    *(f'%r = llvm.icmp "{predicate}" %i, %i : i32' for predicate in "eq ne slt sle sgt sge ult ule ugt uge".split()),
    '%r = llvm.icmp "eq" %p, %p : !llvm.ptr',
    '%r = llvm.icmp "slt" %w, %w : vector<4xi32>',
    *(
        f'%r = llvm.fcmp "{predicate}" %x, %x : f32'
        for predicate in "_false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno _true".split()
    ),
    '%r = llvm.fcmp "olt" %v, %v {fastmathFlags = #llvm.fastmath<nnan>} : vector<4xf32>',
    "%r = llvm.select %c, %x, %x : i1, f32",
    "%r = llvm.select %m, %v, %v {fastmathFlags = #llvm.fastmath<nnan>} : vector<4xi1>, vector<4xf32>",
    "%r = llvm.freeze %x : f32",
    "%r = llvm.mlir.poison : vector<4xbf16>",
    "%r = llvm.mlir.undef : f32",
    "%r = llvm.mlir.zero : !llvm.ptr",
    "%r = llvm.mlir.zero : vector<4xf32>",
    "%r = llvm.mlir.constant(3 : i64) : i64",
    "%r = llvm.mlir.constant(-3 : i32) : i32",
    "%r = llvm.mlir.constant(true) : i1",
    "%r = llvm.mlir.constant(5.000000e-01 : bf16) : bf16",
    "%r = llvm.mlir.constant(0x7F800000 : f32) : f32",
    "%r = llvm.mlir.constant(0xFFC0 : bf16) : bf16",
    "%r = llvm.mlir.constant(-0.000000e+00 : f64) : f64",
    "%r = llvm.mlir.constant(dense<0.000000e+00> : vector<4xbf16>) : vector<4xbf16>",
    "%r = llvm.mlir.constant(dense<[1, -2, 3, 4]> : vector<4xi32>) : vector<4xi32>",
    "%r = llvm.extractelement %v[%i : i32] : vector<4xf32>",
    "%r = llvm.insertelement %x, %v[%j : i64] : vector<4xf32>",
    "%r = llvm.extractvalue %s[1] : !llvm.struct<(f32, i1)>",
    "%r = llvm.insertvalue %x, %a[1] : !llvm.array<2 x f32>",
    "%r = llvm.shufflevector %v, %v [0, 4, 1, -1] : vector<4xf32>",
    "%r = llvm.getelementptr %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32",
    "%r = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16",
    "%r = llvm.getelementptr inbounds|nuw %p[0, %i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<8 x bf16>",
    "%r = llvm.getelementptr nusw %p[-1] : (!llvm.ptr) -> !llvm.ptr, f32",
    "%r = llvm.getelementptr nuw %q[%j, 1] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, !llvm.struct<(f32, i1)>",
    "%r = llvm.load %p : !llvm.ptr -> f32",
    "%r = llvm.load %p {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>",
    "%r = llvm.load %p invariant {alignment = 2 : i64} : !llvm.ptr -> vector<4xbf16>",
    "%r = llvm.load volatile %p {nontemporal} : !llvm.ptr -> f32",
    "%r = llvm.load %p invariant_group : !llvm.ptr -> f32",
    '%r = llvm.load %p atomic syncscope("agent") monotonic {alignment = 4 : i64} : !llvm.ptr -> f32',
    "%r = llvm.load %q atomic acquire {alignment = 4 : i64} : !llvm.ptr<3> -> i32",
    "llvm.store %x, %p : f32, !llvm.ptr",
    "llvm.store %v, %p {alignment = 2 : i64, nontemporal} : vector<4xf32>, !llvm.ptr",
    "llvm.store volatile %x, %p : f32, !llvm.ptr",
    'llvm.store %x, %p atomic syncscope("agent") release {alignment = 4 : i64} : f32, !llvm.ptr',
    "%r = llvm.load %p dereferenceable<bytes = 8, mayBeNull = true> : !llvm.ptr -> !llvm.ptr",
    *(f"%r = llvm.atomicrmw {op} %p, %i monotonic : !llvm.ptr, i32" for op in ATOMIC_INTEGERS.split()),
    *(f"%r = llvm.atomicrmw {op} %p, %x acq_rel : !llvm.ptr, f32" for op in ATOMIC_FLOATS.split()),
    "%r = llvm.atomicrmw xchg %p, %p seq_cst : !llvm.ptr, !llvm.ptr",
    "%r = llvm.atomicrmw fadd %p, %v release : !llvm.ptr, vector<4xf32>",
    '%r = llvm.atomicrmw volatile add %q, %i syncscope("block") acquire {alignment = 16 : i64} : !llvm.ptr<3>, i32',
    "%r = llvm.cmpxchg %p, %i, %i acq_rel monotonic : !llvm.ptr, i32",
    "%r = llvm.cmpxchg %p, %p, %p monotonic monotonic : !llvm.ptr, !llvm.ptr",
    '%r = llvm.cmpxchg weak volatile %p, %j, %j syncscope("agent") seq_cst acquire {alignment = 8 : i64} : !llvm.ptr, i64',
    *(f"llvm.fence {ordering}" for ordering in ("acquire", "release", "acq_rel", "seq_cst")),
    'llvm.fence syncscope("agent") seq_cst',
    "%r = llvm.intr.masked.load %p, %m {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>) -> vector<4xf32>",
    "%r = llvm.intr.masked.load %p, %m, %v {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>",
    "%r = llvm.intr.masked.gather %ps, %m, %v {alignment = 4 : i32} : "
    "(vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>",
    "llvm.intr.masked.scatter %w, %ps, %m {alignment = 4 : i32} : vector<4xi32>, vector<4xi1> into vector<4x!llvm.ptr>",
    *(
        f'"llvm.intr.{op}"(%p, %p, %j) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()'
        for op in ("memcpy", "memmove")
    ),
    '"llvm.intr.memset"(%p, %n, %j) <{isVolatile = true}> : (!llvm.ptr, i8, i64) -> ()',
    "%r = llvm.alloca %i x f32 : (i32) -> !llvm.ptr<5>",
    "%r = llvm.alloca %i x f32 {alignment = 4 : i64} : (i32) -> !llvm.ptr",
    "%r = llvm.call @g(%x) : (f32) -> f32",
    "%r = llvm.call tail @g(%x) {fastmathFlags = #llvm.fastmath<nnan>} : (f32) -> f32",
    "%r = llvm.call %p(%x) : !llvm.ptr, (f32) -> f32",
    "llvm.call @none() : () -> ()",
    "%r = llvm.call fastcc @g(%x) {no_unwind, tbaa = []} : (f32 {llvm.noundef}) -> (f32 {llvm.noundef})",
    '%r = llvm.call @g(%x) ["a"(%x, %i : f32, i32), "b"()] : (f32) -> f32',
    '%r = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%x) : (f32) -> f32',
    'llvm.call_intrinsic "llvm.x"(%x) ["b"(%x : f32)] {fastmathFlags = #llvm.fastmath<nnan>} : (f32 {llvm.noundef}) -> ()',
    '%r = llvm.inline_asm "ex2.approx.f32 $0, $1;", "=f,f" %x : (f32) -> f32',
    '%r = llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 0;", "=r" : () -> i32',
    "%r = llvm.mlir.addressof @tile : !llvm.ptr<3>",
    "llvm.intr.masked.store %v, %p, %m {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into !llvm.ptr",
    '%r = "llvm.intr.vector.reduce.fadd"(%x, %v) <{fastmathFlags = #llvm.fastmath<none>}> : (f32, vector<4xf32>) -> f32',
    '%r = "llvm.intr.vector.reduce.fmul"(%x, %v) <{fastmathFlags = #llvm.fastmath<none>}> : (f32, vector<4xf32>) -> f32',
    "%r = llvm.intr.stacksave : !llvm.ptr\n llvm.intr.stackrestore %r : !llvm.ptr",
    "llvm.br ^a\n ^a:",
    "llvm.br ^a(%x, %i : f32, i32)\n ^a(%y: f32, %k: i32):",
    "llvm.cond_br %c, ^a, ^b\n ^a:\n llvm.br ^b\n ^b:",
    "llvm.cond_br %c, ^a(%x, %i : f32, i32), ^b(%d : f64)\n ^a(%y: f32, %k: i32):\n llvm.br ^b(%d : f64)\n ^b(%z: f64):",
    "llvm.cond_br %c weights([2000, 1]), ^a, ^a\n ^a:",
    "llvm.switch %i : i32, ^a [\n ]\n ^a:",
    "llvm.switch %i : i32, ^a(%x : f32) [\n 1: ^b,\n -2: ^a(%x : f32)\n ] {branch_weights = array<i32: 1, 2, 3>}\n"
    " ^a(%e: f32):\n llvm.br ^b\n ^b:",
    "llvm.unreachable\n ^a:",
)

ROOT = '#llvm.tbaa_root<id = "root">'
TAG = "#llvm.tbaa_tag<base_type = {type}, access_type = {type}, offset = 0, constant = true>"
INT = f'#llvm.tbaa_type_desc<id = "int", members = {{<{ROOT}, 0>}}>'
DOMAIN = '#llvm.alias_scope_domain<id = distinct[0]<>, description = "d">'
SCOPE = f'#llvm.alias_scope<id = distinct[1]<>, domain = {DOMAIN}, description = "s">'
GROUP = "#llvm.access_group<id = distinct[2]<>>"
UNROLL = "#llvm.loop_unroll<disable = true, count = 4 : i32, runtimeDisable = false, full = true>"
CONTINUED = "#llvm.loop_unroll<followupUnrolled = #llvm.loop_annotation<mustProgress = true>>"
EFFECTS = (
    "#llvm.memory_effects<other = none, argMem = readwrite, inaccessibleMem = read, errnoMem = write, "
    "targetMem0 = none, targetMem1 = none>"
)
# What MLIR gives a name of its own at the top of a text stands in full in ours.
METADATA = (
    f"%r = llvm.load %p {{tbaa = [{TAG.format(type=INT)}]}} : !llvm.ptr -> i32",
    f"%r = llvm.load %p {{access_groups = [{GROUP}], alias_scopes = [{SCOPE}], noalias_scopes = [{SCOPE}]}} : !llvm.ptr -> i32",
    f'llvm.store %i, %p {{alias_scopes = [#llvm.alias_scope<id = "x", domain = {DOMAIN}>]}} : i32, !llvm.ptr',
    f"llvm.intr.experimental.noalias.scope.decl {SCOPE}",
    f"llvm.br ^a {{loop_annotation = #llvm.loop_annotation<unroll = {UNROLL}, mustProgress = true>}}\n ^a:",
    f"llvm.br ^a {{loop_annotation = #llvm.loop_annotation<unroll = {CONTINUED}, parallelAccesses = {GROUP}>}}\n ^a:",
    f"llvm.cond_br %c, ^a, ^a {{loop_annotation = #llvm.loop_annotation<parallelAccesses = {GROUP}, {GROUP}>}}\n ^a:",
    *(
        f"llvm.br ^a {{loop_annotation = #llvm.loop_annotation<{name} = #llvm.{attribute}>}}\n ^a:"
        for name, attribute in {
            "vectorize": "loop_vectorize<disable = false, predicateEnable = true, scalableEnable = false, width = 16 : i32>",
            "interleave": "loop_interleave<count = 32 : i32>",
            "unrollAndJam": "loop_unroll_and_jam<disable = false, count = 16 : i32>",
            "licm": "loop_licm<disable = false, versioningDisable = true>",
            "distribute": "loop_distribute<disable = true>",
            "pipeline": "loop_pipeline<disable = false, initiationinterval = 1 : i32>",
            "peeled": "loop_peeled<count = 8 : i32>",
            "unswitch": "loop_unswitch<partialDisable = false>",
        }.items()
    ),
)

AROUND = """
llvm.func @g(f32) -> f32
llvm.func @none()
llvm.mlir.global private unnamed_addr @tile() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<32 x f32>
llvm.func @f({arguments}) {{
  {line}
  llvm.return
}}
"""

MODULES = (
    "llvm.func @f(!llvm.ptr, ...) -> f32",
    "llvm.func internal @f(%x: f32 {llvm.noundef}) -> (f32 {llvm.noundef}) { llvm.return %x : f32 }",
    "llvm.func @k(%p: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}) "
    "attributes {gpu.known_grid_size = array<i32: 24576, 1, 1>, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} { llvm.return }",
    'llvm.func hidden local_unnamed_addr @f() attributes {no_inline, passthrough = ["nounwind"]} { llvm.return }',
    'llvm.func @f() attributes {always_inline, dso_local, target_cpu = "sm_90"} { llvm.return }',
    "llvm.mlir.global internal constant @c(dense<1.000000e+00> : vector<4xf32>) {addr_space = 0 : i32} : vector<4xf32>",
    "llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>",
    'llvm.mlir.global internal constant @text("ab") {addr_space = 0 : i32}',
    "llvm.mlir.global private @v(1.500000e+00 : f32) {addr_space = 4 : i32, dso_local} : f32",
    "llvm.mlir.global internal thread_local @z(#llvm.zero) {addr_space = 0 : i32} : !llvm.array<2 x f32>",
    "llvm.mlir.global external @b() : i32 { %0 = llvm.mlir.constant(1 : i32) : i32\n llvm.return %0 : i32 }",
    "llvm.func ptx_kernelcc @k()",
    'llvm.func spir_funccc @f(%x: i8 {llvm.signext}) attributes {convergent, fp_contract = "fast", no_nans_fp_math = true} { llvm.return }',
    f"llvm.func @f() -> f32 attributes {{memory_effects = {EFFECTS}, no_unwind, will_return}}",
    'llvm.func @f() attributes {denormal_fp_math = "preserve-sign", frame_pointer = #llvm.framePointerKind<all>, inline_hint, '
    'no_inline, optimize_none, passthrough = ["a", ["b", "c"]], target_features = #llvm.target_features<["+ptx86"]>, '
    "uwtable_kind = #llvm.uwtableKind<async>}",
    'llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>, '
    '#llvm.mlir.module_flag<override, "probe-stack", "inline-asm">]',
    'module attributes {t.id = distinct[3]<"a">, t.none = [distinct[0]<>, #llvm.tbaa_root, #llvm.undef, #llvm.poison]} {}',
)


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    lines = LINES + METADATA
    branching = [line for line in lines if "^" in line]
    straight = [line.replace("%r", f"%r{n}") for n, line in enumerate(lines) if line not in branching]
    bodies = ["\n".join(straight[start : start + 20]) for start in range(0, len(straight), 20)] + branching
    modules = [*(in_function(body) for body in bodies), *MODULES]
    covered = assert_means_the_same(modules)
    assert_generic_form_is_read(modules)
    assert {op.name for op in llvm.LLVM.operations} - covered == set()


def in_function(line: str) -> str:
    return AROUND.format(arguments=ARGUMENTS, line=line)


def test_our_custom_text_is_mlirs():
    """Character by character, apart from names of values."""
    for line in LINES + METADATA:
        module = parse_ir(in_function(line))
        (function,) = [op for op in module.ops if isinstance(op, llvm.FuncOp) and op.sym_name.data == "f"]
        printed = " ".join(printed_line.strip() for printed_line in print_ir(function).splitlines()[1:-2])
        assert printed.replace("%0", "%r").replace(",", ", ").split() == line.replace(",", ", ").split()
