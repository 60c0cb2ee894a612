"""Buffers over time: every buffer has a rectangle, and those that live together do not overlap."""

from itertools import combinations
from pathlib import Path

import pytest

from xla_emitters.explore.compile import compile_text
from xla_emitters.explore.memory_plot import HEIGHT, lives, memory_plot
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.runtime.memory_history import AllocatedBuffer, Event, MemoryHistory

CORPUS = Path(__file__).parents[2] / "corpus"


@pytest.fixture(scope="module", params=["stablehlo/layer", "programs/until_large"])
def memory(request: pytest.FixtureRequest) -> MemoryHistory:
    program = compile_text((CORPUS / f"{request.param}.mlir").read_text(), "m.mlir")
    return program.memory(drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0))


def test_buffers_that_live_together_do_not_overlap(memory: MemoryHistory) -> None:
    found = lives(memory)
    assert len(found) == sum(event.what == "made" for event in memory.events)
    for a, b in combinations(found, 2):
        is_together = a.start < b.end and b.start < a.end
        assert not is_together or a.low + a.buffer.bytes <= b.low or b.low + b.buffer.bytes <= a.low


def test_buffers_of_the_peak_are_as_high_as_it(memory: MemoryHistory) -> None:
    found = {life.buffer: life.low + life.buffer.bytes for life in lives(memory)}
    assert max(found.values()) >= max(found[buffer] for buffer in memory.at_peak) == memory.peak


def test_a_buffer_that_is_freed_before_the_peak_is_not_below_it() -> None:
    """The first of three, freed when the third is made: the peak is the second and the third, which fill the drawing up to its line."""
    one, two, three = (
        AllocatedBuffer(name, line, "f32", (size,), 4 * size)
        for line, (name, size) in enumerate([("a", 1), ("b", 4), ("c", 4)])
    )
    memory = MemoryHistory(
        (
            Event(0, "made", one, 4),
            Event(1, "made", two, 20),
            Event(2, "freed", one, 16),
            Event(3, "made", three, 32),
            Event(4, "freed", two, 16),
        )
    )
    assert [life.low for life in lives(memory)] == [16, 0, 16]


def test_each_buffer_is_drawn_with_its_name(memory: MemoryHistory) -> None:
    drawn = memory_plot(memory).text
    assert drawn.count("<rect") == len(lives(memory))
    assert all(str(event.buffer) in drawn for event in memory.events)
    assert f"peak: {memory.peak} bytes" in drawn


def test_nothing_is_drawn_of_nothing() -> None:
    assert f'height="{HEIGHT}"' in memory_plot(MemoryHistory(())).text
