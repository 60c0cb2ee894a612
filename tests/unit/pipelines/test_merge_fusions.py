"""Which pairs of fusions become one kernel by `xla-merge-fusions`, and that the module's values do not change by a bit."""

import numpy as np
import pytest

from xla_emitters.dialects.verification import verify_ir
from xla_emitters.graph.control_computations import fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.merge_fusions import MergeFusionsPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

COMPUTATIONS = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
rows { x = f32[64,96] parameter(0)
  s = f32[2,96] slice(x), slice={[1:3], [0:96]}
  b = f32[2,96] reverse(s), dimensions={0}
  ROOT c = f32[66,96] concatenate(b, x), dimensions={0} }
columns { x = f32[66,96] parameter(0)
  s = f32[66,3] slice(x), slice={[0:66], [1:4]}
  b = f32[66,3] reverse(s), dimensions={1}
  ROOT c = f32[66,99] concatenate(b, x), dimensions={1} }
cubed { x = f32[64,96] parameter(0)
  t = f32[96,64] transpose(x), dimensions={1,0}
  q = f32[96,64] multiply(t, t)
  ROOT c = f32[96,64] multiply(q, t) }
beside { c = f32[96,64] parameter(0)
  x = f32[64,96] parameter(1)
  t = f32[96,64] transpose(x), dimensions={1,0}
  ROOT r = f32[96,64] add(c, t) }
back { c = f32[96,64] parameter(0)
  t = f32[64,96] transpose(c), dimensions={1,0}
  ROOT r = f32[64,96] negate(t) }
exp { x = f32[64,96] parameter(0)
  ROOT e = f32[64,96] exponential(x) }
neighbours { e = f32[64,96] parameter(0)
  a = f32[64,95] slice(e), slice={[0:64], [0:95]}
  b = f32[64,95] slice(e), slice={[0:64], [1:96]}
  ROOT r = f32[64,95] add(a, b) }
sum { e = f32[64,96] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[64] reduce(e, z), dimensions={1}, to_apply=add }
spread { s = f32[64] parameter(0)
  ROOT b = f32[64,96] broadcast(s), dimensions={0} }
negated { e = f32[64,96] parameter(0)
  ROOT n = f32[64,96] negate(e) }
"""


def entry(body: str) -> str:
    return f"{COMPUTATIONS}ENTRY e {{ x = f32[64,96] parameter(0)\n{body} }}\n"


PADDED = """a = f32[66,96] fusion(x), kind=kInput, calls=rows
ROOT b = f32[66,99] fusion(a), kind=kInput, calls=columns"""
CUBED = """a = f32[96,64] fusion(x), kind=kInput, calls=cubed
ROOT b = f32[96,64] fusion(a, x), kind=kInput, calls=beside"""
CHAIN = """a = f32[64,96] fusion(x), kind=kLoop, calls=exp
b = f32[64,96] fusion(a), kind=kLoop, calls=negated
ROOT c = f32[64,96] fusion(b), kind=kLoop, calls=exp"""


@pytest.mark.parametrize("body", [PADDED, CUBED, CHAIN])
def test_one_kernel_with_the_same_values(body: str) -> None:
    module, x = parse_hlo(entry(body), "m"), np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    wanted = evaluate(entry_of(module), [x])
    program = compile_module(module, CompileOptions(tune="auto", stage="llvm-dialect"))
    assert len(program.kernels) == 1
    np.testing.assert_allclose(program.run_cpu(x, stage="llvm-dialect"), wanted[0], rtol=1e-5)
    MergeFusionsPass().apply_to(module)
    verify_ir(module)
    assert len(fusions_run_by(entry_of(module))) == 1
    assert np.array_equal(evaluate(entry_of(module), [x])[0], wanted[0])


def test_xlas_choices_keep_xlas_kernels() -> None:
    found = {tune: compile_module(parse_hlo(entry(PADDED), "m"), CompileOptions(tune=tune)) for tune in ("xla", "")}
    assert {tune: len(program.kernels) for tune, program in found.items()} == {"xla": 2, "": 1}


@pytest.mark.parametrize(
    "body",
    [
        # Another instruction reads the first result.
        """a = f32[64,96] fusion(x), kind=kLoop, calls=exp
b = f32[64,96] fusion(a), kind=kLoop, calls=negated
ROOT t = (f32[64,96], f32[64,96]) tuple(a, b)""",
        # Each element is needed twice, or 96 times.
        """a = f32[64,96] fusion(x), kind=kLoop, calls=exp
ROOT b = f32[64,95] fusion(a), kind=kLoop, calls=neighbours""",
        """a = f32[64] fusion(x), kind=kInput, calls=sum
ROOT b = f32[64,96] fusion(a), kind=kLoop, calls=spread""",
        # A sum has its own emitter; a tile is read at the place that it was written for.
        """a = f32[64,96] fusion(x), kind=kLoop, calls=exp
ROOT b = f32[64] fusion(a), kind=kInput, calls=sum""",
        """a = f32[96,64] fusion(x), kind=kInput, calls=cubed
ROOT b = f32[64,96] fusion(a), kind=kInput, calls=back""",
    ],
)
def test_other_pairs_stay(body: str) -> None:
    module = parse_hlo(entry(body), "m")
    MergeFusionsPass().apply_to(module)
    assert len(fusions_run_by(entry_of(module))) == 2


SLICED = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[8,6] parameter(0)
  s = f32[8,6] sort(x), dimensions={0}, to_apply=less
  one = f32[1,6] slice(s), slice={[2:3], [0:6]}
  row = f32[6] reshape(one)
  ROOT t = f32[6] sort(row), dimensions={0}, to_apply=less }
"""


def test_a_pair_that_would_have_another_emitter_stays_as_it_was() -> None:
    """A slice and its reshape as one kernel would be a copy of memory."""
    program = compile_module(parse_hlo(SLICED, "m"), CompileOptions())
    x = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    assert np.array_equal(program.run_cpu(x), np.sort(np.sort(x, 0)[2]))
    assert "the memcpy emitter would compile it" in program.explain()
