"""Conditions of `--fail-on`: which hold, and that anything but comparisons of fields is a usage error."""

import pytest
from unit.pricing.example import EXAMPLE

from xla_emitters.errors import UsageError
from xla_emitters.pricing.fail_on import FIELDS, condition


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("spills > 0", False),
        ("spills == 0", True),
        ("registers >= 24 and occupancy < 1", True),
        ("not occupancy < 1 or bound == 'memory'", True),
        ("0 < bytes_ratio <= 1.5", True),
        ("bytes_moved / bytes_needed > 2 * bytes_ratio", False),
        ("time > -1", True),
        ("bound != 'memory'", False),
        ("operations / shared_bytes > 1", False),  # of a kernel without shared memory: not a number
        ("bytes_needed_exact", True),
        ("occupancy < 80", True),  # it is 0.75: 80 is per cent, 0.8 a share
        ("occupancy < 0.8", True),
        ("occupancy < 50", False),
        ("50 < occupancy <= 75 and bandwidth == 40", True),
        ("occupancy * 100 < 50", False),
        ("registers < 50", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert condition(text).holds(EXAMPLE) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "spills >",
        "spill > 0",
        "spills",
        "'memory'",
        "bound > 'a'",
        "bound == 3",
        "classes['f32'] > 3",
        "__import__('os').system('true') == 0",
        "traffic.sampled > 3",
        "[x for x in ()] == 0",
        "(lambda: 1)() > 0",
        "occupancy and spills > 0",
        "-bound == 'x'",
        "registers ** 9 > 1",
        "time > 1j",
        "time > None",
        "spills > 0\nspills < 1",
        "a" * 5000,
        "(" * 500 + "time" + ")" * 500 + " > 0",
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        condition(text)
    assert raised.value.exit_code == 2


def test_an_unknown_field_is_answered_with_the_fields() -> None:
    for name, meant in (("ocupancy", "did you mean 'occupancy'? fields: "), ("zzzz", "fields: ")):
        with pytest.raises(UsageError) as raised:
            condition(f"{name} > 0")
        assert raised.value.help.startswith(meant)
        assert set(FIELDS) <= set(raised.value.help.replace(",", "").split())
