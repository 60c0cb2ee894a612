"""Which computations are scans: trees of windows, of interleaved sums, and what differs from one in one place."""

from typing import Any

import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import owner_of
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.scan_ranges import find_scan
from xla_emitters.graph.view import view_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

BODY = """HloModule m
body {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] {op}(a, b) }}
"""
TREE = """ENTRY e {{ x = {t}[5,48] parameter(0)
  y = {t}[5,48] multiply(x, x)
  z = {t}[] constant({z})
  f = {t}[5,12,4] bitcast(y)
  t = {t}[5,12,4] reduce-window(f, z), window={{size=1x1x4 pad=0_0x0_0x{tile}}}, to_apply=body
  l = {t}[5,12,1] slice(t), slice={{[0:5], [0:12], [{end}:{after}]}}
  m = {t}[5,12] bitcast(l)
  u = {t}[5,13] reduce-window(m, z), window={{size=1x12 pad=0_0x{row}}}, to_apply=body
  v = {t}[5,12] slice(u), slice={{[0:5], [{first}:{last}]}}
  b = {t}[5,12,4] broadcast(v), dimensions={{0,1}}
  s = {t}[5,12,4] {op}(t, b)
  w = {t}[5,48] bitcast(s)
  ROOT r = {t}[5,48] subtract(w, y) }}
"""
PREFIX: dict[str, Any] = {"tile": "3_0", "end": 3, "after": 4, "row": "12_0", "first": 0, "last": 12}
SUFFIX: dict[str, Any] = {"tile": "0_3", "end": 0, "after": 1, "row": "0_12", "first": 1, "last": 13}


def tree(op: str = "add", t: str = "f32", z: str = "0", **named: Any) -> str:
    return (BODY + TREE).format(op=op, t=t, z=z, **{**PREFIX, **named})


@pytest.mark.parametrize(
    ("text", "way"),
    [
        (tree(), "prefix"),
        (tree(**SUFFIX), "suffix"),
        (tree("multiply", z="1"), "prefix"),
        (tree("maximum", z="-inf"), "prefix"),
        (tree("maximum", "s32", "-2147483648"), "prefix"),
        (tree("maximum", "s4", "-8"), "prefix"),
        (tree("minimum", "u2", "3"), "prefix"),
        (tree("add", "bf16"), "prefix"),
    ],
)
def test_trees_of_windows(text: str, way: str) -> None:
    found = find_scan(view_of(entry_of(parse_hlo(text, "m"))).instructions)
    names = owner_of(found.array).instruction_name.data, owner_of(found.result).instruction_name.data
    assert (*names, found.dim, found.way) == ("y", "w", 1, way)


def test_a_wider_copy_of_a_scan_is_not_its_result() -> None:
    """As XLA writes the sum of a cumulative sum of bf16: a kernel scans elements of bf16, and a reduction reads them as f32."""
    text = tree("add", "bf16").replace("ROOT r = bf16[5,48] subtract(w, y)", "ROOT r = f32[5,48] convert(w)")
    found = find_scan(view_of(entry_of(parse_hlo(text, "m"))).instructions)
    assert found is not None
    assert owner_of(found.result).instruction_name.data == "w"


@pytest.mark.parametrize("size", [1, 2, 3, 16, 31])
def test_a_tree_of_interleaved_sums(size: int) -> None:
    """As `jax.lax.associative_scan` writes it; its values are NumPy's cumulative sums."""
    lines, number = list[str](), iter(range(10_000))

    def put(text: str) -> str:
        name = f"v{next(number)}"
        lines.append(f"{name} = {text}")
        return name

    def every_other(value: str, first: int, count: int, end: int | None = None) -> str:
        stop = count if end is None else end
        many = len(range(first, stop, 2))
        return put(f"f32[2,{many}] slice({value}), slice={{[0:2], [{first}:{stop}:2]}}")

    def scan(value: str, count: int) -> str:
        if count < 2:
            return value
        half = count // 2
        pairs = put(f"f32[2,{half}] add({every_other(value, 0, count, 2 * half)}, {every_other(value, 1, count)})")
        odd = scan(pairs, half)
        first = put(f"f32[2,1] slice({value}), slice={{[0:2], [0:1]}}")
        rest = (count - 1) // 2
        even = first
        if rest:
            before = put(f"f32[2,{rest}] slice({odd}), slice={{[0:2], [0:{rest}]}}")
            sums = put(f"f32[2,{rest}] add({before}, {every_other(value, 2, count)})")
            even = put(f"f32[2,{rest + 1}] concatenate({first}, {sums}), dimensions={{1}}")
        evens = put(f"f32[2,{count}] pad({even}, z), padding=0_0x0_{1 - count % 2}_1")
        odds = put(f"f32[2,{count}] pad({odd}, z), padding=0_0x1_{count % 2}_1")
        return put(f"f32[2,{count}] add({evens}, {odds})")

    root = scan("x", size)
    body = "\n".join([f"x = f32[2,{size}] parameter(0)", "z = f32[] constant(0)", *lines])
    text = f"HloModule m\nENTRY e {{ {body}\nROOT r = f32[2,{size}] copy({root}) }}"
    entry, x = entry_of(parse_hlo(text, "m")), np.arange(2 * size, dtype=np.float32).reshape(2, size) - size
    assert np.array_equal(evaluate(entry, [x])[0], np.cumsum(x, 1))
    found = find_scan(view_of(entry).instructions)
    assert (found is not None) == (size > 1)
    assert found is None or (found.columns, found.way, found.opcode) == (size, "prefix", "add")


@pytest.mark.parametrize(
    "text",
    [
        tree(first=1, last=13),  # each tile gets its own sum again
        tree(end=2, after=3),  # the tiles' sums miss an element
        tree(tile="2_1"),  # the windows of a tile are shifted
        tree(z="1"),  # the initial value counts in every window
        tree().replace("add(t, b)", "subtract(t, b)"),
        tree()
        .replace("to_apply=body\n  l", "to_apply=other\n  l")
        .replace(
            "ENTRY", "other { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\nENTRY"
        ),
    ],
)
def test_what_is_no_scan_of_the_row(text: str) -> None:
    found = find_scan(view_of(entry_of(parse_hlo(text, "m"))).instructions)
    assert found is None or found.columns < 48


def test_a_tree_whose_sums_miss_an_element_is_no_scan() -> None:
    """Not at a place that a tile ends with: the sum reaches from the first to the last element all the same."""
    gap = """a = f32[5,21] slice(y), slice={[0:5], [0:21]}
  p = f32[5,22] pad(a, z), padding=0_0x0_1
  o = f32[5,26] slice(y), slice={[0:5], [22:48]}
  c = f32[5,48] concatenate(p, o), dimensions={1}
  g = f32[5,12,4] bitcast(c)
  h = f32[5,12,4] reduce-window(g, z), window={size=1x1x4 pad=0_0x0_0x3_0}, to_apply=body
  l = f32[5,12,1] slice(h)"""
    text = tree().replace("l = f32[5,12,1] slice(t)", gap)
    found = find_scan(view_of(entry_of(parse_hlo(text, "m"))).instructions)
    assert found is None or found.columns < 48


def test_the_reference_agrees_that_the_tree_is_a_scan() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 48)).astype(np.float32)
    for way, flip in ((PREFIX, slice(None)), (SUFFIX, slice(None, None, -1))):
        found = evaluate(entry_of(parse_hlo(tree(**way), "m")), [x])[0]
        assert np.array_equal(found, np.cumsum((x * x)[:, flip], 1)[:, flip] - x * x)
