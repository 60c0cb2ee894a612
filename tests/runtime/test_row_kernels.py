"""Functions of rows that XLA gives to Triton, as modules: one kernel each, whose numbers are right at every stage.

`check` compares with the HLO in NumPy, within the bounds of its ops; three functions are compared with NumPy's formulas too.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from long_lists import but_long, every
from runtime.row_functions import NAMED, drawn, softmax
from xdsl.ir import SSAValue

from xla_emitters.dtypes import Array
from xla_emitters.dynamic.loops import row_rounds
from xla_emitters.dynamic.loops.combine import Reducer
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.explore.check.check import check
from xla_emitters.pipelines.compiler import compile

SHAPES = (
    # Rows, columns. One to three threads' worth of columns; parts of a warp; not divisible by a vector; a block.
    *(
        (99, 2),
        (95, 3),
        (92, 7),
        (93, 8),
        (5, 17),
        (4, 31),
        (33, 64),
        (2, 100),
        (3, 257),
        (7, 1000),
        (2, 1024),
        (1, 4093),
    ),
    *((2, 8192), (1, 16000)),
)
CASES = [
    (name, *shape, ("f32", "bf16", "f16")[(place + number) % 3])
    for place, name in enumerate(NAMED)
    for number, shape in enumerate(SHAPES)
]
SEEDS = [(seed, *SHAPES[seed * 5 % len(SHAPES)], ("f32", "bf16", "f16", "f32")[seed % 4]) for seed in range(60)]


def stitched_kernels(text: str) -> int:
    """How many kernels the module has; all of them read their rows once."""
    program = compile(text, stage="xla_gpu", record="none", cache=False)
    said = [each for trace in program.traces for each in trace.decisions if each.topic == "emitter"]
    assert [each.data["name"] for each in said] == ["stitch"] * len(program.kernels)
    return len(program.kernels)


@pytest.mark.parametrize(("name", "rows", "columns", "dtype"), every(17, CASES))
def test_a_function_of_rows_is_one_kernel_that_is_right(name: str, rows: int, columns: int, dtype: str) -> None:
    text = NAMED[name](rows, columns, dtype)
    assert stitched_kernels(text) == 1
    check(text, stages="xla_gpu,llvm-dialect", verify=False).raise_if_different()


@pytest.mark.parametrize(("seed", "rows", "columns", "dtype"), but_long(SEEDS, SEEDS[3:]))
def test_functions_drawn_from_a_seed(seed: int, rows: int, columns: int, dtype: str) -> None:
    """Some of them need nothing again: those are several kernels, and right as well."""
    check(drawn(seed, rows, columns, dtype), stages="xla_gpu,llvm-dialect", verify=False).raise_if_different()


def test_most_functions_drawn_from_a_seed_are_one_kernel() -> None:
    texts = [drawn(seed, 4, 64, "f32") for seed in range(4)]
    assert sum(len(compile(text, stage="xla_gpu", record="none", cache=False).kernels) == 1 for text in texts) >= 3


def test_a_row_that_fits_no_block_is_several_kernels() -> None:
    program = compile(softmax(2, 66560, "f32"), stage="xla_gpu", record="none", cache=False)
    assert len(program.kernels) > 1
    assert "rows of 66560 columns, 4 bytes each, do not fit a block" in program.explain()


def test_split_keeps_three_kernels() -> None:
    assert len(compile(softmax(4, 64, "f32"), triton="split", stage="xla_gpu", record="none", cache=False).kernels) == 3


def by_formula(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


@pytest.mark.parametrize("columns", every(4, [64, 3, 33, 1000, 8192]))
def test_softmax_against_numpys_formula(columns: int) -> None:
    """In f64, within 8 units of f32 for each of exp and the quotient, and one for each addition of the longest chain."""
    x = np.random.default_rng(columns).normal(size=(5, columns)).astype(np.float32)
    found = compile(softmax(5, columns, "f32"), record="none", cache=False).run_cpu(x)
    wanted = by_formula(x.astype(np.float64))
    assert np.abs(found / wanted - 1).max() <= (16 + 48) * 2**-24


def test_one_row_of_one_column_is_one() -> None:
    found = compile(softmax(3, 1, "f32"), record="none", cache=False).run_cpu(np.array([[2], [-7], [0]], np.float32))
    assert found.tolist() == [[1], [1], [1]]


@pytest.mark.parametrize("columns", every(2, [64, 1000]))
def test_a_round_that_is_left_out_is_found(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that are not combined: a warp's, and those of a part of a warp."""
    whole = row_rounds.over_lanes

    def one_less(code: KernelCode, reducer: Reducer, values: Sequence[SSAValue], lanes: int) -> list[SSAValue]:
        return whole(code, reducer, values, lanes // 2)

    monkeypatch.setattr(row_rounds, "over_lanes", one_less)
    verdict = check(softmax(4, columns, "f32"), stages="xla_gpu", verify=False)
    assert not verdict.ok
    assert "xla_gpu" in verdict.summary
