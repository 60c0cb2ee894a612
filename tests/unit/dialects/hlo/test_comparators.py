"""Comparators as keys: those that JAX and XLA write, and comparators that are not comparisons of keys."""

import pytest

from xla_emitters.dialects.hlo.comparators import keys_of
from xla_emitters.dialects.hlo.computation import find_computation
from xla_emitters.text.hlo.hlo_parser import parse_hlo


def keys(*lines: str) -> list[str] | None:
    """The keys of a comparator, each as "operand order direction part"."""
    body = "\n".join(f"  {line}" for line in lines)
    module = parse_hlo(f"HloModule m\n\nless {{\n{body}\n}}\n\nENTRY e {{\n  ROOT p = f32[] parameter(0)\n}}\n")
    found = keys_of(find_computation(next(iter(module.ops)), "less"))
    if found is None:
        return None
    return [
        " ".join([str(key["operand"]), key["order"], "down" if key["descending"] else "up", key["part"] or ""]).strip()
        for key in found
    ]


SIDES = ["a = f32[] parameter(0)", "b = f32[] parameter(1)"]
NEXT = ["c = s32[] parameter(2)", "d = s32[] parameter(3)"]


@pytest.mark.parametrize(
    ("root", "wanted"),
    [
        ("compare(a, b), direction=LT", "0 numeric up"),
        ("compare(a, b), direction=GT", "0 numeric down"),
        ("compare(b, a), direction=LT", "0 numeric down"),
        ("compare(b, a), direction=GT", "0 numeric up"),
        ("compare(a, b), direction=GT, type=TOTALORDER", "0 total down"),
    ],
)
def test_one_operand(root: str, wanted: str) -> None:
    assert keys(*SIDES, f"ROOT r = pred[] {root}") == [wanted]


@pytest.mark.parametrize(
    "root", ["compare(a, b), direction=LE", "compare(a, a), direction=LT", "compare(a, b), direction=EQ"]
)
def test_what_is_no_strict_order(root: str) -> None:
    assert keys(*SIDES, f"ROOT r = pred[] {root}") is None


def test_what_has_another_order_than_its_operand() -> None:
    """By size: |a| < |b|. By different sides: a < -b."""
    sizes = ["x = f32[] abs(a)", "y = f32[] abs(b)", "ROOT r = pred[] compare(x, y), direction=LT"]
    assert keys(*SIDES, *sizes) is None
    assert keys(*SIDES, "y = f32[] negate(b)", "ROOT r = pred[] compare(a, y), direction=LT") is None
    narrower = ["x = bf16[] convert(a)", "y = bf16[] convert(b)", "ROOT r = pred[] compare(x, y), direction=LT"]
    assert keys(*SIDES, *narrower) is None


TIES = [
    ["e = pred[] compare(a, b), direction=EQ", "t = pred[] and(e, m)", "ROOT r = pred[] or(l, t)"],
    ["e = pred[] compare(b, a), direction=EQ", "t = pred[] and(m, e)", "ROOT r = pred[] or(t, l)"],
    ["e = pred[] compare(a, b), direction=EQ", "ROOT r = pred[] select(e, m, l)"],
    [
        "g = pred[] compare(b, a), direction=LT",
        "e = pred[] compare(l, g), direction=EQ",
        "ROOT r = pred[] select(e, m, l)",
    ],
]


@pytest.mark.parametrize("tie", TIES)
def test_one_key_after_the_other(tie: list[str]) -> None:
    both = ["l = pred[] compare(a, b), direction=LT", "m = pred[] compare(d, c), direction=LT"]
    assert keys(*SIDES, *NEXT, *both, *tie) == ["0 numeric up", "1 numeric down"]


def test_a_tie_of_something_else_is_no_tie() -> None:
    both = ["l = pred[] compare(a, b), direction=LT", "m = pred[] compare(c, d), direction=LT"]
    ties = ["e = pred[] compare(c, d), direction=EQ", "ROOT r = pred[] select(e, m, l)"]
    assert keys(*SIDES, *NEXT, *both, *ties) is None


