"""Bounds of random chains (`bounds.py`): they admit the results of correct kernels, and catch faults; `make bounds` runs 1,000 of them."""

import pytest
from runtime.bounds import KINDS, TYPES, WAYS, Way, draw_chain, evaluated, examine
from runtime.seeds import seeds

from xla_emitters.runtime.arrays import same_bits
from xla_emitters.runtime.reference.reference import evaluate


# In parts, so that several processes can share them.
@pytest.mark.parametrize("part", range(2))
def test_honest_kernels_are_admitted(part: int) -> None:
    for seed in seeds(6)[part::2]:
        outcome = examine(seed, 0, faults=0)
        assert not outcome.alarms, f"{outcome.alarms}\n{draw_chain(seed).text}"


def test_faults_that_are_felt_are_caught() -> None:
    """Of f32 chains of one family of blocks each; `make bounds` counts all."""
    outcomes = [examine(seed, 0, aimed=1) for seed in (0, 1, 2, 3, 4)]
    assert {(outcome.family, outcome.type) for outcome in outcomes} == {(kind, TYPES[0]) for kind in KINDS[:5]}
    assert sum(outcome.felt for outcome in outcomes) >= 8
    assert [outcome.missed for outcome in outcomes] == [[]] * 5


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_the_evaluator_is_one_of_hlo(seed: int) -> None:
    """With sums in sequence, and float64 values rounded once, it differs from the reference by what NumPy's f32 functions are off: with
    functions left out, not at all."""
    drawn = draw_chain(seed)
    exact, rounded = (evaluated(drawn.entry, drawn.inputs, way) for way in (None, WAYS[0]))
    assert exact.shape == rounded.shape
    (reference,) = evaluate(drawn.entry, drawn.inputs)
    assert abs(rounded.astype(float) - reference.astype(float)).max() <= 1e-5 * (1 + abs(exact).max())


def test_sums_in_sequence_are_the_references() -> None:
    """A dot of parameters alone, bit by bit."""
    drawn = next(chain for chain in map(draw_chain, range(0, 2000, 27)) if chain.text.count("(") < 12)
    (reference,) = evaluate(drawn.entry, drawn.inputs)
    assert same_bits(evaluated(drawn.entry, drawn.inputs, Way(0, "sequence", False)), reference)
