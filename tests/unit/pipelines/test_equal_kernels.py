"""A module's equal kernels take the passes once; what they become is what each becomes by itself."""

import pytest

from xla_emitters.pipelines import compiler
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.equal_kernels import EqualKernels

LAYERS = 3


def layer(i: int) -> str:
    """The computations of one layer: a loop, and a sum of rows with its combiner."""
    return f"""
scaled_{i} {{
  x.{i} = f32[64,128] parameter(0)
  w.{i} = f32[128] parameter(1)
  b.{i} = f32[64,128] broadcast(w.{i}), dimensions={{1}}
  a.{i} = f32[64,128] add(x.{i}, b.{i})
  ROOT t.{i} = f32[64,128] tanh(a.{i})
}}
add_{i} {{
  l.{i} = f32[] parameter(0)
  r.{i} = f32[] parameter(1)
  ROOT s.{i} = f32[] add(l.{i}, r.{i})
}}
summed_{i} {{
  y.{i} = f32[64,128] parameter(0)
  zero.{i} = f32[] constant(0)
  ROOT sum.{i} = f32[64] reduce(y.{i}, zero.{i}), dimensions={{1}}, to_apply=add_{i}
}}"""


def calls(i: int) -> str:
    x = f"f{i - 1}" if i else "x"
    return f"""  f{i} = f32[64,128] fusion({x}, w), kind=kLoop, calls=scaled_{i}
  g{i} = f32[64] fusion(f{i}), kind=kInput, calls=summed_{i}
"""


MODEL = f"""HloModule model
{"".join(map(layer, range(LAYERS)))}
ENTRY main {{
  x = f32[64,128] parameter(0)
  w = f32[128] parameter(1)
{"".join(map(calls, range(LAYERS)))}  ROOT out = ({", ".join(["f32[64]"] * LAYERS)}) tuple({", ".join(f"g{i}" for i in range(LAYERS))})
}}
"""


def test_shared_kernels_have_the_code_and_remarks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remarks name the lines of their own kernel."""
    shared = compile(MODEL, record="none", cache=False)
    monkeypatch.setattr(compiler, "_may_share", lambda *_: False)
    alone = compile(MODEL, record="none", cache=False)
    assert shared.code == alone.code
    assert shared.kernels == alone.kernels
    for own, other in zip(shared.traces, alone.traces, strict=True):
        assert [(step.name, step.stage, step.remarks) for step in own.steps] == [
            (step.name, step.stage, step.remarks) for step in other.steps
        ]
    first, *others = (trace for trace in shared.traces if trace.name.startswith("g"))
    assert all(step.seconds for step in first.steps)
    for trace in others:
        assert any(not step.seconds for step in trace.steps)
    said = {trace.name: {r.place for step in trace.steps for r in step.remarks if r.place} for trace in shared.traces}
    assert any(said.values())
    for name, places in said.items():
        for place in places:
            assert f".{name[1:]} (" in place, (name, place)


def test_recorded_kernels_are_compiled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("shared, although texts are recorded")

    monkeypatch.setattr(EqualKernels, "finish", never)
    recorded = compile(MODEL, record="stages", cache=False)
    for trace in recorded.traces:
        assert f"sum.{trace.name[1:]}" in str(trace["llvm-dialect"].sources) or trace.name.startswith("f")
