"""Which pairs of reductions are one reduction of rows, and that their kernel's values are NumPy's."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.steps_of_reductions import two_steps_of
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.text.hlo import parse_hlo

SUM = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
"""
STEPS = """t = f32[6,16,64] bitcast(x)
a = f32[6,16] reduce(t, z), dimensions={2}, to_apply=add
s = f32[6] reduce(a, z), dimensions={1}, to_apply=add"""


def entry(steps: str) -> str:
    return f"HloModule m\n{SUM}ENTRY e {{ x = f32[6,1024] parameter(0)\nz = f32[] constant(0)\n{steps}\nROOT r = f32[6] negate(s) }}"


def test_two_steps_are_one_reduction_of_rows() -> None:
    view = view_of(entry_of(parse_hlo(entry(STEPS), "m")))
    first, second = (op for op in view.instructions if isinstance(op, ReduceOp))
    assert two_steps_of(first) is None
    steps = two_steps_of(second)
    assert (steps.array, steps.first, steps.columns) == (view.parameters[0].result, first, 1024)


@pytest.mark.parametrize(
    "steps",
    [
        STEPS.replace("{1}, to_apply=add", "{1}, to_apply=max"),
        "y = f32[] constant(1)\n" + STEPS.replace("reduce(t, z)", "reduce(t, y)"),
        STEPS.replace("a =", "b =").replace("s =", "a = f32[6,16] negate(b)\ns ="),
        "v = f32[16,384] bitcast(x)\n" + STEPS.replace("bitcast(x)", "bitcast(v)"),  # not the rows of one array
    ],
)
def test_other_pairs_are_not(steps: str) -> None:
    view = view_of(entry_of(parse_hlo(entry(steps), "m")))
    assert [two_steps_of(op) for op in view.instructions if isinstance(op, ReduceOp)] == [None, None]


CHAIN = f"""HloModule m
{SUM}first {{ x = f32[6,1024] parameter(0)
  z = f32[] constant(0)
  t = f32[6,16,64] bitcast(x)
  ROOT a = f32[6,16] reduce(t, z), dimensions={{2}}, to_apply=add }}
second {{ a = f32[6,16] parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[6] reduce(a, z), dimensions={{1}}, to_apply=add }}
all {{ x = f32[6,1024] parameter(0)
  s = f32[6] parameter(1)
  b = f32[6,1024] broadcast(s), dimensions={{0}}
  ROOT q = f32[6,1024] divide(x, b) }}
ENTRY e {{ x = f32[6,1024] parameter(0)
  a = f32[6,16] fusion(x), kind=kInput, calls=first
  s = f32[6] fusion(a), kind=kInput, calls=second
  ROOT q = f32[6,1024] fusion(x, s), kind=kLoop, calls=all }}
"""


def test_a_chain_with_two_steps_is_one_kernel() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (6, 1024)).astype(np.float32)
    program = compile_module(parse_hlo(CHAIN, "m"), CompileOptions())
    assert [kernel.name for kernel in program.kernels] == ["q"]
    exact = x / x.astype(np.float64).sum(1, keepdims=True)
    for stage in ("graph", "xla_gpu", "llvm-dialect", "ptx"):
        np.testing.assert_allclose(program.run_cpu(x, stage=stage), exact, rtol=1e-5, err_msg=stage)
