"""Each rewrite of a pass, with what it changed: by hand on small IR, and as sums over the passes of kernels; none unless asked for."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from long_lists import but_long
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir_printer import print_ir_with_lines
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.recorder import Recorder, op_counts
from xla_emitters.rewrite import recorded_rewrites
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.pass_table import made
from xla_emitters.rewrite.recorded_rewrites import record_rewrites, record_wanted
from xla_emitters.trace import Step, Trace

EXAMPLES = Path(__file__).parents[3] / "examples"
SUMS = """
func.func @f(%x: i32) -> i32 {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %0 = arith.addi %x, %one : i32
  %1 = arith.addi %0, %two : i32
  return %1 : i32
}
"""


class SumsToProducts(KernelPass):
    """Walks by itself."""

    name = "sums-to-products"

    def apply_to(self, op: ModuleOp) -> None:
        for each in [each for each in op.walk() if isinstance(each, arith.AddiOp)]:
            self.exchange(each)
        next(each for each in op.walk() if isinstance(each, arith.ConstantOp)).attributes["seen"] = arith.IntegerAttr(
            1, 1
        )

    def exchange(self, sum_: arith.AddiOp) -> None:
        Rewriter.replace_op(sum_, arith.MuliOp(sum_.lhs, sum_.rhs))


def steps_of(text: str, kernel_pass: ModulePass, record: str = "rewrites") -> Step:
    module, recorder = parse_ir(text), Recorder("f", record, False, None)
    recorder.run(kernel_pass, None, make_context(), module)
    return recorder.trace.steps[-1]


def test_each_pattern_with_the_op_that_it_matched() -> None:
    """(x + 1) + 2 is x + 3 by one pattern; what is unused then is erased, one op after the other."""
    step = steps_of(SUMS, made("xla-canonicalize"))
    first, *others = step.rewrites
    assert (first.pattern, first.op, first.line) == ("AddConstants", "arith.addi", 6)
    assert (first.added, first.erased) == (("arith.constant", "arith.addi"), ("arith.addi",))
    assert first.changed == ("func.return",)
    gone = {(each.pattern, each.op, each.erased) for each in others if each.erased}
    assert gone == {("dead code", f"arith.{op}", (f"arith.{op}",)) for op in ("addi", "constant")}
    assert [each.erased for each in others].count(("arith.constant",)) == 2
    assert step.rewrites[-1].ir == step.ir
    assert "arith.constant 3 : i32" in first.ir
    assert "arith.constant 2 : i32" in first.ir  # not dead yet


def test_a_pass_that_walks_by_itself_is_seen_as_it_erases() -> None:
    step = steps_of(SUMS, SumsToProducts())
    assert [(each.pattern, each.op, each.line, each.added, each.erased) for each in step.rewrites] == [
        ("SumsToProducts.exchange", "arith.addi", 5, ("arith.muli",), ("arith.addi",)),
        ("SumsToProducts.exchange", "arith.addi", 6, ("arith.muli",), ("arith.addi",)),
        ("the rest of the pass", "", 0, (), ()),
    ]
    assert [each.changed for each in step.rewrites] == [("arith.addi",), ("func.return",), ("arith.constant",)]


def counts_of(ir: str) -> Counter[str]:
    """By the parser and a walk, which the record does not use."""
    return Counter(op_counts(parse_ir(ir)))


@pytest.mark.parametrize(
    "name", but_long(["gelu.hlo", "transpose.hlo", "row_sum.hlo"], ["transpose.hlo", "row_sum.hlo"])
)
def test_what_was_added_and_erased_is_the_difference(name: str) -> None:
    """Over each pass: the ops before, with those added and without those erased, are the ops after. The code is the same."""
    plain = compile(EXAMPLES / name, cache=False, stage="llvm-dialect", record="passes").trace
    trace = compile(EXAMPLES / name, cache=False, stage="llvm-dialect", record="rewrites").trace
    assert [step.ir for step in trace] == [step.ir for step in plain]
    seen = Counter[str]()
    steps = [step for step in trace if step.stage not in ("hlo", "partition")]
    for before, step, is_changed in zip(steps, steps[1:], trace.changed()[-len(steps) + 1 :], strict=False):
        assert bool(step.rewrites) == is_changed
        if not is_changed:
            continue
        assert (step.rewrites[-1].ir, step.left_out) == (step.ir, 0)
        counts = counts_of(before.ir or "")
        for each in step.rewrites:
            counts.update(each.added)
            counts.subtract(each.erased)
        assert +counts == counts_of(step.ir or "")
        seen.update(each.pattern for each in step.rewrites)
    assert len(seen) > 10
    assert not any(step.rewrites for step in plain)
    assert Trace.from_json(trace.to_json()) == trace


def test_too_many_are_counted_and_are_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = steps_of(SUMS, made("xla-canonicalize"))
    monkeypatch.setattr(recorded_rewrites, "MOST_REWRITES", 2)
    step = steps_of(SUMS, made("xla-canonicalize"))
    assert step.rewrites[:2] == whole.rewrites[:2]
    assert [each.pattern for each in step.rewrites[2:]] == ["the rest of the pass"]
    assert step.left_out == len(whole.rewrites) - 2 > 1
    assert step.rewrites[-1].ir == step.ir == whole.ir


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    assert steps_of(SUMS, made("xla-canonicalize"), "passes").rewrites == ()
    assert record_wanted() is None

    def hook(*_: object) -> None:
        """Another profiler."""

    sys.setprofile(hook)
    try:
        with pytest.raises(ZeroDivisionError), record_rewrites(parse_ir(SUMS), print_ir_with_lines):
            raise ZeroDivisionError
        assert sys.getprofile() is hook
    finally:
        sys.setprofile(None)
    assert record_wanted() is None
