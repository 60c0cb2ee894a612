"""The choice by price: the cheapest candidate, unless it gains too little or computes something else; the default stays XLA's choice."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tools_here import SASS, needs

from xla_emitters.emitters.emitter import Way
from xla_emitters.errors import UsageError
from xla_emitters.explore.cost.cost import cost
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Program
from xla_emitters.trace import Decision
from xla_emitters.tuning import kernel_candidates
from xla_emitters.tuning.kernel_candidates import Candidate, in_order_of_choice
from xla_emitters.tuning.priced_kernels import Passes

GELU = Path(__file__).parents[3] / "examples" / "gelu.hlo"


def tuned(source: str | Path = GELU) -> tuple[Program, Decision | None]:
    program = compile(source, stage="xla_gpu", tune="price", cache=False)
    found = [each for each in program.traces[0].decisions if each.topic == "tune"]
    return program, found[0] if found else None


_PRICED: list[Candidate] = []
"""GELU's candidates with their costs: its four kernels are compiled once, for all tests that give them other times."""


def times(monkeypatch: pytest.MonkeyPatch, *given: float) -> None:
    """These times of GELU's candidates in place of the cost model's."""
    priced, left = kernel_candidates.priced_candidates, iter(given)

    def fixed(ways: Sequence[tuple[PlannedKernel, Way]], passes: Passes) -> list[Candidate]:
        _PRICED[:] = _PRICED or priced(ways, passes)
        return [
            replace(each, way=way, cost=replace(each.cost, time=next(left), bytes_needed=0))
            for each, (_, way) in zip(_PRICED, ways, strict=True)
        ]

    monkeypatch.setattr(kernel_candidates, "priced_candidates", fixed)


@needs(*SASS)
@pytest.mark.parametrize(
    ("given", "chosen", "blocks"),
    [
        ((9, 8, 7, 8), "8 a thread", 12288),
        ((9, 8, 9, 7), "2 x 8 a thread", 6144),
        ((7, 8, 8, 8), "4 a thread", 24576),
    ],
)
def test_the_cheapest_is_taken(
    given: tuple[float, ...], chosen: str, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    times(monkeypatch, *given)
    program, decision = tuned()
    assert decision.data["chosen"] == chosen
    assert [each["time"] for each in decision.data["candidates"]] == list(given)
    assert program.kernels[0].launch.grid == (blocks, 1, 1)


@needs(*SASS)
def test_instructions_decide_where_times_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    times(monkeypatch, 9, 8.9, 8.9, 8.9)
    program, decision = tuned()
    fewest = min(decision.data["candidates"], key=lambda each: each["grid_instructions"])
    assert decision.data["chosen"] == fewest["candidate"] != "4 a thread"
    assert "instructions (0." in decision.text
    assert program.kernels[0].launch.grid != (24576, 1, 1)


def candidate(name: str, time: float, instructions: int, bound: str = "memory") -> Candidate:
    """Only what the order of choice looks at."""
    cost = SimpleNamespace(time=time, instructions=instructions, blocks=10, threads=128, bound=bound)
    return cast(Candidate, SimpleNamespace(name=name, cost=cost))


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ([(10.0, 50)], "0"),  # as fast, with half the instructions
        ([(10.1, 50), (9.95, 90)], "0"),  # both cannot be told from the fastest
        ([(10.0, 99)], "XLA's"),  # 1 % fewer instructions are not worth another kernel
        ([(10.4, 50)], "XLA's"),  # slower
        ([(8.0, 400), (10.0, 50)], "0"),  # faster, by more than the model's margin
        ([(8.0, 400), (8.1, 300), (9.0, 50)], "1"),
    ],
)
def test_the_order_of_choice(others: list[tuple[float, int]], first: str) -> None:
    known = [candidate("XLA's", 10.0, 100), *(candidate(str(n), *each) for n, each in enumerate(others))]
    assert in_order_of_choice(known)[0].name == first


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ([(2.2, 400)], "XLA's"),  # what looks faster is not known to be
        ([(2.2, 400), (2.51, 50)], "1"),
        ([(2.7, 50)], "XLA's"),
    ],
)
def test_short_kernels_are_compared_by_instructions(others: list[tuple[float, int]], first: str) -> None:
    known = [candidate("XLA's", 2.5, 100, "launch"), *(candidate(str(n), *each) for n, each in enumerate(others))]
    assert in_order_of_choice(known)[0].name == first


