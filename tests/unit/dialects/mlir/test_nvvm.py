"""Every op of the `nvvm` dialect keeps its meaning through our text and back, as MLIR 22 sees it."""

import re

import pytest
from unit.dialects.mlir_opt import assert_means_the_same, generic_text

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import nvvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError

REGISTERS = [f"{kind}.{dim}" for kind in ("tid", "ctaid", "ntid", "nctaid") for dim in "xyz"]
REGISTERS += [f"lanemask.{order}" for order in ("eq", "le", "lt", "ge", "gt")]
REGISTERS += nvvm.OTHER_REGISTERS
LINES = (
    *(f"%r = nvvm.read.ptx.sreg.{name} : i32" for name in (*REGISTERS, "laneid", "warpid", "warpsize")),
    "%r = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32",
    "%r = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 24576> {note} : i32",
    "nvvm.barrier0",
    "nvvm.barrier",
    "nvvm.barrier id = %i",
    "nvvm.barrier id = %i number_of_threads = %i",
    *(f"%r = nvvm.shfl.sync {kind} %i, %x, %i, %i : f32 -> f32" for kind in ("bfly", "up", "down", "idx")),
    "%r = nvvm.shfl.sync down %i, %x, %i, %i {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>",
    *(f"%r = nvvm.barrier #nvvm.reduction<{kind}> %i -> i32" for kind in ("popc", "and", "or")),
    "nvvm.bar.warp.sync %i : i32",
    *(f"%r = nvvm.redux.sync {kind} %i, %i : i32 -> i32" for kind in "add and or xor max min umax umin".split()),
    "%r = nvvm.redux.sync fmin %x, %i {abs = true, nan = true} : f32 -> f32",
    "%r = nvvm.redux.sync fmax %x, %i : f32 -> f32",
    "%r = nvvm.elect.sync -> i1",
    "%r = nvvm.elect.sync %i -> i1",
    *(f"%r = nvvm.vote.sync {kind} %i, %c -> i1" for kind in ("all", "any", "uni")),
    "%r = nvvm.vote.sync ballot %i, %c -> i32",
    "%r = nvvm.match.sync any %i, %j : i64 -> i32",
    "%r = nvvm.match.sync all %i, %i : i32 -> !llvm.struct<(i32, i1)>",
    "%r = nvvm.rcp.approx.ftz.f %x : f32",
    *(f"%r = nvvm.read.ptx.sreg.{name} : i32" for name in ("clock", "globaltimer.lo")),
    *(f"%r = nvvm.read.ptx.sreg.{name} : i64" for name in ("clock64", "globaltimer")),
    *(f"nvvm.memory.barrier <{scope}>" for scope in ("cta", "cluster", "gpu", "sys")),
    "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}",
    "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}",
    *(f"nvvm.{op}" for op in ("fence.mbarrier.init", "fence.sc.cluster", "breakpoint", "cp.async.commit.group")),
    *(f"nvvm.cluster.{op} {{aligned}}" for op in ("arrive", "arrive.relaxed", "wait")),
    "nvvm.nanosleep %i",
    "nvvm.setmaxregister decrease 80",
    "nvvm.mbarrier.init %s, %i : !llvm.ptr<3>, i32",
    "nvvm.mbarrier.init %s, %i, predicate = %c : !llvm.ptr<3>, i32, i1",
    "nvvm.mbarrier.inval %s : !llvm.ptr<3>",
    "%r = nvvm.mbarrier.arrive %s : !llvm.ptr<3> -> i64",
    "%r = nvvm.mbarrier.arrive %s, %i {relaxed = true, scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3> -> i64",
    "%r = nvvm.mbarrier.test.wait %s, %j : !llvm.ptr<3>, i64 -> i1",
    "nvvm.mbarrier.try_wait.parity %s, %i, %i : !llvm.ptr<3>, i32, i32",
    "nvvm.cp.async.shared.global %s, %g, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>",
    "nvvm.cp.async.shared.global %s, %g, 16, cache = cg, %i : !llvm.ptr<3>, !llvm.ptr<1>, i32",
    "nvvm.cp.async.wait.group 0",
    "nvvm.cp.async.mbarrier.arrive %s {noinc = true} : !llvm.ptr<3>",
    "nvvm.griddepcontrol wait",
    "nvvm.griddepcontrol launch_dependents",
)
TARGETS = (
    "#nvvm.target",
    '#nvvm.target<chip = "sm_90">',
    '#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["a.bc", "b.bc"]>',
    '#nvvm.target<chip = "sm_80", flags = {fast, ftz}>',
    "#nvvm.target<verifyTarget = false>",
)


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    lines = [line.replace("%r", f"%r{number}") for number, line in enumerate(LINES)]
    modules = [in_function("\n".join(lines[start : start + 20])) for start in range(0, len(lines), 20)]
    modules += [f"module attributes {{llvm.target = {target}}} {{}}" for target in TARGETS]
    covered = assert_means_the_same([*modules, *generic_text(modules)])
    assert {op.name for op in nvvm.NVVM.operations} - covered == set()


