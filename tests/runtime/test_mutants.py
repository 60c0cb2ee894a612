"""Mutants of source text: which changes there are, and that the list of equivalent mutants is up to date."""

import pytest
from runtime.mutants import EQUIVALENT, ROOMS, TREE, equivalents, sources
from runtime.source_mutants import is_python, mutants_of


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("return a < b <= c", {("comparison", "return a <= b <= c"), ("comparison", "return a < b < c")}),
        ("return 0x10", {("constant", "return 0x11"), ("constant", "return 0xf")}),
        ("return a // (b + c)", {("operand order", "return (b + c) // a"), ("sign", "return a // (b - c)")}),
        ("if a: return", {("dropped guard", "pass")}),
        ("a.b = c", {("dropped statement", "pass")}),
        ("d = b", set()),
        ('return a + "text"', set()),
    ],
)
def test_every_kind(text: str, wanted: set[tuple[str, str]]) -> None:
    """Kind and changed line; none where a change means nothing: a first value, an addition of texts."""
    source = f"def f(a, b, c):\n    {text}\n".encode()
    assert {(mutant.kind, mutant.after) for mutant in mutants_of("f.py", source) if is_python(mutant, source)} == wanted


@pytest.mark.long
def test_listed_equivalents_exist() -> None:
    """Each is a mutant of the source as it is now, listed once, with a reason."""
    found = {mutant.identity for file in sources(TREE, ()) for mutant in mutants_of(file, (TREE / file).read_bytes())}
    listed = equivalents()
    assert [identity for identity in listed if identity not in found] == []
    assert EQUIVALENT.read_text().count("[[equivalent]]") == len(listed)
    assert all(len(why.split()) >= 4 for why in listed.values())


def test_rooms_exist() -> None:
    """A room that was renamed is not left out silently."""
    assert [room for room in ROOMS if not (TREE / "xla_emitters" / room).is_dir()] == []
