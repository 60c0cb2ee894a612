"""Which stages may differ in bits from the one before, what is refused, which kernel and pass is blamed for wrong numbers."""

from dataclasses import replace

import pytest
from long_lists import but_long
from runtime.small_programs import EVERY_PASS_ON_HLO, TARGET
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import NumbersDiffer, Unsupported, UsageError
from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.module_stages import CheckOptions
from xla_emitters.explore.check.verdict import depends_on_iteration_order
from xla_emitters.graph import select_fusion, split_reductions
from xla_emitters.lowering import libdevice_calls
from xla_emitters.text.hlo import parse_hlo

ONE = '#xla_gpu.indexing_map<"(th_x)[s0] -> (s0 * 4 + th_x), domain: th_x in [0, 3], s0 in [0, 5]">'
TWO = '#xla_gpu.indexing_map<"(th_x)[s0, s1] -> (s0 * 6 + s1 * 4 + th_x), domain: th_x in [0, 3], s0 in [0, 5], s1 in [0, 1]">'


def summing(map: str, variables: str) -> ModuleOp:
    """Of the elements of a tensor, in a scalar."""
    return parse_ir(f"""
func.func @k(%in: tensor<64xf32>, %t: index, %zero: f32) -> f32 {{
  %sum = xla_gpu.loop (%t)[{variables}] -> (%at) in {map} iter_args(%so_far = %zero) -> (f32) {{
    %x = tensor.extract %in[%at] : tensor<64xf32>
    %more = arith.addf %so_far, %x : f32
    xla_gpu.yield %more : f32
  }}
  return %sum : f32
}}""")


def copying(map: str, variables: str) -> ModuleOp:
    """Of the elements of a tensor, to another."""
    return parse_ir(f"""
func.func @k(%in: tensor<64xf32>, %t: index, %out: tensor<64xf32>) -> tensor<64xf32> {{
  %all = xla_gpu.loop (%t)[{variables}] -> (%at) in {map} iter_args(%so_far = %out) -> (tensor<64xf32>) {{
    %x = tensor.extract %in[%at] : tensor<64xf32>
    %more = tensor.insert %x into %so_far[%at] : tensor<64xf32>
    xla_gpu.yield %more : tensor<64xf32>
  }}
  return %all : tensor<64xf32>
}}""")


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (summing(TWO, "%i, %j"), True),
        (summing(ONE, "%i"), False),
        (copying(TWO, "%i, %j"), False),
        (copying(ONE, "%i"), False),
    ],
    ids=["sum over two", "sum over one", "copy over two", "copy over one"],
)
def test_peeling_may_change_bits_where_a_value_is_handed_on_over_several_variables(module: ModuleOp, expected: bool):
    assert depends_on_iteration_order(module) == expected


@pytest.mark.parametrize(
    ("type", "root", "message"),
    [
        (
            "f32[<=8]",
            "f32[<=8] negate(x)",
            "no code for dimensions only known at run time (f32[<=8]) for HLO op 'parameter'",
        ),
        ("f32[8]", "token[] outfeed(x, none)", "no library function for HLO op 'outfeed'"),
        (
            "f32[8]",
            'f32[8] custom-call(x), custom_call_target="mine"',
            "no library function for custom call target 'mine': the target is not known here for HLO op 'custom-call'",
        ),
    ],
)
def test_what_has_no_code_is_refused_before_inputs_are_drawn(type: str, root: str, message: str):
    text = f"ENTRY main {{\n  x = {type} parameter(0)\n  none = token[] after-all()\n  ROOT made = {root}\n}}"
    with pytest.raises(Unsupported) as caught:
        check(text)
    assert caught.value.message.partition(" (instruction")[0] == message
    assert caught.value.place is not None


def test_some_blocks_answer_for_no_element_that_shares_a_byte_with_theirs():
    """Elements 426 and 427 lie in one byte: thread 0 of block 2 writes the first, thread 127 of block 1 the second."""
    verdict = check(
        """fused {
  p = s4[100,2] parameter(0)
  q = s4[100,3] parameter(1)
  ROOT c = s4[100,5] concatenate(p, q), dimensions={1}
}""",
        blocks=2,
    )
    assert verdict.ok, verdict.summary


