"""Every candidate for the work of a loop kernel's thread is right at all stages: fusions of the corpus, odd sizes, several results."""

from __future__ import annotations

from dataclasses import replace

import pytest
from runtime.corpus import CORPUS

from xla_emitters import device as devices
from xla_emitters.emitters.ways import Emitter, TunableEmitter
from xla_emitters.explore.check import check
from xla_emitters.pipelines import kernel_candidates
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.planning.host_steps import PlannedKernel


def take(number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes `tune="price"` take the candidate of this number, or the last one, unpriced; returns the names of those taken."""
    taken: list[str] = []

    def candidate(planned: PlannedKernel, options: CompileOptions, emitter: TunableEmitter) -> Emitter:
        ways = emitter.candidates(planned.view, options.device)
        chosen = ways[min(number, len(ways) - 1)]
        taken.append(chosen.name)
        return chosen.emitter

    monkeypatch.setattr(kernel_candidates, "cheapest_candidate", candidate)
    return taken


FILES = ("act_mish_f32.c03110cc", "int8_rowquant.72403cb8", "act_gelu_f32.7a8ac9a5")


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("name", FILES)
def test_fusions_of_the_corpus(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take(number, monkeypatch)
    verdict = check(CORPUS / "loop" / f"{name}.hlo", tune="price", blocks=4, verify=False, sanitize=False)
    assert verdict.ok, verdict
    assert " 0 of 0 " not in verdict.summary
    assert taken != ["4 a thread"]


def fused(result: str, body: str, *parameters: str) -> str:
    given = "\n".join(f"p{n} = {each} parameter({n})" for n, each in enumerate(parameters))
    names = ", ".join(f"p{n}" for n in range(len(parameters)))
    return f"f {{\n{given}\n{body} }}\nENTRY e {{\n{given}\nROOT r = {result} fusion({names}), kind=kLoop, calls=f }}\n"


ODD = {
    "last block not full": fused("f32[5,1012]", "ROOT n = f32[5,1012] negate(p0)", "f32[5,1012]"),
    "layout": fused("bf16[40,152]{0,1}", "ROOT n = bf16[40,152]{0,1} negate(p0)", "bf16[40,152]{0,1}"),
    "two results of two widths": fused(
        "(f32[3,1720], s8[3,1720])",
        "n = f32[3,1720] negate(p0)\nc = s8[3,1720] convert(p0)\nROOT t = (f32[3,1720], s8[3,1720]) tuple(n, c)",
        "f32[3,1720]",
    ),
    "a result of one element": fused(
        "(f32[4,2000], f32[])",
        "n = f32[4,2000] negate(p0)\ns = f32[] add(p1, p1)\nROOT t = (f32[4,2000], f32[]) tuple(n, s)",
        "f32[4,2000]",
        "f32[]",
    ),
    "rows that vectors cross": fused(
        "f32[4000,3]",
        "b = f32[4000,3] broadcast(p1), dimensions={1}\nROOT a = f32[4000,3] add(p0, b)",
        "f32[4000,3]",
        "f32[3]",
    ),
    "packed": fused("s4[9000]", "ROOT c = s4[9000] convert(p0)", "s8[9000]"),
}


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("name", ODD)
def test_odd_sizes(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole grids, the verifier after every pass, on a GPU so small that these arrays fill it."""
    small = replace(devices.device("h200"), name="small", cores=2)
    monkeypatch.setitem(devices._BY_NAME, "small", small)  # pyright: ignore[reportPrivateUsage] # no such GPU is sold
    taken = take(number, monkeypatch)
    verdict = check(ODD[name], tune="price", target="small")
    assert verdict.ok, verdict
    assert taken