@needs(*SASS)
def test_a_faster_candidate_of_a_short_kernel_that_is_not_taken_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA's choice is not the fastest: it is not said to be taken by expected times."""
    times(monkeypatch, 2.5, 2.3, 2.2, 2.1)
    priced = kernel_candidates.priced_candidates

    def short(ways: Sequence[tuple[PlannedKernel, Way]], passes: Passes) -> list[Candidate]:
        made = priced(ways, passes)
        return [
            replace(each, cost=replace(each.cost, bound="launch", instructions=9 if each is made[0] else 900))
            for each in made
        ]

    monkeypatch.setattr(kernel_candidates, "priced_candidates", short)
    _, decision = tuned()
    reason = "by instructions: where the launch takes longest, expected times are not compared. "
    assert decision.text.startswith(f"4 a thread, {reason}")


@needs(*SASS)
def test_a_candidate_with_other_numbers_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the two cheapest the first is said to be wrong."""
    times(monkeypatch, 9, 8, 7, 6)
    answers = iter(["argument 1: 3 of 8 elements differ", None])

    def answer(*_: object) -> str | None:
        return next(answers)

    monkeypatch.setattr(kernel_candidates, "disagreement", answer)
    _, decision = tuned()
    assert decision.data["chosen"] == "8 a thread"
    assert [each["wrong"] for each in decision.data["candidates"]] == [
        None,
        None,
        None,
        "argument 1: 3 of 8 elements differ",
    ]
    assert "2 x 8 a thread: 6 us, memory, not taken: argument 1: 3 of 8 elements differ" in decision.text


@needs(*SASS)
def test_gelu_by_price() -> None:
    """The figures of XLA's choice are those of `cost`; what is chosen is no slower, with twice the bytes under way or more."""
    _, decision = tuned()
    rows = {row["candidate"]: row for row in decision.data["candidates"]}
    assert list(rows) == ["4 a thread", "2 x 4 a thread", "8 a thread", "2 x 8 a thread"]
    (xlas,), (ours,) = cost(GELU).kernels, cost(GELU, tune="price").kernels
    assert rows["4 a thread"]["time"] == pytest.approx(xlas.time, rel=0.01)
    assert rows[decision.data["chosen"]]["time"] == pytest.approx(ours.time, rel=0.01)
    assert ours.time < xlas.time
    assert ours.bytes_in_flight >= 2 * xlas.bytes_in_flight


def test_one_candidate_is_not_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_candidates, "priced_candidates", None)
    odd = "f {\n p = f32[3,5,7] parameter(0)\n ROOT n = f32[3,5,7] negate(p)\n}"
    program, decision = tuned(odd)
    assert decision.text == "1 a thread, the only candidate"
    assert program.code == compile(odd, stage="xla_gpu").code


@needs(*SASS)
def test_a_small_transpose_keeps_xlas_tiles() -> None:
    program, decision = tuned(GELU.with_name("transpose.hlo"))
    assert decision.data["chosen"] == "tiles as XLA's"
    assert program.code == compile(GELU.with_name("transpose.hlo"), stage="xla_gpu", cache=False).code


def test_the_default_is_xlas_choice() -> None:
    program = compile(GELU, stage="xla_gpu", cache=False)
    assert [each.topic for each in program.traces[0].decisions if each.topic == "tune"] == []
    assert program.kernels[0].launch.grid == (24576, 1, 1)


def test_programs_with_unknown_sizes_have_no_price() -> None:
    from xla_emitters.explore.compile import compile_text

    text = GELU.with_name("softmax.mlir").read_text()
    with pytest.raises(UsageError, match="--tune price is for modules of HLO text"):
        compile_text(text, "softmax.mlir", CompileOptions(tune="price"))
