"""Asynchronous instructions become plain ones where they start, in every spelling of the text."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.unwrap_async import UnwrapAsyncPass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

HEAD = """
turn { x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x) }
wrapped { x = f32[8] parameter(0)
  ROOT n = f32[8] fusion(x), kind=kLoop, calls=turn }
"""
# The instructions of ENTRY after its parameter %p, of which %d is the value; the opcodes that are left.
CASES = {
    "async-start": (
        """s = ((f32[8]), f32[8], s32[]) async-start(p), calls=wrapped
           u = ((f32[8]), f32[8], s32[]) async-update(s)
           d = f32[8] async-done(u)""",
        ["fusion"],
    ),
    "fusion-start": (
        """s = ((f32[8]), f32[8], s32[]) fusion-start(p), kind=kLoop, calls=turn
           d = f32[8] fusion-done(s)""",
        ["fusion"],
    ),
    "call-start": (
        """s = ((f32[8]), f32[8]) call-start(p), to_apply=turn
           d = f32[8] call-done(s)""",
        ["call"],
    ),
    "slice-start": (
        """s = ((f32[8]), f32[4], s32[]) slice-start(p), slice={[0:4]}
           d = f32[4] slice-done(s)""",
        ["slice"],
    ),
    "copy-start": (
        """s = (f32[8], f32[8], u32[]) copy-start(p)
           d = f32[8] copy-done(s)""",
        ["copy"],
    ),
}
X = np.arange(8, dtype=np.float32)
WANTED = {"slice-start": X[:4], "copy-start": X}


def entry(instructions: str) -> str:
    return f"{HEAD}ENTRY main {{ p = f32[8] parameter(0)\n {instructions.replace(' d =', ' ROOT d =')} }}"


@pytest.mark.parametrize("case", CASES)
def test_the_plain_instruction_gives_the_value(case: str) -> None:
    text, opcodes = CASES[case]
    module = parse_hlo(entry(text))
    UnwrapAsyncPass().apply_to(module)
    module.verify()
    assert [op.opcode for op in entry_of(module).instructions] == ["parameter", *opcodes]
    for after in (module, parse_hlo(print_hlo(module))):
        (found,) = evaluate(entry_of(after), [X])
        assert found.tolist() == WANTED.get(case, -X).tolist()
    assert not any("async_wrapped" in op.sym_name.data for op in module.ops if isinstance(op, ComputationOp))


def test_it_runs_where_it_was_started() -> None:
    text = CASES["fusion-start"][0].replace("d =", "o = f32[8] negate(p)\n d =")
    module = parse_hlo(entry(text))
    UnwrapAsyncPass().apply_to(module)
    assert [op.opcode for op in entry_of(module).instructions] == ["parameter", "fusion", "negate"]


def test_what_is_inside_another_one_comes_out_too() -> None:
    text = f"""{HEAD}
      outer {{ x = f32[8] parameter(0)
        s = ((f32[8]), f32[8]) async-start(x), calls=wrapped
        ROOT d = f32[8] async-done(s) }}
      ENTRY main {{ p = f32[8] parameter(0)
        s = ((f32[8]), f32[8]) async-start(p), calls=outer
        ROOT d = f32[8] async-done(s) }}"""
    module = parse_hlo(text)
    UnwrapAsyncPass().apply_to(module)
    assert [op.opcode for op in entry_of(module).instructions] == ["parameter", "fusion"]


def test_a_start_that_something_else_reads_stays() -> None:
    text = CASES["copy-start"][0].replace("d =", "o = f32[8] get-tuple-element(s), index=0\n d =")
    module = parse_hlo(entry(text))
    before = print_hlo(module)
    with take_notes() as notes:
        UnwrapAsyncPass().apply_to(module)
    assert print_hlo(module) == before
    assert [remark.text for remark in notes.remarks] == [
        "skipped hlo.copy_start: 'hlo.get_tuple_element' reads what it gives"
    ]
