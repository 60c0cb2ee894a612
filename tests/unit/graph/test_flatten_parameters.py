"""Tuples among ENTRY's parameters become arrays."""

from __future__ import annotations

import pytest

from xla_emitters.graph.flatten_parameters import flatten_parameters
from xla_emitters.text.hlo import parse_hlo, print_hlo


def flattened(header: str, *lines: str) -> list[str]:
    """The header and ENTRY's instructions, after."""
    module = parse_hlo("\n".join((f"HloModule m{header}", "ENTRY e {", *lines, "}")))
    flatten_parameters(module)
    module.verify()
    text = print_hlo(module).replace("{0}", "").splitlines()
    return [text[0], *(line.strip() for line in text[3:-1])]


def test_arrays_in_order_and_what_the_module_says_of_them() -> None:
    """Depth first, by number, in any order of the text."""
    assert flattened(
        ", input_output_alias={ {}: (0, {1,1}, may-alias) }, "
        "entry_computation_layout={((f32[8]{0}, (s32[], f32[8]{0})), f32[8]{0})->f32[8]{0}}",
        "q = f32[8] parameter(1)",
        "p = (f32[8], (s32[], f32[8])) parameter(0)",
        "inner = (s32[], f32[8]) get-tuple-element(p), index=1",
        "b = f32[8] get-tuple-element(inner), index=1",
        "ROOT s = f32[8] add(b, q)",
    ) == [
        "HloModule m, input_output_alias={ {}: (2, {}, may-alias) }",
        "%q = f32[8] parameter(3)",
        "%p.0 = f32[8] parameter(0)",
        "%p.1.0 = s32[] parameter(1)",
        "%p.1.1 = f32[8] parameter(2)",
        "ROOT %s = f32[8] add(%p.1.1, %q)",
    ]


def test_a_tuple_that_is_read_whole_is_made_again() -> None:
    assert flattened("", "ROOT p = (f32[8], (s32[])) parameter(0)") == [
        "HloModule m",
        "%p.0 = f32[8] parameter(0)",
        "%p.1.0 = s32[] parameter(1)",
        "%p.1 = (s32[]) tuple(%p.1.0)",
        "ROOT %p.2 = (f32[8], (s32[])) tuple(%p.0, %p.1)",
    ]


def test_names_that_are_taken() -> None:
    lines = flattened(
        "",
        "p = (f32[8]) parameter(0)",
        "p.0 = f32[8] get-tuple-element(p), index=0",
        "ROOT n = f32[8] negate(p.0)",
    )
    assert lines[1:] == ["%p.0.1 = f32[8] parameter(0)", "ROOT %n = f32[8] negate(%p.0.1)"]


@pytest.mark.parametrize("type", ["f32[8]", "()"])
def test_without_arrays_in_tuples(type: str) -> None:
    lines = flattened("", f"p = {type} parameter(0)", "q = f32[8] parameter(1)", "ROOT n = f32[8] negate(q)")
    number = 0 if type == "()" else 1
    assert lines[-2:] == [f"%q = f32[8] parameter({number})", "ROOT %n = f32[8] negate(%q)"]
