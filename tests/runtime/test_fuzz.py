"""Random fusions (`fusion_fuzzer.py`, `hero_fuzzer.py`), executed at every stage, some after every pass, against the NumPy reference.

A failure prints seed and HLO text. `XLA_EMITTERS_TEST_CASES=1000` runs that many (`seeds.py`); `make fuzz` runs thousands, with PTX.
"""

import re

import pytest
from runtime.fusion_fuzzer import Fusion
from runtime.fuzz import ARCHITECTURES, problems_of
from runtime.hero_fuzzer import HEROES, draw_case
from runtime.seeds import seeds
from tools_here import SASS, needs

from xla_emitters.emitters.emit import opcodes_with_code
from xla_emitters.text.hlo import parse_hlo, print_hlo

HERO_KINDS = tuple(HEROES)


def judge(seed: int, fusion: Fusion, stages: str = "all", architectures: tuple[str, ...] = ()) -> None:
    """Executes the fusion at all those stages; fails if the numbers differ, or if it is refused."""
    try:
        # The verifier takes as long as everything else: it runs only for seeds that are executed after every pass.
        problems = problems_of(fusion, stages, architectures, verify=stages == "passes")
    except Exception as error:
        error.add_note(f"seed {seed}\n{fusion.text}")
        raise
    assert not problems, "\n".join((f"seed {seed}", *problems, fusion.text))


# In parts, so that several processes share them.
@pytest.mark.parametrize("part", range(4))
def test_every_stage_computes_what_the_reference_computes(part: int) -> None:
    for seed in seeds(8)[part::4]:
        judge(seed, draw_case(seed))


@pytest.mark.parametrize("kind", HERO_KINDS)
def test_heroes_of_every_kind_compute_what_the_reference_computes(kind: str) -> None:
    for seed in seeds(1, of_all=0.1):
        judge(seed, draw_case(seed, (kind,)))


def test_every_single_pass_keeps_the_numbers() -> None:
    for seed in seeds(4, of_all=0.1):
        judge(seed, draw_case(seed), "passes")


@needs(*SASS)
def test_ptxas_takes_what_is_drawn() -> None:
    for seed in seeds(4, of_all=0.1):
        judge(seed, draw_case(seed), "hlo", ARCHITECTURES)


def test_a_seed_is_one_fusion() -> None:
    """On every machine and in every process: the text of a seed can be had again."""
    for seed in range(20):
        fusion = draw_case(seed)
        assert fusion.text == draw_case(seed).text
        module = parse_hlo(fusion.text)
        assert module.is_structurally_equivalent(parse_hlo(print_hlo(module)))


@pytest.mark.long  # of the fuzzer itself
def test_every_op_with_code_is_drawn() -> None:
    drawn = {word for seed in range(500) for word in re.findall(r" ([a-z0-9-]+)\(", draw_case(seed).text)}
    assert set(opcodes_with_code()) - drawn == set()
