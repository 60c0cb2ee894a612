"""Notes reach the caller that asked for them, and are not made otherwise."""

from xla_emitters.rewrite.notes import decide, notes_wanted, take_notes
from xla_emitters.trace import Decision, Remark


def test_notes_go_to_the_innermost_taker() -> None:
    decide("launch", "nobody listens")
    assert notes_wanted() is None
    with take_notes() as outer:
        decide("emitter", "loop emitter", name="loop")
        with take_notes() as inner:
            decide("launch", "1 block", grid=[1, 1, 1])
        decide("unroll", "1")
    assert outer.decisions == [Decision("emitter", "loop emitter", {"name": "loop"}), Decision("unroll", "1", {})]
    assert inner.decisions == [Decision("launch", "1 block", {"grid": [1, 1, 1]})]
    assert notes_wanted() is None


def test_a_remark_is_made_once() -> None:
    with take_notes() as notes:
        for text in ("a", "b", "a"):
            notes.add(Remark("pass", text))
    assert [remark.text for remark in notes.remarks] == ["a", "b"]
