"""Kernels that read rows once: each way to compute softmax, norms and gradients of the real XLA, at odd sizes, within the ops' bounds.

The executor runs them under its sanitizer, as emitted and in the LLVM dialect; NumPy computes the HLO.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from long_lists import but_long
from runtime.row_modules import fusion_of, module_of

from xla_emitters.device import device
from xla_emitters.dialects.context import make_context
from xla_emitters.dtypes import dtype
from xla_emitters.explore.check.check import check
from xla_emitters.graph.buffers import array_spec, kernel_arguments
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.stitched_kernel import StitchedFusion, emit_stitched, stitched, ways_of
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.runtime.inputs import draw_inputs
from xla_emitters.runtime.layouts import from_buffer, to_buffer
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.simt.execute import execute
from xla_emitters.runtime.simt.sanitizer import Sanitizer


@dataclass(frozen=True)
class Case:
    name: str
    rows: int
    columns: int


CASES = (
    Case("softmax_f32", 7, 31),
    Case("softmax_f32", 1, 33),
    Case("softmax_bf16", 7, 257),
    Case("softmax_f16", 3, 4096),
    Case("log_softmax", 2, 10000),
    Case("rms_norm", 33, 64),
    Case("layer_norm", 3, 511),
    Case("layer_norm", 40, 256),
    Case("layer_norm_gradient", 3, 4096),
    Case("softmax_gradient", 5, 96),
)


# Three kinds: fewer columns than a warp has threads, and more.
LONG = (*CASES[1:5], *CASES[6:9])


@pytest.mark.parametrize("case", but_long(CASES, LONG), ids=str)
def test_every_way_is_right(case: Case) -> None:
    view = fusion_of(module_of(case.name, case.rows, case.columns))
    found, options, context = stitched(view), CompileOptions(record="none"), make_context()
    assert isinstance(found, StitchedFusion), found
    assert (found.rows, found.columns) == (case.rows, case.columns)
    specs, arguments = [array_spec(each) for each in view.parameter_types], kernel_arguments(view)
    inputs = draw_inputs(view.computation, specs, 0)
    (bounds,) = evaluate_bounds(view.computation, inputs, any_order=True)
    result = arguments[-1].array
    ways = ways_of(found)
    assert len(ways) > 1
    for way in ways:
        kernel = emit_stitched(view, device("h200"), way)
        for stage in ("xla_gpu", "llvm-dialect"):
            if stage == "llvm-dialect":
                for row in rows_of("kernel"):
                    run_pass(row.make(options), context, kernel)
            given = [to_buffer(array, spec) for array, spec in zip(inputs, specs, strict=True)]
            made = np.zeros(result.elements, dtype(result.dtype).numpy)
            execute(kernel, [*given, made], results=1, watchers=[Sanitizer()])
            assert bounds.admits(from_buffer(made, result)).all(), f"{way} at {stage}"


REDUCED_TWICE = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
sums { x = f32[3,2,4,4] parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[3,2,4] reduce(x, z), dimensions={3}, to_apply=add }
dots { x = f32[3,2,4,4] parameter(0)
  s = f32[3,2,4] parameter(1)
  w = f32[3,2,4] parameter(2)
  b = f32[3,2,4,4] broadcast(s), dimensions={0,1,2}
  y = f32[3,2,4,4] subtract(x, b)
  v = f32[3,2,4,4] broadcast(w), dimensions={0,1,3}
  q = f32[3,2,4,4] multiply(y, v)
  z = f32[] constant(0)
  d = f32[3,2,4] reduce(q, z), dimensions={3}, to_apply=add
  ROOT both = (f32[3,2,4], f32[3,2,4,4]) tuple(d, y) }
ENTRY e { x = f32[3,2,4,4] parameter(0)
  w = f32[3,2,4] parameter(1)
  s = f32[3,2,4] fusion(x), kind=kInput, calls=sums
  ROOT f = (f32[3,2,4], f32[3,2,4,4]) fusion(x, s, w), kind=kInput, calls=dots }
"""


def test_a_result_may_be_a_view_of_what_the_kernel_writes() -> None:
    """The last sums are computed as f32[24], and returned in another shape: a recurrence over matrices (RWKV 7) has such steps."""
    program = compile(REDUCED_TWICE, tune="auto")
    assert "stitch" in program.explain()
    assert len(program.kernels) == 1
    check(REDUCED_TWICE, tune="auto").raise_if_different()
