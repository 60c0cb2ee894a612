"""Cumulative ops that were cut into several fusions become kernels that scan rows; their values are NumPy's."""

from collections.abc import Callable

import numpy as np
import pytest
from long_lists import but_long

from xla_emitters.dtypes import Array
from xla_emitters.graph.row_chains import chain_of_scan
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.text.hlo import parse_hlo

MODULE = """HloModule m
body {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {op}(a, b) }}
lasts {{ x = f32[{rows},{n}] parameter(0)
  z = f32[] constant({z})
  f = f32[{rows},{k},16] bitcast(x)
  t = f32[{rows},{k},16] reduce-window(f, z), window={{size=1x1x16 pad=0_0x0_0x{tile}}}, to_apply=body
  ROOT l = f32[{rows},{k},1] slice(t), slice={{[0:{rows}], [0:{k}], [{end}:{after}]}} }}
all {{ x = f32[{rows},{n}] parameter(0)
  l = f32[{rows},{k},1] parameter(1)
  z = f32[] constant({z})
  f = f32[{rows},{k},16] bitcast(x)
  t = f32[{rows},{k},16] reduce-window(f, z), window={{size=1x1x16 pad=0_0x0_0x{tile}}}, to_apply=body
  m = f32[{rows},{k}] bitcast(l)
  u = f32[{rows},{more}] reduce-window(m, z), window={{size=1x{k} pad=0_0x{row}}}, to_apply=body
  v = f32[{rows},{k}] slice(u), slice={{[0:{rows}], [{first}:{last}]}}
  b = f32[{rows},{k},16] broadcast(v), dimensions={{0,1}}
  s = f32[{rows},{k},16] {op}(t, b)
  ROOT q = f32[{rows},{k},16] negate(s) }}
ENTRY e {{ x = f32[{rows},{n}] parameter(0)
  l = f32[{rows},{k},1] fusion(x), kind=kLoop, calls=lasts
  q = f32[{rows},{k},16] fusion(x, l), kind=kLoop, calls=all
  ROOT r = f32[{rows},{n}] bitcast(q) }}
"""
OPS: dict[str, tuple[Callable[..., Array], str]] = {
    "add": (np.cumsum, "0"),
    "multiply": (np.cumprod, "1"),
    "maximum": (np.maximum.accumulate, "-inf"),
}


def module(rows: int, n: int, op: str = "add", *, is_reversed: bool = False) -> str:
    k = n // 16
    ends = {"tile": "0_15", "end": 0, "after": 1, "row": f"0_{k}", "first": 1, "last": k + 1}
    if not is_reversed:
        ends = {"tile": "15_0", "end": 15, "after": 16, "row": f"{k}_0", "first": 0, "last": k}
    return MODULE.format(rows=rows, n=n, k=k, more=k + 1, op=op, z=OPS[op][1], **ends)


ROWS = [
    (5, 32, "add", False),
    (5, 32, "maximum", True),
    (70, 48, "add", True),
    (3, 992, "multiply", False),
    (3, 4000, "add", True),
    (2, 16384, "add", False),
]


@pytest.mark.parametrize(
    ("rows", "n", "op", "is_reversed"),
    but_long(ROWS, [(2, 16384, "add", False)]),
)
def test_one_kernel_at_every_stage(rows: int, n: int, op: str, *, is_reversed: bool) -> None:
    x = np.random.default_rng(0).uniform(0.98, 1.02, (rows, n)).astype(np.float32)
    program = compile_module(parse_hlo(module(rows, n, op, is_reversed=is_reversed), "m"), CompileOptions())
    assert [kernel.name for kernel in program.kernels] == ["q"]
    flip = slice(None, None, -1 if is_reversed else 1)
    exact = -OPS[op][0](x.astype(np.float64)[:, flip], axis=1)[:, flip]
    # The row's whole sum, or a relative error of each of the products.
    most = (chain_of_scan(n, 1, 1) if op == "multiply" else 40) * 2.0**-24
    for stage in ("graph", "xla_gpu", "scf", "unrolled", "llvm-dialect", "ptx"):
        found = program.run_cpu(x, stage=stage)
        np.testing.assert_allclose(found, exact, rtol=n * 2.0**-24 if stage == "graph" else most, err_msg=stage)


@pytest.mark.parametrize("is_reversed", but_long([False, True], [False]))
def test_rows_that_no_block_holds_are_read_in_chunks(*, is_reversed: bool) -> None:
    x = np.random.default_rng(0).integers(-8, 9, (2, 65536)).astype(np.float32)
    program = compile_module(parse_hlo(module(2, 65536, is_reversed=is_reversed), "m"), CompileOptions())
    assert [kernel.name for kernel in program.kernels] == ["q_sums", "q_carried", "q_1"]
    flip = slice(None, None, -1 if is_reversed else 1)
    for stage in ("graph", "llvm-dialect", "ptx"):
        # Sums of integers of this size are exact in any order.
        assert np.array_equal(program.run_cpu(x, stage=stage), -np.cumsum(x[:, flip], 1)[:, flip]), stage


def test_xlas_choices_keep_xlas_kernels() -> None:
    program = compile_module(parse_hlo(module(5, 32), "m"), CompileOptions(tune="xla", stage="xla_gpu"))
    assert [kernel.name for kernel in program.kernels] == ["l", "q"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[15:16]", "[14:15]"),  # no scan
        ("ROOT r = f32[5,32] bitcast(q)", "ROOT r = (f32[5,2,16], f32[5,2,1]) tuple(q, l)"),
    ],
)
def test_other_fusions_stay(before: str, after: str) -> None:
    text = module(5, 32).replace(before, after)
    program = compile_module(parse_hlo(text, "m"), CompileOptions(stage="xla_gpu"))
    assert [kernel.name for kernel in program.kernels] == ["l", "q"]


def test_rows_without_chunks_stay_with_a_remark() -> None:
    """65537 is prime."""
    text = """HloModule m
body { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
c { x = f32[2,65537] parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[2,65537] reduce-window(x, z), window={size=1x65537 pad=0_0x65536_0}, to_apply=body }
n { x = f32[2,65537] parameter(0)
  ROOT s = f32[2,65537] negate(x) }
ENTRY e { x = f32[2,65537] parameter(0)
  y = f32[2,65537] fusion(x), kind=kLoop, calls=c
  ROOT q = f32[2,65537] fusion(y), kind=kLoop, calls=n }"""
    program = compile_module(parse_hlo(text, "m"), CompileOptions(stage="graph"))
    assert any("scan of rows of 65537 elements is not one kernel" in remark.text for remark in program.graph.remarks)
