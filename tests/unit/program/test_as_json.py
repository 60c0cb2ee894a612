"""Steps as plain data and back: bytes, and data that no program wrote. Those of programs are in `test_program`."""

import json

import pytest

from xla_emitters.program.as_json import value_from_json, value_json
from xla_emitters.program.steps import ArrayPlace, Fill, NumberSlot, Release


def test_bytes_are_text_in_between() -> None:
    place = ArrayPlace(0, "s32", (NumberSlot(1), 2), on_device=False)
    steps = (Fill(place, bytes(range(256))), Release(0))
    assert value_from_json(json.loads(json.dumps(value_json(steps)))) == steps


@pytest.mark.parametrize(
    "step", [{"step": "Jump"}, {"step": "Release"}, {"step": "Release", "slot": 1, "also": 2}, {"slot": 1}]
)
def test_data_of_another_form_is_refused(step: dict[str, object]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        value_from_json([step])
