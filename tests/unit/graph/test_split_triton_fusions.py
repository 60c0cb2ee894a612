"""Fusions of Triton and cuDNN: their parts compute the same, in all control computations; what has no code is not split, with a reason."""

from collections.abc import Sequence

import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dialects.locations import place_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.refusals import refuse_unsupported
from xla_emitters.graph.split_reductions import split_reductions
from xla_emitters.graph.split_results import SplitResultsPass
from xla_emitters.graph.split_triton_fusions import SplitTritonFusionsPass, split_triton_fusions
from xla_emitters.graph.view import view_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

COMPUTATIONS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  x = f32[] select(p, a, b)
  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y)
}
twice { a = f32[8,40] parameter(0)
  b = f32[8,40] add(a, a)
  c = f32[8,40] negate(a)
  ROOT t = (f32[8,40], f32[8,40]) tuple(b, c) }
doubled { a = f32[8,40] parameter(0)
  ROOT b = f32[8,40] add(a, a) }
"""
KIND = 'kind=kCustom, calls=body, backend_config={"fusion_backend_config":{"kind":"%s"}}'
X = np.linspace(-2, 3, 320, dtype=np.float32).reshape(8, 40)
W = np.linspace(1, -1, 200, dtype=np.float32).reshape(40, 5)

Call = tuple[str, Sequence[Array]]
PROGRAMS: dict[str, tuple[str, str, Sequence[Array], list[str]]] = {
    "rms norm": (
        """x = f32[8,40] parameter(0)
  q = f32[8,40] multiply(x, x)
  z = f32[] constant(0)
  s = f32[8] reduce(q, z), dimensions={1}, to_apply=add
  r = f32[8] rsqrt(s)
  b = f32[8,40] broadcast(r), dimensions={0}
  ROOT n = f32[8,40] multiply(x, b)""",
        "f32[8,40]",
        [X],
        ["f.reduce.0", "f.epilogue"],
    ),
    "prologue, dot, epilogue": (
        """x = f32[8,40] parameter(0)
  w = f32[40,5] parameter(1)
  e = f32[40,5] exponential(w)
  d = f32[8,5] dot(x, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[8,5] negate(d)""",
        "f32[8,5]",
        [X, W],
        ["f.prologue.0", "f.dot.0", "f.epilogue"],
    ),
    "a dot alone": (
        """x = f32[8,40] parameter(0)
  w = f32[40,5] parameter(1)
  ROOT d = f32[8,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, backend_config={"sizes":["16"]}""",
        "f32[8,5]",
        [X, W],
        ["f.dot.0"],
    ),
    "a convolution": (
        """x = f32[8,40] parameter(0)
  i = f32[1,8,40] bitcast(x)
  k = f32[40,5] parameter(1)
  w = f32[1,40,5] bitcast(k)
  c = f32[1,8,5] convolution(i, w), window={size=1}, dim_labels=b0f_0io->b0f
  ROOT n = f32[1,8,5] negate(c)""",
        "f32[1,8,5]",
        [X, W],
        ["i", "w", "f.convolution.0", "f.epilogue"],
    ),
    "nested fusions and calls": (
        """x = f32[8,40] parameter(0)
  t = (f32[8,40], f32[8,40]) fusion(x), kind=kLoop, calls=twice
  b = f32[8,40] get-tuple-element(t), index=0
  c = f32[8,40] get-tuple-element(t), index=1
  d = f32[8,40] call(b), to_apply=doubled
  ROOT s = f32[8,40] subtract(d, c)""",
        "f32[8,40]",
        [X],
        ["f"],
    ),
    "results of a tuple, one of them twice": (
        """x = f32[8,40] parameter(0)
  z = f32[] constant(0)
  s = f32[8] reduce(x, z), dimensions={1}, to_apply=add
  b = f32[8,40] broadcast(s), dimensions={0}
  n = f32[8,40] subtract(x, b)
  m = f32[320] bitcast(n)
  ROOT t = (f32[8], f32[8,40], f32[320], f32[8]) tuple(s, n, m, s)""",
        "(f32[8], f32[8,40], f32[320], f32[8])",
        [X],
        ["f.reduce.0", "f.epilogue", "m", "t"],
    ),
    "a reduction of several arrays": (
        """x = f32[8,40] parameter(0)
  i = s32[8,40] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  r = (f32[8], s32[8]) reduce(x, i, low, none), dimensions={1}, to_apply=larger
  top = f32[8] get-tuple-element(r), index=0
  b = f32[8,40] broadcast(top), dimensions={0}
  n = f32[8,40] subtract(x, b)
  at = s32[8] get-tuple-element(r), index=1
  ROOT t = (f32[8,40], s32[8]) tuple(n, at)""",
        "(f32[8,40], s32[8])",
        [X],
        ["f.reduce.0", "top", "f.epilogue", "at", "t"],
    ),
    "a reduction of several arrays as it is": (
        """x = f32[8,40] parameter(0)
  i = s32[8,40] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[8], s32[8]) reduce(x, i, low, none), dimensions={1}, to_apply=larger""",
        "(f32[8], s32[8])",
        [X],
        ["f"],
    ),
    "a parameter as result": (
        """x = f32[8,40] parameter(0)
  ROOT b = f32[320] bitcast(x)""",
        "f32[320]",
        [X],
        ["b"],
    ),
}


def program(body: str, result: str, inputs: Sequence[Array], kind: str = "__triton") -> str:
    types = [f"f32[{','.join(map(str, array.shape))}]" for array in inputs]
    parameters = "".join(f"  p{n} = {type} parameter({n})\n" for n, type in enumerate(types))
    operands = ", ".join(f"p{n}" for n in range(len(types)))
    return f"{COMPUTATIONS}body {{\n  {body}\n}}\nENTRY e {{\n{parameters}  ROOT f = {result} fusion({operands}), {KIND % kind}\n}}\n"


def names(computation: ComputationOp) -> list[str]:
    return [op.instruction_name.data for op in computation.instructions if op.opcode != "parameter"]


@pytest.mark.parametrize("case", PROGRAMS)
def test_the_parts_compute_what_the_fusion_does(case: str) -> None:
    """Bit for bit: every instruction keeps its value, only where it is computed changes."""
    body, result, inputs, made = PROGRAMS[case]
    before, after = (parse_hlo(program(body, result, inputs)) for _ in range(2))
    split_triton_fusions(after)
    after.verify()
    assert names(entry_of(after)) == made
    assert not any("backend_config" in op.attributes for op in after.walk())
    again = parse_hlo(print_hlo(after))
    one, two = evaluate(entry_of(before), inputs), evaluate(entry_of(again), inputs)
    assert [array.tobytes() for array in one] == [array.tobytes() for array in two]


@pytest.mark.parametrize("case", PROGRAMS)
def test_each_fusion_is_one_kernel(case: str) -> None:
    body, result, inputs, _ = PROGRAMS[case]
    module = parse_hlo(program(body, result, inputs))
    split_triton_fusions(module)
    before = print_hlo(module)
    SplitResultsPass().apply_to(module)
    assert print_hlo(module) == before
    for op in module.walk():
        if isinstance(op, FusionOp):
            refuse_unsupported(view_of(op))


def test_what_nothing_calls_any_more_is_gone() -> None:
    body, result, inputs, _ = PROGRAMS["nested fusions and calls"]
    module = parse_hlo(program(body, result, inputs))
    split_triton_fusions(module)
    left = {op.sym_name.data for op in module.ops if isinstance(op, ComputationOp)}
    assert left.isdisjoint({"body", "twice", "doubled", "body.inlined"})
    assert "larger" in left, "nothing called it before"


def test_instructions_keep_their_places() -> None:
    body, result, inputs, _ = PROGRAMS["prologue, dot, epilogue"]
    module = parse_hlo(program(body, result, inputs), "f.hlo")
    wanted = {op.instruction_name.data: place_of(op) for op in module.walk() if isinstance(op, HloOp)}
    split_triton_fusions(module)
    found = {op.instruction_name.data: place_of(op) for op in module.walk() if isinstance(op, HloOp)}
    assert {name: found[name] for name in "en"} == {name: wanted[name] for name in "en"}
    assert found["f.dot.0"].endswith(wanted["d"].partition(" ")[2])
    assert found["f.epilogue"].endswith(wanted["f"].partition(" ")[2])


@pytest.mark.parametrize(
    ("case", "kind", "said"),
    [
        ("rms norm", "__triton", "XLA would compile this with Triton (__triton); split into 2 fusions"),
        (
            "prologue, dot, epilogue",
            "__triton_gemm",
            "XLA would compile this with Triton (__triton_gemm); split into 1 dot and 2 fusions",
        ),
        (
            "a convolution",
            "__cudnn$fusion",
            "XLA would compile this with cuDNN (__cudnn$fusion); split into 1 convolution and 1 fusion",
        ),
        ("nested fusions and calls", "__triton", "XLA would compile this with Triton (__triton); made 1 fusion"),
    ],
)
def test_what_became_of_it_is_said(case: str, kind: str, said: str) -> None:
    body, result, inputs, _ = PROGRAMS[case]
    told = list[str]()
    module = parse_hlo(program(body, result, inputs, kind))
    split_triton_fusions(module, remark=lambda op, text: told.append(text))
    assert told == [f"%f: {said}"]


@pytest.mark.parametrize("kind", ["__custom_fusion", "__ynn_fusion", "something"])
def test_other_fusions_stay(kind: str) -> None:
    body, result, inputs, _ = PROGRAMS["rms norm"]
    module = parse_hlo(program(body, result, inputs, kind))
    before = print_hlo(module)
    split_triton_fusions(module)
    assert print_hlo(module) == before


WITHOUT_CODE = (
    """x = f32[8,40] parameter(0)
  b = u32[8,40] bitcast-convert(x)
  ROOT s = f16[8,40] stochastic-convert(x, b)""",
    "f16[8,40]",
    [X],
)


def test_what_has_no_code_is_said_and_refused_by_name() -> None:
    skipped = list[str]()
    module = parse_hlo(program(*WITHOUT_CODE))
    before = print_hlo(module)
    split_triton_fusions(module, skip=lambda op, text: skipped.append(text))
    assert print_hlo(module) == before
    assert skipped == ["no code for HLO op 'stochastic-convert' (instruction %s)"]
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp))
    with pytest.raises(
        Unsupported,
        match=r"fusion %f is of kind '__triton': no code for HLO op 'stochastic-convert' \(instruction %s\)",
    ):
        refuse_unsupported(view_of(fusion))


def test_on_request_it_is_refused_whole() -> None:
    """Also where a reduction in it is longer than one block can do: no pass on HLO looks inside."""
    long = """x = f32[1,4000000] parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[1] reduce(x, z), dimensions={1}, to_apply=add"""
    module = parse_hlo(program(long, "f32[1]", [np.zeros((1, 4000000), np.float32)]))
    before = print_hlo(module)
    SplitTritonFusionsPass("refuse").apply_to(module)
    SplitResultsPass().apply_to(module)
    split_reductions(module)
    assert print_hlo(module) == before
    with pytest.raises(Unsupported, match="fusion %f is of kind '__triton'") as caught:
        refuse_unsupported(view_of(next(op for op in module.walk() if isinstance(op, FusionOp))))
    assert "--triton=split" in caught.value.help


def test_fusions_of_loops_and_branches_are_split() -> None:
    body, result, inputs, _ = PROGRAMS["rms norm"]
    loop = f"""
again {{ x = f32[8,40] parameter(0)
  ROOT f = f32[8,40] fusion(x), {KIND % "__triton"} }}
go_on {{ x = f32[8,40] parameter(0)
  ROOT c = pred[] constant(false) }}
ENTRY e {{ p = f32[8,40] parameter(0)
  ROOT w = f32[8,40] while(p), condition=go_on, body=again }}
"""
    module = parse_hlo(program(body, result, inputs).partition("ENTRY")[0] + loop)
    split_triton_fusions(module)
    module.verify()
    again = next(op for op in control_computations(module) if op.sym_name.data == "again")
    assert names(again) == ["f.reduce.0", "f.epilogue"]


def test_two_calls_of_one_body() -> None:
    body, result, inputs, _ = PROGRAMS["nested fusions and calls"]
    second = f"ROOT g = {result} fusion(f), {KIND % '__triton'}\n}}\n"
    first, root, rest = program(body, result, inputs).rpartition("ROOT f")
    text = f"{first}f{rest[:-2]}{second}"
    assert root
    before, after = parse_hlo(text), parse_hlo(text)
    split_triton_fusions(after)
    after.verify()
    assert names(entry_of(after)) == ["f", "g"]
    assert evaluate(entry_of(after), inputs)[0].tobytes() == evaluate(entry_of(before), inputs)[0].tobytes()
