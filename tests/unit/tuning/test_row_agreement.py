"""Kernels that read rows once are compared with NumPy on some of their rows; one that computes something else is found."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.device import device
from xla_emitters.dialects.mlir import arith
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.pipelines.stitched_kernel import StitchedFusion, emit_stitched, rule_of, stitched
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tuning import row_agreement
from xla_emitters.tuning.row_agreement import row_disagreement

TEXT = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[%s] parameter(0)
  w = f32[%d] parameter(1)
  z = f32[] constant(0)
  s = f32[%s] reduce(x, z), dimensions={%d}, to_apply=add
  b = f32[%s] broadcast(s), dimensions={%s}
  d = f32[%s] subtract(x, b)
  c = f32[%s] broadcast(w), dimensions={%d}
  ROOT y = f32[%s] multiply(d, c) }"""


def of(*dims: int) -> FusionView:
    full, rows = ",".join(map(str, dims)), ",".join(map(str, dims[:-1]))
    last, leading = len(dims) - 1, ",".join(map(str, range(len(dims) - 1)))
    text = TEXT % (full, dims[-1], rows, last, full, leading, full, full, last, full)
    return view_of(entry_of(parse_hlo(text, "m")))


def kernel_of(view: FusionView) -> tuple[ModuleOp, StitchedFusion]:
    found = stitched(view)
    assert isinstance(found, StitchedFusion)
    return emit_stitched(view, device("h200"), rule_of(found, 132)), found


@pytest.mark.parametrize("dims", [(700, 64), (64, 64), (5, 7, 40), (1, 200)])
def test_right_rows_agree(dims: tuple[int, ...]) -> None:
    """As many rows as columns: the weights have an element for each column all the same."""
    view = of(*dims)
    kernel, found = kernel_of(view)
    assert row_disagreement(kernel, view, kernel_arguments(view), (found.rows, found.columns)) is None


def test_the_readers_of_weights_are_walked_once() -> None:
    """Paths through 60 sums are 2^60. A fusion's rows are as many as its columns: only readers say what the sums are of."""
    sums = "".join(f"  v{i + 1} = f32[64] add(v{i}, v{i})\n" for i in range(60))
    text = f"""HloModule m
add {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }}
ENTRY e {{ x = f32[64,64] parameter(0)
  z = f32[] constant(0)
  v0 = f32[64] reduce(x, z), dimensions={{1}}, to_apply=add
{sums}  b = f32[64,64] broadcast(v60), dimensions={{0}}
  ROOT y = f32[64,64] subtract(x, b) }}"""
    view = view_of(entry_of(parse_hlo(text, "m")))
    kernel, found = kernel_of(view)
    assert row_disagreement(kernel, view, kernel_arguments(view), (found.rows, found.columns)) is None


def test_only_some_rows_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[int]()
    bounds = row_agreement.evaluate_bounds

    def watched(computation: object, arrays: list[object], **named: object) -> object:
        seen.append(len(arrays[0]))
        return bounds(computation, arrays, **named)

    monkeypatch.setattr(row_agreement, "evaluate_bounds", watched)
    view = of(7000, 64)
    kernel, found = kernel_of(view)
    assert row_disagreement(kernel, view, kernel_arguments(view), (found.rows, found.columns)) is None
    assert seen == [4 * 32 - 8]  # four blocks of 32 rows, of which the last has 24


def test_rows_that_differ_by_their_number_are_all_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights for each of 7 rows, again and again: which of them a row has, its number says."""
    seen = list[tuple[int, ...]]()
    bounds = row_agreement.evaluate_bounds

    def watched(computation: object, arrays: list[np.ndarray], **named: object) -> object:
        seen.append(arrays[0].shape)
        return bounds(computation, arrays, **named)

    monkeypatch.setattr(row_agreement, "evaluate_bounds", watched)
    text = TEXT % ("50,7,64", 7, "50,7", 2, "50,7,64", "0,1", "50,7,64", "50,7,64", 1, "50,7,64")
    view = view_of(entry_of(parse_hlo(text, "m")))
    kernel, found = kernel_of(view)
    assert row_disagreement(kernel, view, kernel_arguments(view), (found.rows, found.columns)) is None
    assert seen == [(50, 7, 64)]


def test_a_wrong_kernel_is_named_by_its_first_row() -> None:
    view = of(700, 64)
    kernel, found = kernel_of(view)
    op = next(op for op in kernel.walk() if isinstance(op, arith.SubfOp))
    Rewriter.replace_op(op, arith.AddfOp(op.lhs, op.rhs))
    why = row_disagreement(kernel, view, kernel_arguments(view), (found.rows, found.columns))
    assert why is not None
    assert "are not within the bounds of the ops, the first in row 0" in why
