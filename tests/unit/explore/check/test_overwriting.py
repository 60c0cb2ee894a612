"""Values where fusions write over their operands, by hand."""

import numpy as np
import pytest

from xla_emitters.explore.check.overwriting import declares_overwrites, evaluate_overwriting
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

TEXT = """HloModule m
negated {{ a = f32[4] parameter(0)  ROOT n = f32[4] negate(a) }}
ENTRY main {{
  p = f32[4] parameter(0)
  a = f32[4] fusion(p), kind=kLoop, calls=negated
  b = f32[4] bitcast(a)
  n = f32[4] fusion(a), kind=kLoop, calls=negated{aliasing}
  ROOT r = (f32[4], f32[4], f32[4]) tuple({results})
}}
"""
OVER = ", output_to_operand_aliasing={{}: (0, {})}"
GIVEN = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("aliasing", "results", "signs"),
    [
        (OVER, "a, b, n", (1, 1, 1)),
        ("", "a, b, n", (-1, -1, 1)),
        (OVER, "p, p, n", (1, 1, 1)),
    ],
    ids=["operand and its bitcast are gone", "nothing is said", "nothing else reads it"],
)
def test_what_is_written_over_is_gone(aliasing: str, results: str, signs: tuple[int, ...]) -> None:
    """a = -p and n = -a = p; where n is in the memory of a, so is all that shares it."""
    entry = entry_of(parse_hlo(TEXT.format(aliasing=aliasing, results=results)))
    assert declares_overwrites(entry) == bool(aliasing)
    given = GIVEN.copy()
    found = evaluate_overwriting(entry, [given])
    assert [value.tolist() for value in found] == [(sign * GIVEN).tolist() for sign in signs]
    assert given.tolist() == GIVEN.tolist()
    # HLO itself does not know buffers.
    plain = evaluate(entry, [given])
    assert [value.tolist() for value in plain] == [
        (GIVEN if name in ("p", "n") else -GIVEN).tolist() for name in results.split(", ")
    ]
