"""Steps as plain data and back: those of programs with loops, branches, views and constants, and one of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.program.executable import Constants, Executable
from xla_emitters.program.steps import (
    Allocate,
    Branch,
    Call,
    Fill,
    Launch,
    Load,
    Loop,
    Move,
    Number,
    Place,
    Release,
    steps_within,
)

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = ("stablehlo/scan", "stablehlo/branches", "programs/given_trips", "loops/ends_early", "stablehlo/reversed")


def again(made: Executable) -> Executable:
    """Through the text of a file."""
    return Executable.from_json(json.loads(json.dumps(made.to_json())), made.constants, made.ops)


@pytest.fixture(scope="module")
def programs() -> list[Executable]:
    return [lowerings_of(xe.compile(CORPUS / f"{file}.mlir")).lowering.steps for file in FILES]


def test_steps_are_the_same_after_json(programs: list[Executable]) -> None:
    for made in programs:
        assert again(made) == made


def test_the_programs_have_many_kinds_of_steps(programs: list[Executable]) -> None:
    kinds = {type(step) for made in programs for step in steps_within(made.steps)}
    assert kinds >= {Allocate, Branch, Call, Launch, Load, Loop, Move, Release}


def test_bytes_are_text_in_between() -> None:
    place = Place(0, "s32", (Number(1), 2), on_device=False)
    steps = (Fill(place, bytes(range(256))), Release(0))
    made = Executable(
        (place,), (), steps, 1, 2, Constants([(place, lambda: np.zeros(2))]), {0: "x"}, (), frozenset((0,))
    )
    assert again(made) == made


@pytest.mark.parametrize(
    "step", [{"step": "Jump"}, {"step": "Release"}, {"step": "Release", "slot": 1, "also": 2}, {"slot": 1}]
)
def test_data_of_another_form_is_refused(step: dict[str, object]) -> None:
    place = Place(0, "f32", (), on_device=True)
    made = Executable((place,), (place,), (), 1, 0, Constants([]), {}, (), frozenset())
    with pytest.raises((LookupError, TypeError, ValueError)):
        Executable.from_json({**made.to_json(), "steps": [step]}, made.constants, ())
