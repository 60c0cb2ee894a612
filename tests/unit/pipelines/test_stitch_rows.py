"""Which fusions become kernels that read rows once: by rule all that can, by price those that gain; the others have a reason."""

from dataclasses import replace
from typing import Any

import pytest
from runtime.row_modules import text_of
from tools_here import SASS, needs
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.errors import UsageError
from xla_emitters.graph.control_computations import fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import is_scheduled, view_of
from xla_emitters.pipelines.compiler import compile, with_splits
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.stitch_rows import StitchRowsPass
from xla_emitters.program import Program
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tuning import row_prices
from xla_emitters.tuning.row_prices import Option

SOFTMAX = text_of("softmax_f32", 64, 512)
ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"


def after(text: str, by: str = "rule") -> tuple[ModuleOp, str]:
    """The module after the pass, and its remarks."""
    module = parse_hlo(text, "m")
    with take_notes() as notes:
        StitchRowsPass(by=by, every=True).apply_to(module)
    return module, "\n".join(map(str, notes.remarks))


def stitched_in(module: ModuleOp) -> list[str]:
    views = [view_of(fusion) for fusion in fusions_run_by(entry_of(module))]
    return [view.name for view in views if is_scheduled(view)]


def test_a_fusion_for_triton_becomes_one_of_ours_under_its_name() -> None:
    module, _ = after(SOFTMAX)
    assert stitched_in(module) == ["triton_softmax.2"]
    (fusion,) = fusions_run_by(entry_of(module))
    assert view_of(fusion).other_compiler is None


def test_what_a_bitcast_and_a_constant_give_is_inside() -> None:
    text = f"""HloModule m
{ADD}
f {{ x = f32[8,64] parameter(0)
  z = f32[] parameter(1)
  s = f32[8] reduce(x, z), dimensions={{1}}, to_apply=add
  b = f32[8,64] broadcast(s), dimensions={{0}}
  ROOT y = f32[8,64] divide(x, b) }}
ENTRY e {{ p = f32[512] parameter(0)
  x = f32[8,64] bitcast(p)
  z = f32[] constant(0)
  ROOT y = f32[8,64] fusion(x, z), kind=kInput, calls=f }}"""
    module, _ = after(text)
    (fusion,) = fusions_run_by(entry_of(module))
    assert stitched_in(module) == ["y"]
    assert [operand.owner.opcode for operand in fusion.operands] == ["parameter"]
    assert len(compile(text, stage="hlo").parameters) == 1


def test_an_entry_that_is_one_kernel_is_scheduled_itself() -> None:
    text = f"""HloModule m
{ADD}
ENTRY e {{ x = f32[8,64] parameter(0)
  z = f32[] constant(0)
  s = f32[8] reduce(x, z), dimensions={{1}}, to_apply=add
  b = f32[8,64] broadcast(s), dimensions={{0}}
  ROOT y = f32[8,64] divide(x, b) }}"""
    assert is_scheduled(view_of(entry_of(after(text)[0])))


@pytest.mark.parametrize("again", ["negate(s)", "add(s, s)"])
def test_a_reduction_that_is_not_read_for_more_elements_is_no_candidate(again: str) -> None:
    text = f"""HloModule m
{ADD}
ENTRY e {{ x = f32[8,64] parameter(0)
  z = f32[] constant(0)
  s = f32[8] reduce(x, z), dimensions={{1}}, to_apply=add
  ROOT y = f32[8] {again} }}"""
    module, remarks = after(text)
    assert not is_scheduled(view_of(entry_of(module)))
    assert not remarks


def test_what_stays_has_a_remark() -> None:
    columns = SOFTMAX.replace("[64,512]{1,0}", "[64,512]{0,1}")
    module, remarks = after(columns)
    assert stitched_in(module) == []
    assert "its rows are not read once: not all of its arrays are row major" in remarks


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="no choice by 'luck'"):
        after(SOFTMAX, by="luck")


@pytest.fixture(scope="module")
def by_price() -> tuple[Program, tuple[Option[Any], ...]]:
    """The program by price, and the ways that were priced for it, XLA's plan first."""
    priced, seen = row_prices._priced, list[tuple[Option[Any], ...]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_prices, "_priced", lambda *arguments: seen.append(priced(*arguments)) or seen[-1])
        patch.setattr(row_prices, "_KNOWN", {})
        program = compile(SOFTMAX, tune="price", cache=False)
    (ways,) = seen
    return program, ways


@needs(*SASS)
def test_by_price_three_kernels_become_one(by_price: tuple[Program, Any]) -> None:
    split, (program, _) = compile(SOFTMAX, triton="split", cache=False), by_price
    assert [kernel.name for kernel in split.kernels] == [
        *("triton_softmax_2_reduce_0", "triton_softmax_2_reduce_1", "triton_softmax_2_epilogue")
    ]
    assert [kernel.name for kernel in program.kernels] == ["triton_softmax_2"]
    assert ".local" not in program.kernels[0].ptx  # a thread's own array is in registers
    assert "rows are read once" in program.explain()
    assert "XLA's plan: 3 kernels" in program.explain()


@needs(*SASS)
@pytest.mark.parametrize(("gain", "kernels"), [(1.01, 3), (0.97, 1)])
def test_a_plan_that_is_as_fast_stays(
    gain: float, kernels: int, by_price: tuple[Program, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kernel is taken from 2 % less time on."""
    plan, *ways = by_price[1]

    def fixed(*_: object) -> tuple[Option[Any], ...]:
        each = plan.time * gain
        return (plan, *(replace(way, costs=(replace(way.costs[0], time=each),)) for way in ways))

    monkeypatch.setattr(row_prices, "_priced", fixed)
    monkeypatch.setattr(row_prices, "_KNOWN", {})
    program = compile(SOFTMAX, tune="price", stage="graph", cache=False)
    assert len(fusions_run_by(entry_of(parse_hlo(program.code, "m")))) == kernels
    told = "\n".join(map(str, program.graph.remarks))
    assert ("XLA's plan is expected to be as fast" in told) == (kernels == 3)


@needs(*SASS)
def test_a_kernel_that_reads_rows_once_is_not_tried_in_parts() -> None:
    """One row of 16384 elements leaves all multiprocessors but one idle; a kernel that gives its sum and reads it again is not split."""
    text = f"""HloModule m
{ADD}
ENTRY e {{ x = f32[1,16384] parameter(0)
  z = f32[] constant(0)
  s = f32[1] reduce(x, z), dimensions={{1}}, to_apply=add
  b = f32[1,16384] broadcast(s), dimensions={{0}}
  y = f32[1,16384] divide(x, b)
  ROOT both = (f32[1], f32[1,16384]) tuple(s, y) }}"""
    found, _ = after(text)
    assert is_scheduled(view_of(entry_of(found)))
    options, remarks = with_splits(found, CompileOptions(tune="price"))
    assert options.splits == ()
    assert not remarks
