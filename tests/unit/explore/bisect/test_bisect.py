"""Which pass, element, thread and op are named; that a right compiler is not blamed; faults that the ends of stages do not show."""

import random
from pathlib import Path
from typing import Any

import pytest
from runtime.mutations import SWAPS, Mutation, bump_constant, negate_predicate, swap_operation
from runtime.planted_faults import row_name, wrong_op
from runtime.small_programs import EVERY_PASS_ON_HLO, PROGRAMS, TARGET
from unit.explore.check.test_check import TWO_KERNELS
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo import elementwise
from xla_emitters.dialects.mlir import arith
from xla_emitters.emitters.entry_function import KernelEntry
from xla_emitters.errors import InternalError
from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.bisect.blame import Culprit
from xla_emitters.graph import split_scatters
from xla_emitters.graph.fuse_entry import FuseEntryPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.transforms.erase_dead_functions import EraseDeadFunctionsPass
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass
from xla_emitters.transforms.lower_xla_to_scf import LowerXlaToScfPass

EXAMPLES = Path(__file__).parents[4] / "examples"


def found(text: str, **given: Any) -> Culprit:
    culprit = bisect(text, target=TARGET, blocks=16, **given).culprit
    assert culprit is not None
    return culprit


def swapped(name: str):
    """The last op of that name."""

    def choose(mutations: Any) -> Mutation:
        return [one for one in mutations if one.what.startswith(name) and one.apply is swap_operation][-1]

    return choose


def test_a_right_compiler_is_not_blamed() -> None:
    search = bisect(PROGRAMS["bytes"], target=TARGET)
    assert search.culprit is None
    assert search.kernels == 1


@pytest.mark.tiny
def test_the_pass_the_element_its_thread_the_op_and_its_instruction() -> None:
    """Element 0 of 41,000 is written by thread 0 of block 0: p = x*y became x+y after pass 12."""
    with wrong_op(12, swapped("arith.mulf")):
        culprit = found(PROGRAMS["ragged"])
    assert (culprit.kind, culprit.kernel, culprit.stage) == ("numbers", "fusion", "flat")
    assert (culprit.name, culprit.number) == (row_name(12), 12)
    assert (culprit.element.result, culprit.element.index) == ("r0", (0, 0))
    assert culprit.element.was == culprit.element.wanted != culprit.element.now
    assert (culprit.thread.block_id, culprit.thread.thread_id) == ((0, 0, 0), (0, 0, 0))
    assert "arith.addf" in culprit.blame.op
    assert culprit.blame.instructions == ("p",)
    assert any(line.startswith("-") and "arith.mulf" in line for line in culprit.blame.diff)
    assert any(line.startswith("+") and "arith.addf" in line for line in culprit.blame.diff)


@pytest.mark.parametrize("number", random.Random(0).sample(range(1, len(KERNEL)), 4))
def test_one_wrong_op_after_any_pass(number: int) -> None:
    """Of every row the one that is named, wherever it is between the ends of stages."""

    def choose(mutations: Any) -> Mutation:
        kinds = [one for one in mutations if any(one.what.startswith(name) for name in SWAPS) and "f" in one.what[:11]]
        return next((one for one in kinds if "mul" in one.what), kinds[0])

    with wrong_op(number, choose) as done:
        culprit = found(PROGRAMS["gelu"])
    assert done
    assert (culprit.name, culprit.number) == (row_name(number), number)


def test_far_fewer_executions_than_passes() -> None:
    with wrong_op(25, swapped("arith.mulf")):
        culprit = found(PROGRAMS["gelu"])
    assert culprit.number == 25
    assert culprit.executed < len(KERNEL) // 2


def test_emission_is_blamed_with_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """s = p - x is emitted as x - p: before that, all values of the thread are the reference's."""
    (row,) = [row for row in elementwise.ROWS if row.opcode == "subtract"]
    before = dict(row.code)

    def reversed_(e: Any, dt: Any, x: Any, y: Any) -> Any:
        return e.insert(arith.SubfOp(y, x)).result

    for kind in before:
        monkeypatch.setitem(row.code, kind, reversed_)
    culprit = found(PROGRAMS["ragged"])
    assert (culprit.name, culprit.number, culprit.stage) == ("emit", 0, "xla_gpu")
    assert culprit.blame.instructions == ("s",)


