"""Random fusions (`fusion_fuzzer.py`), executed at every stage, some after every pass, against the NumPy reference.

A failure prints the seed and the HLO text. `XLA_EMITTERS_TEST_CASES=1000` runs that many (`seeds.py`).
"""

from __future__ import annotations

import pytest
from runtime.fusion_fuzzer import Fusion, draw_fusion
from runtime.seeds import seeds

from xla_emitters.explore.check import check
from xla_emitters.hlo_text import parse_hlo, print_hlo

TARGET = "t4"


def judge(seed: int, fusion: Fusion, stages: str) -> None:
    """Executes the fusion at all those stages; fails where the numbers differ, or where it is refused."""
    try:
        verdict = check(fusion.text, target=TARGET, stages=stages, inputs=fusion.inputs)
    except Exception as error:
        error.add_note(f"seed {seed}\n{fusion.text}")
        raise
    assert verdict.ok, "\n".join((f"seed {seed}", verdict.summary, *verdict.details, fusion.text))


@pytest.mark.parametrize(("stages", "cases"), [("all", seeds(40)), ("passes", seeds(8, of_all=0.1))])
def test_every_stage_computes_what_the_reference_computes(stages: str, cases: range) -> None:
    for seed in cases:
        judge(seed, draw_fusion(seed), stages)


def test_a_seed_is_one_fusion() -> None:
    """On every machine and in every process: the text of a seed can be had again."""
    for seed in range(20):
        fusion = draw_fusion(seed)
        assert fusion.text == draw_fusion(seed).text
        module = parse_hlo(fusion.text)
        assert module.is_structurally_equivalent(parse_hlo(print_hlo(module)))
