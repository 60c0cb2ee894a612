"""Ops on single integers, which programs have many of: every small value against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import invert, not_
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Block

from xla_emitters.dialects.hlo.base import HloOp, opcode_of
from xla_emitters.dialects.hlo.types import as_array, element_of
from xla_emitters.dialects.lmhlo import BUFFER_OPS, buffer_type
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.reference import call_beside


def clamped(low: int, x: int, high: int) -> int:
    return min(max(x, low), high)


def selected(chosen: bool, x: int, y: int) -> int:
    return x if chosen else y


NUMBERS, TRUTHS = (-3, 0, 1, 2, 7), (False, True)
CASES: tuple[tuple[str, tuple[str, ...], Callable[..., Any]], ...] = (
    ("s32[] clamp(a, b, c)", ("s32[]",) * 3, clamped),
    ("s32[] select(a, b, c)", ("pred[]", "s32[]", "s32[]"), selected),
    ("s32[] convert(a)", ("pred[]",), int),
    ("pred[] convert(a)", ("s32[]",), bool),
    ("pred[] not(a)", ("pred[]",), not_),
    ("s32[] not(a)", ("s32[]",), invert),
)


@pytest.mark.parametrize(("text", "types", "wanted"), CASES, ids=[case[0] for case in CASES])
def test_ops_on_single_integers(text: str, types: tuple[str, ...], wanted: Callable[..., Any]) -> None:
    operands = "".join(
        f"  {name} = {held} parameter({number})\n"
        for number, (name, held) in enumerate(zip("abc", types, strict=False))
    )
    module = parse_hlo(f"HloModule m\nENTRY e {{\n{operands}  ROOT r = {text}\n}}")
    op = next(
        op for op in module.walk() if isinstance(op, HloOp) and opcode_of(type(op)) == text.split()[1].split("(")[0]
    )
    values = (*op.operands, op.results[0])
    buffers = Block(arg_types=[buffer_type(as_array(value.type).element_type, (), "cpu") for value in values]).args
    made = BUFFER_OPS[opcode_of(type(op))].of(op, buffers[:-1], buffers[-1:])
    run = function_of(made, call_beside(made))
    held = [element_of(value).numpy for value in values]
    for given in product(*(TRUTHS if each == "pred[]" else NUMBERS for each in types)):
        out = np.empty((), held[-1])
        run(*(np.array(value, each) for value, each in zip(given, held, strict=False)), out)
        assert out.item() == wanted(*given)