def total(side: str, name: str, nans: bool, zeros: bool, element: str = "f32") -> list[str]:
    """The integer that JAX's comparators compare, of a parameter `side` of type f32, or of one that is converted to f32."""
    lines, value = list[str](), side
    if zeros:
        lines += [
            f"{name}z = pred[] compare({side}, zero), direction=EQ",
            f"{name}s = {element}[] select({name}z, zero, {side})",
        ]
        value = f"{name}s"
    if nans:
        lines += [
            f"{name}n = pred[] compare({side}, {side}), direction=NE",
            f"{name}t = {element}[] select({name}n, odd, {value})",
        ]
        value = f"{name}t"
    if element != "f32":
        lines.append(f"{name}w = f32[] convert({value})")
        value = f"{name}w"
    return [
        *lines,
        f"{name}b = s32[] bitcast({value})",
        f"{name}l = pred[] compare({name}b, first), direction=LT",
        f"{name}x = s32[] xor(most, {name}b)",
        f"{name} = s32[] select({name}l, {name}x, {name}b)",
    ]


CONSTANTS = [
    "zero = f32[] constant(0)",
    "odd = f32[] constant(nan)",
    "first = s32[] constant(0)",
    "most = s32[] constant(2147483647)",
]


@pytest.mark.parametrize(
    ("nans", "zeros", "wanted"), [(False, False, ["0 total up"]), (True, True, ["0 canonical up"]), (True, False, None)]
)
def test_jax_sorts_floats_by_integers(nans: bool, zeros: bool, wanted: list[str] | None) -> None:
    """As XLA:GPU prints `jnp.sort` of f32; with NaNs alone made equal it is an order that no key has."""
    lines = [*SIDES, *CONSTANTS, *total("a", "x", nans, zeros), *total("b", "y", nans, zeros)]
    assert keys(*lines, "ROOT r = pred[] compare(x, y), direction=LT") == wanted


def test_jax_sorts_narrow_floats_by_the_integers_of_wider_ones() -> None:
    """NaNs and zeros are made equal in bf16."""
    given = [line.replace("f32", "bf16") for line in (*SIDES, *CONSTANTS)]
    lines = [*given, *total("a", "x", True, True, "bf16"), *total("b", "y", True, True, "bf16")]
    assert keys(*lines, "ROOT r = pred[] compare(x, y), direction=LT") == ["0 canonical up"]


def test_floats_of_four_bits_by_their_integers() -> None:
    narrow = {"f32": "f4e2m1fn", "s32": "s4", "2147483647": "7"}
    lines = [*SIDES, CONSTANTS[2], CONSTANTS[3], *total("a", "x", False, False), *total("b", "y", False, False)]
    for wide, name in narrow.items():
        lines = [line.replace(wide, name) for line in lines]
    assert keys(*lines, "ROOT r = pred[] compare(x, y), direction=LT") == ["0 total up"]


def test_a_wrong_constant_is_no_total_order() -> None:
    lines = [
        *SIDES,
        *CONSTANTS[:-1],
        "most = s32[] constant(2147483646)",
        *total("a", "x", True, True),
        *total("b", "y", True, True),
    ]
    assert keys(*lines, "ROOT r = pred[] compare(x, y), direction=LT") is None


def test_parts_and_wider_types() -> None:
    complex_sides = ["a = c64[] parameter(0)", "b = c64[] parameter(1)", "x = f32[] imag(a)", "y = f32[] imag(b)"]
    assert keys(*complex_sides, "ROOT r = pred[] compare(x, y), direction=LT") == ["0 numeric up imag"]
    half = ["a = bf16[] parameter(0)", "b = bf16[] parameter(1)", "x = f32[] convert(a)", "y = f32[] convert(b)"]
    assert keys(*half, "ROOT r = pred[] compare(x, y), direction=GT") == ["0 numeric down"]
    whole = ["a = s8[] parameter(0)", "b = s8[] parameter(1)", "x = s32[] convert(a)", "y = s32[] convert(b)"]
    assert keys(*whole, "ROOT r = pred[] compare(x, y), direction=LT") == ["0 numeric up"]


def test_a_comparator_that_doubles_its_tree_is_left_alone() -> None:
    """40 selects of the one before: a tree of 2^40 nodes."""
    lines = [*SIDES, "p0 = pred[] compare(a, b), direction=LT"]
    lines += [f"p{i + 1} = pred[] xor(p{i}, p{i})" for i in range(40)]
    assert keys(*lines[:-1], "ROOT r = pred[] xor(p39, p39)") is None
