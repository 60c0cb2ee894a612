"""Mutants of source text: what is mutated, what is not, which tests run, and that the list of equivalent mutants is up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from runtime.mutants import EQUIVALENT, ROOMS, TREE, Outcome, equivalents, nearest_tests, sample, sources, verdict
from runtime.source_mutants import is_python, mutants_of


def changes(text: str) -> set[tuple[str, str]]:
    """Kind and changed line of every mutant of one line inside a function of `a`, `b` and `c`."""
    source = f"def f(a, b, c):\n    {text}\n".encode()
    return {(mutant.kind, mutant.after) for mutant in mutants_of("f.py", source) if is_python(mutant, source)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("return a < b <= c", {("comparison", "return a <= b <= c"), ("comparison", "return a < b < c")}),
        ("return (a) == b", {("comparison", "return (a) != b")}),
        ("return a is not  None", {("comparison", "return a is None")}),
        ("return a not in b", {("comparison", "return a in b")}),
        ("return 0x10", {("constant", "return 0x11"), ("constant", "return 0xf")}),
        ("return 0", {("constant", "return 1")}),
        ("return True", {("constant", "return False")}),
        ("return 0.5", {("constant", "return 1.5")}),
        ("return -a", {("sign", "return a")}),
        ("return a - b - c", {
            ("sign", "return (a - b) + c"), ("operand order", "return c - (a - b)"),
            ("sign", "return a + b - c"), ("operand order", "return b - a - c"),
        }),
        ("return a // (b + c)", {("operand order", "return (b + c) // a"), ("sign", "return a // (b - c)")}),
        ("return a and not b", {
            ("dropped guard", "return a"), ("dropped guard", "return (not b)"), ("dropped guard", "return a and b"),
        }),
        ("if a: return", {("dropped guard", "pass")}),
        ("if (d := a): raise d", {("dropped guard", "d := a")}),
        ("a.b = c", {("dropped statement", "pass")}),
        ("a = b", {("dropped statement", "pass")}),
        ("a(b)", {("dropped statement", "pass")}),
    ],
)  # fmt: skip
def test_every_kind(text: str, wanted: set[tuple[str, str]]) -> None:
    if ":=" in text:  # a name in a statement of its own needs parentheses
        wanted = {(kind, f"({line})") for kind, line in wanted}
    assert changes(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        '"""1 < 2"""',
        "raise ValueError(a + 1)",
        'return f"{a - 1}"',
        "assert isinstance(a, b) and c is not None",
        "return zip(a, b, strict=True)",
        "d: tuple[a, 4]",
        "d = b",
        'return a + "text"',
    ],
)
def test_what_means_nothing_is_left_alone(text: str) -> None:
    """Its sibling with other words is changed: a name that has a value already, an assertion about a value."""
    assert changes(text) == set()
    assert changes("assert a == b")
    assert changes("a = b")


def test_the_rest_of_the_text_stays() -> None:
    """Also where characters have several bytes."""
    source = 'x = "größe"  # ≤\ny = x != "ä"\n'.encode()
    (mutant,) = mutants_of("f.py", source)
    assert mutant.applied(source).decode() == 'x = "größe"  # ≤\ny = x == "ä"\n'
    assert (mutant.line, mutant.function) == (2, "<module>")
    assert mutant.identity == ("f.py", "<module>", 'y = x != "ä"', 'y = x == "ä"')


@pytest.mark.long  # imports of all tests are parsed
def test_nearest_tests_come_first() -> None:
    """The stem's, those that import it, those of what imports it, the room's, all; no file twice."""
    by_distance = nearest_tests(TREE, "xla_emitters/transforms/loop_invariant_code_motion.py")
    names = [[Path(place).name for place in places] for places in by_distance]
    assert names[0] == ["loop_invariant_code_motion.mlir"]
    assert "test_meaning.py" in names[1]
    assert by_distance[3] == ["tests/unit/transforms", "tests/filecheck/transforms"]
    places = [place for places in by_distance for place in places]
    assert len(places) == len(set(places))
    assert "tests/filecheck/emitters/scatter" in nearest_tests(TREE, "xla_emitters/emitters/scatter.py")[0]
    assert "tests/runtime/test_conversions.py" in nearest_tests(TREE, "xla_emitters/lowering/narrow_floats.py")[1]


def test_a_sample_is_the_same_after_a_move(tmp_path: Path) -> None:
    """Another folder and a new function above change no draw; another seed does."""
    functions = [f"def f{n}(a, b):\n    return a < b\n" for n in range(60)]
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "old/x.py").write_text("".join(functions))
    (tmp_path / "new/x.py").write_text("".join(("def g():\n    return None\n", *functions)))
    old, new, other = (
        [mutant.identity for mutant in sample(tmp_path, [file], 20, seed)]
        for file, seed in (("old/x.py", 0), ("new/x.py", 0), ("old/x.py", 1))
    )
    assert len(set(old)) == 20
    assert old == new
    assert set(old) != set(other)


TINY = """
def size(first, last):
    if last == first: return 0
    return max(last - first, 0)


def endless(count):
    while count > 0:
        count -= 1
    return count
"""
TINY_TEST = """
from xla_emitters.rewrite.tiny import endless, size

def test_size():
    assert (size(2, 5), size(4, 4), size(5, 2)) == (3, 0, 0)

def test_endless():
    assert endless(3) == 0
"""


@pytest.mark.long  # each mutant is a process that runs pytest
def test_mutants_are_killed_or_survive(tmp_path: Path) -> None:
    """All but one of the mutants of two small functions are killed, those without an end too; the source is not changed."""
    for name, text in (
        ("xla_emitters/__init__.py", ""),
        ("xla_emitters/rewrite/__init__.py", ""),
        ("xla_emitters/rewrite/tiny.py", TINY),
        ("tests/unit/rewrite/test_tiny.py", TINY_TEST),
        ("tests/runtime/mutants_equivalent.toml", "equivalent = []"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "runtime.mutants", "--tree", str(tmp_path), "--longest", "0.5", "rewrite/tiny.py"]
    environment = {**os.environ, "PYTHONPATH": str(TREE / "tests")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 1, done.stdout + done.stderr
    rows = done.stdout.split("xla_emitters/rewrite/tiny.py:")[1:]
    survived = [row.split("\n")[0].split("  ", 2)[1:] for row in rows if "SURVIVED" in row]
    assert survived == [["dropped guard", "if last == first: return 0  ->  pass"]]
    endless = "dropped statement  count -= 1  ->  pass\n    killed by tests/unit/rewrite/test_tiny.py::test_endless"
    assert f"{endless} (distance 0, too long" in done.stdout
    assert f"{len(rows)} mutants: {len(rows) - 1} killed, 1 survived, 1 of them not listed" in done.stdout
    assert (tmp_path / "xla_emitters/rewrite/tiny.py").read_text() == TINY


def test_exit_code() -> None:
    """0 only if every survivor is listed, nothing that is listed is killed, and no test fails by itself."""
    one, other, *_ = mutants_of("f.py", b"x = a < 2")
    killed, survived = Outcome(one, "test_f.py::test", "distance 0", 1), Outcome(other, None, "", 1)
    listed = {other.identity}
    assert verdict([killed, survived], listed, [])[0] == 0
    assert verdict([killed, survived], set(), [])[0] == 1
    assert verdict([killed, survived], {one.identity, *listed}, [])[0] == 1
    assert verdict([killed, survived], listed, ["test_f.py::test"])[0] == 2


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