def in_function(body: str) -> str:
    arguments = "%c: i1, %i: i32, %j: i64, %x: f32, %s: !llvm.ptr<3>, %g: !llvm.ptr<1>"
    return f"llvm.func @f({arguments}) {{\n{body}\nllvm.return }}"


def test_our_custom_text_is_mlirs():
    """But for the barrier that an mlir-opt cannot read back with its location."""
    for line in LINES:
        if not line.startswith(("nvvm.barrier", "%r = nvvm.barrier")):
            (function,) = parse_ir(in_function(line)).ops
            assert print_ir(function).splitlines()[1].strip().replace("%0", "%r") == line


def test_the_scope_of_a_barrier_is_read_with_its_name_too():
    """As MLIR reads it."""
    (function,) = parse_ir(in_function("nvvm.memory.barrier #nvvm.mem_scope<gpu>")).ops
    assert print_ir(function).splitlines()[1].strip() == "nvvm.memory.barrier <gpu>"


def test_a_register_is_built_with_its_range():
    op = nvvm.THREAD_ID["x"]((0, 128))
    assert print_ir(op) == "%0 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32"


def test_a_target_has_no_other_parameters():
    with pytest.raises(ParseError, match=r"#nvvm\.target has no 'arch'"):
        parse_ir('module attributes {target = #nvvm.target<arch = "sm_90">} {}')


def test_a_range_of_floats_is_refused_where_it_stands():
    with pytest.raises(ParseError, match="a range is of integers") as caught:
        parse_ir(in_function("%r = nvvm.read.ptx.sreg.tid.x range <f32, 0, 128> : i32"))
    assert caught.value.place.line == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = nvvm.read.ptx.sreg.tid.x : i64", "Expected attribute i32 but got i64"),
        ("%r = nvvm.shfl.sync bfly %i, %x, %i, %i : f32 -> i32", "gives f32, not i32"),
        (
            '%r = "nvvm.shfl.sync"(%i, %x, %i, %i) {kind = #nvvm<shfl_kind bfly>} : (i32, f32, i32, i32) -> i64',
            "gives f32, not i64",
        ),
        ("%r = nvvm.redux.sync add %x, %i : f32 -> f32", "'add' is of i32, not of f32"),
        ("%r = nvvm.redux.sync fmin %i, %i : i32 -> i32", "'fmin' is of f32, not of i32"),
        ("%r = nvvm.vote.sync ballot %i, %c -> i1", "'ballot' gives i32, not i1"),
        ("%r = nvvm.match.sync all %i, %i : i32 -> i32", "'all' gives !llvm.struct<(i32, i1)>, not i32"),
        ("nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>}", "a fence of the async.shared proxy needs a space"),
        ("nvvm.fence.proxy {kind = #nvvm.proxy_kind<generic>}", "there is no fence of the generic proxy"),
        (
            "nvvm.cp.async.shared.global %s, %g, 5, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>",
            "copies 5 bytes; it can be 4, 8, 16",
        ),
        ("nvvm.cp.async.shared.global %s, %g, 8, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>", "it can only copy 16"),
        (
            "nvvm.cp.async.shared.global %s, %g, 8, cache = lu : !llvm.ptr<3>, !llvm.ptr<1>",
            "its cache is lu; it can be ca, cg",
        ),
        ("nvvm.setmaxregister increase 17", "sets 17 registers; it must be a multiple of 8"),
        ("nvvm.barrier number_of_threads = %i", "but no barrier id"),
    ],
)
def test_what_the_hardware_does_not_have_is_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=re.escape(message)):
        parse_ir(in_function(line))
