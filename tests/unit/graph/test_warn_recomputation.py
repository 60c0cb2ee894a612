"""A warning if ENTRY is one kernel that recomputes much; none for XLA's fusions, and none for little recomputation."""

from pathlib import Path

import pytest

from xla_emitters.graph.warn_recomputation import WarnRecomputationPass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.tools.main import main

SOFTMAX = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY softmax {
  x = f32[512,512] parameter(0)
  e = f32[512,512] exponential(x)
  z = f32[] constant(0)
  s = f32[512] reduce(e, z), dimensions={1}, to_apply=add
  b = f32[512,512] broadcast(s), dimensions={0}
  ROOT d = f32[512,512] divide(e, b)
}
"""
FUSED = SOFTMAX.replace("ENTRY ", "").rstrip() + (
    "\nENTRY main { x = f32[512,512] parameter(0)\n ROOT f = f32[512,512] fusion(x), kind=kLoop, calls=softmax }"
)
N = 512 * 512
STEPS, ONCE = 2 * N * 512 + 2 * N, 4 * N


def warnings(text: str) -> list[str]:
    module = parse_hlo(text, "softmax.hlo")
    before = print_hlo(module)
    with take_notes() as notes:
        WarnRecomputationPass().apply_to(module)
    assert print_hlo(module) == before
    return [remark.text for remark in notes.remarks]


def test_the_numbers_are_said() -> None:
    assert warnings(SOFTMAX) == [
        f"one kernel takes {STEPS:,} steps where its instructions alone take {ONCE:,} ({STEPS // ONCE:,} times over), "
        "most of them again for %e"
    ]


@pytest.mark.parametrize("text", [FUSED, SOFTMAX.replace("512", "64")])
def test_nothing_is_said_of_fusions_and_of_little(text: str) -> None:
    """64 rows of 64 take half a million steps."""
    assert warnings(text) == []


@pytest.mark.parametrize("verb", [["compile", "--stage", "graph"], ["check", "--stages", "graph"]])
def test_verbs_print_it_and_go_on(verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "softmax.hlo"
    path.write_text(SOFTMAX)
    assert main([*verb, str(path)]) == 0
    _, err = capsys.readouterr()
    assert err.startswith(f"warning: one kernel takes {STEPS:,} steps")
    assert err.endswith(
        f"at e ({path}:7:3)\n  help: `xla-emitters optimize FILE` lets XLA choose the fusions; "
        "a program in StableHLO is divided into kernels here\n"
    )
