"""Kernels that read rows once are compared with NumPy on some of their rows; one that computes something else is found."""

from collections.abc import Callable

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


def why(view: FusionView, change: Callable[[ModuleOp], None] = lambda _: None) -> str | None:
    """What is said of the kernel of the rows, after a change."""
    found = stitched(view)
    assert isinstance(found, StitchedFusion)
    kernel = emit_stitched(view, device("h200"), rule_of(found, 132))
    change(kernel)
    return row_disagreement(kernel, view, kernel_arguments(view), (found.rows, found.columns))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the first arrays that are given to NumPy."""
    shapes, bounds = list[tuple[int, ...]](), row_agreement.evaluate_bounds

    def watched(computation: object, arrays: list[np.ndarray], **named: object) -> object:
        shapes.append(arrays[0].shape)
        return bounds(computation, arrays, **named)

    monkeypatch.setattr(row_agreement, "evaluate_bounds", watched)
    return shapes


@pytest.mark.parametrize("dims", [(700, 64), (64, 64), (5, 7, 40), (1, 200)])
def test_right_rows_agree(dims: tuple[int, ...]) -> None:
    """As many rows as columns: the weights have an element for each column all the same."""
    assert why(of(*dims)) is None


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
    assert why(view_of(entry_of(parse_hlo(text, "m")))) is None


def test_only_some_rows_are_computed(seen: list[tuple[int, ...]]) -> None:
    assert why(of(7000, 64)) is None
    assert seen == [(4 * 32 - 8, 64)]  # four blocks of 32 rows, of which the last has 24


def test_rows_that_differ_by_their_number_are_all_computed(seen: list[tuple[int, ...]]) -> None:
    """Weights for each of 7 rows, again and again: which of them a row has, its number says."""
    text = TEXT % ("50,7,64", 7, "50,7", 2, "50,7,64", "0,1", "50,7,64", "50,7,64", 1, "50,7,64")
    assert why(view_of(entry_of(parse_hlo(text, "m")))) is None
    assert seen == [(50, 7, 64)]


def test_a_wrong_kernel_is_named_by_its_first_row() -> None:
    def wrong(kernel: ModuleOp) -> None:
        op = next(op for op in kernel.walk() if isinstance(op, arith.SubfOp))
        Rewriter.replace_op(op, arith.AddfOp(op.lhs, op.rhs))

    said = why(of(700, 64), wrong)
    assert said is not None
    assert "are not within the bounds of the ops, the first in row 0" in said