# ---- faults of the compiler: the kernel, the stage and the pass are named ----

TWO_KERNELS = """
HloModule two_kernels
first {
  %x = f32[20] parameter(0)
  ROOT %c = f32[20] cbrt(%x)
}
second {
  %t = f32[20] parameter(0)
  %y = f32[20] parameter(1)
  %z = f32[] constant(0)
  %zs = f32[20] broadcast(%z), dimensions={}
  %hidden = f32[20] multiply(%t, %zs)
  %s = f32[20] sine(%y)
  ROOT %r = f32[20] add(%hidden, %s)
}
ENTRY main {
  %x = f32[20] parameter(0)
  %y = f32[20] parameter(1)
  %a = f32[20] fusion(%x), kind=kLoop, calls=first
  ROOT %b = f32[20] fusion(%a, %y), kind=kLoop, calls=second
}
"""
LIBDEVICE = "xla-convert-math-to-libdevice"


def calling_tan_for(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the pass to libdevice. Of kernel a, which makes a temporary, nothing shows in the result."""
    called = libdevice_calls._CALLED
    monkeypatch.setitem(called, op, replace(called[op], libdevice="tan", has_fast=False))


@pytest.mark.parametrize("stages", ["all", "passes"])
def test_without_a_fault_both_kernels_are_right(stages: str):
    good = check(TWO_KERNELS, stages=stages, tune="xla")
    assert good.ok, good.details
    assert [(kernel.name, kernel.ok) for kernel in good.kernels] == [("a", True), ("b", True)]


@pytest.mark.parametrize(("op", "wrong", "right"), [("math.cbrt", "a", "b"), ("math.sin", "b", "a")])
@pytest.mark.parametrize(("stages", "blamed"), [("all", "llvm-dialect"), ("passes", LIBDEVICE), ("llvm-dialect",) * 2])
def test_the_wrong_kernel_and_what_made_it_wrong(
    op: str, wrong: str, right: str, stages: str, blamed: str, monkeypatch: pytest.MonkeyPatch
):
    calling_tan_for(op, monkeypatch)
    verdict = check(TWO_KERNELS, stages=stages, tune="xla")
    verdicts = {kernel.name: kernel for kernel in verdict.kernels}
    assert (verdict.ok, verdicts[wrong].ok, verdicts[right].ok) == (False, False, True)
    name = {"a": "t0", "b": "r0"}[wrong]
    differs = f"{blamed}: differs from the NumPy reference: {name}: " if stages != "passes" else f"{blamed} changes "
    assert verdict.summary.startswith(f"kernel {wrong}: {differs}"), verdict.summary
    assert verdicts[wrong].summary == verdict.summary.removeprefix(f"kernel {wrong}: ")
    assert verdicts[right].summary.startswith("20 of 20 elements")
    with pytest.raises(NumbersDiffer, match=f"kernel {wrong}: {blamed}"):
        verdict.raise_if_different()


def test_both_kernels_wrong(monkeypatch: pytest.MonkeyPatch):
    """The first is in the summary, both in the details; the second is judged on what the first should have made."""
    for op in ("math.cbrt", "math.sin"):
        calling_tan_for(op, monkeypatch)
    verdict = check(TWO_KERNELS, tune="xla")
    assert verdict.summary.startswith("kernel a: llvm-dialect: differs from the NumPy reference: t0: 20 of 20")
    assert [kernel.ok for kernel in verdict.kernels] == [False, False]
    assert any(line.startswith("llvm-dialect: differs from the NumPy reference: r0: ") for line in verdict.details)


def test_the_only_kernel_has_no_verdict_of_its_own(monkeypatch: pytest.MonkeyPatch):
    calling_tan_for("math.cbrt", monkeypatch)
    verdict = check(TWO_KERNELS, fusion="a")
    assert verdict.summary.startswith("llvm-dialect: differs from the NumPy reference: r0: 20 of 20")
    assert verdict.kernels == ()


BLAMED = [
    (stages, blamed, fusion)
    for stages, blamed in (("all", "graph"), ("graph", "graph"), ("passes", "xla-split-reductions"))
    for fusion in (None, "c")
]


# After every pass, all kernels: each pass is compared with one fusion, and all kernels at every stage.
@pytest.mark.parametrize(("stages", "blamed", "fusion"), but_long(BLAMED, [("passes", "xla-split-reductions", None)]))
def test_a_wrong_pass_on_hlo(stages: str, blamed: str, fusion: str | None, monkeypatch: pytest.MonkeyPatch):
    """Parts of a sum that begin with 1: the kernels compute what the HLO says, so the fault is in the module.

    Without it the module is right: `test_passes_keep_meaning`.
    """
    monkeypatch.setattr(split_reductions, "identities_needed", lambda hero: (1,))
    verdict = check(EVERY_PASS_ON_HLO, target=TARGET, stages=stages, fusion=fusion)
    assert not verdict.ok
    assert verdict.summary == f"{blamed}: differs from the NumPy reference: r0: 3 of 3 elements"
    assert len(verdict.kernels) == (2 if fusion else 7)  # the copy that a pass inserts is a step
    assert all(kernel.ok for kernel in verdict.kernels)


OTHER = """other {
  %x = f32[20] parameter(0)
  ROOT %n = f32[20] negate(%x)
}
ENTRY main {"""


def test_a_wrong_choice_of_a_fusion(monkeypatch: pytest.MonkeyPatch):
    """Another one than was asked for, of as many operands."""
    right = select_fusion.fusion_named
    monkeypatch.setattr(select_fusion, "fusion_named", lambda module, name: right(module, {"a": "b"}[name]))
    text = TWO_KERNELS.replace("fusion(%a, %y), kind=kLoop, calls=second", "fusion(%a), kind=kLoop, calls=other")
    verdict = check(text.replace("ENTRY main {", OTHER), stages="passes", fusion="a")
    assert verdict.summary.startswith("xla-select-fusion: differs")


# ---- what is asked for ----


@pytest.mark.parametrize(
    ("stages", "message", "help"),
    [
        ("sass", "stage 'sass' cannot be executed", "all, passes, or of: hlo, graph, xla_gpu,"),
        ("scf,nowhere", "stage 'nowhere' cannot be executed", "all, passes, or of: hlo"),
        ("scf,passes", "'passes' is not combined with stages", "--stages passes"),
        ("all,scf", "'all' is not combined with stages", "--stages all"),
    ],
)
def test_stages_that_there_are_not(stages: str, message: str, help: str):
    with pytest.raises(UsageError) as raised:
        CheckOptions(stages)
    assert raised.value.message == message
    assert raised.value.help.startswith(help)


def test_what_a_comparison_wants():
    assert [CheckOptions("scf,flat").wants(stage) for stage in ("scf", "flat", "hlo", None)] == [
        True,
        True,
        False,
        False,
    ]
    assert [CheckOptions("all").wants(stage) for stage in ("scf", None)] == [True, False]
    assert [CheckOptions("passes").wants(stage) for stage in ("scf", None)] == [True, True]
    assert [CheckOptions(stages).last_stage for stages in ("flat,scf", "all", "passes")] == [
        *("flat", "llvm-dialect", "llvm-dialect")
    ]
    with pytest.raises(UsageError, match="-3 blocks cannot be run"):
        CheckOptions(blocks=-3)


UNREACHED = """
next { i = s32[4] parameter(0)
  j = s32[4] parameter(1)
  k = s32[4] multiply(j, j)
  ROOT n = s32[4] add(i, k) }
body { s = (s32[4], s32[4]) parameter(0)
  i = s32[4] get-tuple-element(s), index=0
  j = s32[4] get-tuple-element(s), index=1
  twice = s32[4] fusion(j, j), kind=kLoop, calls=next
  n = s32[4] fusion(i, twice), kind=kLoop, calls=next
  ROOT t = (s32[4], s32[4]) tuple(n, j) }
never { s = (s32[4], s32[4]) parameter(0)
  ROOT no = pred[] constant(false) }
ENTRY main { s = (s32[4], s32[4]) parameter(0)
  ROOT w = (s32[4], s32[4]) while(s), condition=never, body=body }
"""


def test_kernels_that_nothing_reaches_get_one_array_for_each_buffer():
    """`twice` is given one array twice; `n` is written over what it reads."""
    verdict = check(UNREACHED, stages="xla_gpu,llvm-dialect", tune="xla")
    assert verdict.ok, verdict.summary
    drawn = [kernel.name for kernel in verdict.kernels if kernel.summary.endswith("nothing reaches it")]
    assert drawn == ["twice", "n"]


def test_a_module_that_gives_nothing():
    assert check("ENTRY main { p = f32[2] parameter(0)\n ROOT e = () tuple() }").ok
    text = """ENTRY main { p = f32[2] parameter(0)
      n = f32[2] negate(p)
      e = () tuple()
      ROOT t = (f32[2], ()) tuple(n, e) }"""
    verdict = check(text)
    assert verdict.ok
    assert [str(spec) for spec in verdict.program.results] == ["f32[2]"]


TRITON_IN_A_LOOP = """
triton { x = f32[4,8] parameter(0)
  e = f32[4,8] exponential(x)
  ROOT n = f32[4,8] negate(e) }
body { s = f32[4,8] parameter(0)
  ROOT f = f32[4,8] fusion(s), kind=kCustom, calls=triton, backend_config={"fusion_backend_config":{"kind":"__triton"}} }
never { s = f32[4,8] parameter(0)
  ROOT no = pred[] constant(false) }
ENTRY main { x = f32[4,8] parameter(0)
  ROOT w = f32[4,8] while(x), condition=never, body=body }
"""


def test_a_fusion_for_triton_in_a_loop_is_checked_alone():
    """The loop's body still calls what the fusion called, and is verified after every pass."""
    assert check(TRITON_IN_A_LOOP, fusion="f").ok


TWICE = """
count { i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one) }
few { i = s32[] parameter(0)
  three = s32[] constant(3)
  ROOT p = pred[] compare(i, three), direction=LT }
double { i = s32[] parameter(0)
  ROOT d = s32[] add(i, i) }
goes_on { i = s32[] parameter(0)
  ROOT p = pred[] fusion(i), kind=kLoop, calls=few }
counted { i = s32[] parameter(0)
  ROOT j = s32[] fusion(i), kind=kLoop, calls=count }
ENTRY main { i = s32[] constant(1)
  first = s32[] while(i), condition=goes_on, body=counted
  again = s32[] fusion(first), kind=kLoop, calls=double
  ROOT last = s32[] while(again), condition=goes_on, body=counted }
"""


def test_a_kernel_that_two_loops_launch_has_its_place_at_the_first():
    verdict = check(TWICE)
    assert verdict.ok
    kernels = verdict.program.kernels
    assert [kernel.name for kernel in kernels] == ["i_1", "p", "j", "again"]


SWAPPED = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }
less { p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  ROOT r = f32[8] subtract(p, q) }
ENTRY main { x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a = f32[8] fusion(x, y), kind=kLoop, calls=less
  b = f32[8] fusion(y, x), kind=kLoop, calls=less
  ROOT t = (f32[8], f32[8]) tuple(b, a) }
"""


def test_a_parameter_that_was_given_away_is_not_written_over_before_its_last_reader():
    verdict = check(SWAPPED, stages="llvm-dialect")
    assert verdict.ok, verdict.summary


@pytest.mark.parametrize("stages", ["hlo", "all"])
def test_text_that_reads_back_as_another_module_is_found(stages: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "fusion {\n  p = f32[40] parameter(0)\n  c = f32[] constant(2)\n  b = f32[40] broadcast(c), dimensions={}\n"
    text += "  ROOT r = f32[40] multiply(p, b)\n}\n"
    assert check(text, stages=stages).ok

    def read(text: str, name: str) -> ModuleOp:
        return parse_hlo(text.replace("(2)", "(3)"), name)

    monkeypatch.setattr("xla_emitters.explore.check.module_stages.parse_hlo", read)
    monkeypatch.setattr("xla_emitters.runtime.cpu.cpu_launcher.parse_hlo", read)
    verdict = check(text, stages=stages)
    assert not verdict.ok
    assert verdict.summary == "hlo: 40 elements change when the text is read back"