def test_a_race_names_the_accesses_and_no_other_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier that is not lowered: every op is new after the lowering, so none of them is named; what raced is."""
    apply = LowerToLlvmGpuPass.apply

    def without_barriers(self: LowerToLlvmGpuPass, ctx: Context, op: ModuleOp) -> None:
        for barrier in [inner for inner in op.walk() if inner.name == "gpu.barrier"]:
            Rewriter.erase_op(barrier)
        apply(self, ctx, op)

    monkeypatch.setattr(LowerToLlvmGpuPass, "apply", without_barriers)
    culprit = found((EXAMPLES / "transpose.hlo").read_text())
    assert (culprit.kind, culprit.name) == ("execution", "xla-lower-to-llvm-gpu")
    assert "a race" in culprit.summary
    assert (culprit.blame.op, culprit.blame.instructions) == ("", ())


def test_a_pass_on_hlo_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FuseEntryPass.apply

    def wrong(self: FuseEntryPass, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for inner in op.walk():
            if inner.name == "hlo.negate":
                inner.results[0].replace_all_uses_with(inner.operands[0])

    monkeypatch.setattr(FuseEntryPass, "apply", wrong)
    culprit = found(EVERY_PASS_ON_HLO)
    assert (culprit.name, culprit.kernel, culprit.stage) == ("xla-fuse-entry", "", "graph")
    assert culprit.element is not None


def test_an_array_that_is_written_over_too_early_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Module and kernels are right, each by itself: only an evaluation with buffers sees it."""

    def wrong(value: Any, fusion: Any, bodies: Any) -> bool:
        return True

    monkeypatch.setattr(split_scatters, "may_overwrite", wrong)
    culprit = found(EVERY_PASS_ON_HLO)
    assert (culprit.name, culprit.kernel, culprit.stage) == ("xla-split-scatters", "", "graph")
    assert "written over" in culprit.summary


def test_what_a_later_pass_hides_is_found_by_executing_after_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant is changed by one pass and changed back by another before the stage ends."""

    def bump(op: ModuleOp, by: float) -> None:
        for inner in op.walk():
            if isinstance(inner, arith.ConstantOp) and isinstance(inner.value, FloatAttr):
                inner.properties["value"] = FloatAttr(inner.value.value.data + by, inner.value.type)

    for kind, by in ((EraseDeadFunctionsPass, 1.0), (LowerXlaToScfPass, -1.0)):

        def wrong(self: Any, ctx: Context, op: ModuleOp, right: Any = kind.apply, by: float = by) -> None:
            right(self, ctx, op)
            bump(op, by)

        monkeypatch.setattr(kind, "apply", wrong)
    culprit = found(PROGRAMS["gelu"])
    assert culprit.name == EraseDeadFunctionsPass.name


@pytest.mark.parametrize("left_out", ["", "xla-cse"])
def test_a_pass_that_fails_is_named(left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the second kernel, also where `--pipeline` has fewer passes."""
    right, kernels = FlattenTensorsPass.apply, list[ModuleOp]()

    def fails(self: FlattenTensorsPass, ctx: Context, op: ModuleOp) -> None:
        kernels.append(op)
        if len(kernels) == 2:
            raise KeyError("no such tensor")
        right(self, ctx, op)

    monkeypatch.setattr(FlattenTensorsPass, "apply", fails)
    passes = tuple(each for each in (row.make(CompileOptions()) for row in KERNEL) if each.name != left_out)
    culprit = found(TWO_KERNELS, tune="xla", pipeline=passes if left_out else None)
    number = [each.name for each in passes].index(FlattenTensorsPass.name) + 1
    assert (culprit.kind, culprit.kernel, culprit.name, culprit.number) == (
        "crash",
        "b",
        FlattenTensorsPass.name,
        number,
    )
    assert isinstance(culprit.error, InternalError)


def test_the_number_of_a_pass_on_hlo_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It already fails while the kernels are planned, before anything is compared."""

    def fails(self: FuseEntryPass, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("no such instruction")

    monkeypatch.setattr(FuseEntryPass, "apply", fails)
    culprit = found(EVERY_PASS_ON_HLO)
    assert (culprit.kind, culprit.stage, culprit.name, culprit.number) == ("crash", "graph", FuseEntryPass.name, 10)


def test_the_kernel_of_an_emission_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kernel's function returns nothing, so it does not verify."""

    def wrong(self: KernelEntry, results: Any) -> None:
        pass

    monkeypatch.setattr(KernelEntry, "finish", wrong)
    culprit = found(PROGRAMS["bytes"])
    assert (culprit.kind, culprit.stage, culprit.name, culprit.number) == ("crash", "xla_gpu", "emit", 0)
    assert culprit.kernel == "fusion"


def test_the_kernel_is_named_and_others_are_not_searched() -> None:
    """Of eight kernels the one of which the third pass leaves a wrong sum."""
    with wrong_op(
        3, lambda mutations: next(one for one in mutations if one.apply in (bump_constant, negate_predicate))
    ):
        culprit = found(EVERY_PASS_ON_HLO)
    assert culprit.kernel
    assert culprit.number == 3
