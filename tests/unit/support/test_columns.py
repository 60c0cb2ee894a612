"""Tables as text: columns of equal width."""

from xla_emitters.support.columns import aligned


def test_cells_of_a_column_end_at_one_place_on_the_side_where_they_are_aligned() -> None:
    rows = [("pass", "ops", "why"), ("xla-cse", "1024", ""), ("inline", "7", "called once")]
    first, second, third = aligned(rows, right=range(1, 2))
    assert first == "pass      ops  why"
    assert second == "xla-cse  1024"  # no spaces at the end
    assert third == "inline      7  called once"


def test_a_column_without_text_takes_no_room() -> None:
    assert aligned([("a", "", "b"), ("long", "", "c")]) == ["a     b", "long  c"]


def test_no_rows_are_no_lines() -> None:
    assert aligned([]) == []
