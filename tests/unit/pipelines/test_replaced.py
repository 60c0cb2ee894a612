"""A kernel that a person wrote takes the place of a compiled one: the passes go on from it, and `check` and `bisect` judge it."""

import re
from pathlib import Path

import pytest

import xla_emitters as xe
from xla_emitters.errors import UsageError, VerifyError
from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.pipelines.options import Replacement
from xla_emitters.runtime.cpu.cpu_launcher import STAGES
from xla_emitters.tools.main import main

HLO = """HloModule m
%fused (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  %c = f32[] constant(3)
  %b = f32[64]{0} broadcast(%c), dimensions={}
  ROOT %m = f32[64]{0} multiply(%p, %b)
}
ENTRY %main (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  ROOT %fusion = f32[64]{0} fusion(%p), kind=kLoop, calls=%fused
}
"""


def unnamed(code: str) -> str:
    """Names of values are hints, which the text of a kernel has no others for."""
    return re.sub(r"%[\w.]+", "%", code)


@pytest.mark.parametrize("stage", STAGES)
def test_the_passes_go_on_from_it(stage: str) -> None:
    """The same IR changes nothing; another constant makes this stage wrong, and no earlier one."""
    text = xe.compile(HLO, cache=False, stage=stage).code
    same = Replacement(stage, text, "same.mlir")
    whole = xe.compile(HLO, cache=False, stage=STAGES[-1], replaced=(same,))
    assert unnamed(whole.code) == unnamed(xe.compile(HLO, cache=False, stage=STAGES[-1]).code)
    assert whole.trace[stage].name == "xla-replace-kernel"
    assert whole.trace[stage].sources == xe.compile(HLO, cache=False, stage=stage, record="passes").trace[stage].sources
    other = text.replace("3.000000e+00", "4.000000e+00")
    assert other != text
    verdict = xe.check(HLO, replaced=(Replacement(stage, other, "other.mlir"),))
    assert not verdict.ok
    assert verdict.summary.startswith(stage)
    assert "64" in verdict.summary


def test_bisect_names_the_replacement_and_its_thread() -> None:
    text = xe.compile(HLO, cache=False, stage="flat").code.replace("3.000000e+00", "4.000000e+00")
    found = bisect(HLO, replaced=(Replacement("flat", text),)).culprit
    assert (found.name, found.stage) == ("xla-replace-kernel", "flat")
    assert found.thread is not None
    assert found.blame.op.startswith("%cst = arith.constant 4.000000e+00")


def test_what_does_not_fit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = xe.compile(HLO, cache=False, stage="flat").code
    with pytest.raises(UsageError, match="its entry is @other, and no kernel has this name"):
        xe.compile(HLO, cache=False, replaced=(Replacement("flat", text.replace("@fusion", "@other")),))
    with pytest.raises(UsageError, match="no kernel is replaced at stage 'ptx'"):
        xe.compile(HLO, cache=False, replaced=(Replacement("ptx", text),))
    two = (
        text.rstrip().removesuffix("}")
        + "  "
        + "\n".join(text.rstrip().splitlines()[1:]).strip().replace("@fusion", "@other")
    )
    line = next(number for number, each in enumerate(two.splitlines(), 1) if "@other" in each)
    with pytest.raises(VerifyError, match=rf"two.mlir:{line}:.* the module has 2 entry functions(?s:.*)--fusion NAME"):
        xe.compile(HLO, cache=False, replaced=(Replacement("flat", two, "two.mlir"),))
    module = tmp_path / "m.hlo"
    module.write_text(HLO)
    assert main(["check", str(module), "--replace", "flat"]) == 2
    assert "it is not STAGE=FILE.mlir" in capsys.readouterr().err
    assert main(["check", str(module), "--replace", f"flat={tmp_path / 'none.mlir'}"]) == 2
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(text.replace("3.000000e+00", "5.000000e+00"))
    assert main(["check", str(module), "--replace", f"flat={wrong}"]) == 3
