"""A chain of functions that each call the one below three times: its code stays linear, and its numbers are the reference's."""

from pathlib import Path

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.lowering.limit_inlining import FUNCTION_LIMIT, KERNEL_LIMIT, LimitInliningPass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.tools.main import main

CALLS = 3
OWN = CALLS + 3
"""Ops of each function of `chain`: the function, its calls, a sum and a return."""


def chain(depth: int) -> str:
    """@f<depth> calls the one below three times, and so on, down to @f0; @main calls the first."""
    texts = ["func.func private @f0(%x: f32) -> f32 {\n  %y = arith.addf %x, %x : f32\n  return %y : f32\n}"]
    for level in range(1, depth + 1):
        calls = [f"  %c{number} = func.call @f{level - 1}(%x) : (f32) -> f32" for number in range(CALLS)]
        body = "\n".join((*calls, "  %y = arith.addf %c0, %c2 : f32", "  return %y : f32"))
        texts.append(f"func.func private @f{level}(%x: f32) -> f32 {{\n{body}\n}}")
    call = f"  %y = func.call @f{depth}(%x) : (f32) -> f32\n  return %y : f32"
    return "\n".join((*texts, f"func.func @main(%x: f32) -> f32 {{\n{call}\n}}"))


def inlined(depth: int) -> int:
    """Ops of @f<depth>, with everything inlined into it, by the recurrence."""
    return 3 if depth == 0 else OWN + CALLS * inlined(depth - 1)


def limited(depth: int) -> tuple[list[str], list[str]]:
    """The functions that stay calls, and the warnings."""
    module = parse_ir(chain(depth))
    with take_notes() as notes:
        LimitInliningPass().apply_to(module)
    print_ir(module)
    kept = [op.sym_name.data for op in module.walk() if isinstance(op, func.FuncOp) and "no_inline" in op.attributes]
    return kept, [remark.text for remark in notes.remarks]


def test_what_stays_a_call_is_the_first_function_that_is_too_large_each_time() -> None:
    first = next(depth for depth in range(20) if inlined(depth) > FUNCTION_LIMIT)
    assert inlined(10) > KERNEL_LIMIT
    kept, (warning,) = limited(10)
    # With @f<first> a call, the next one that is too large is as many levels above as it takes to grow from one level's own ops.
    size, expected = inlined(first), [f"f{first}"]
    for level in range(first + 1, 10):
        size = OWN + CALLS * (0 if expected[-1] == f"f{level - 1}" else size)
        if size > FUNCTION_LIMIT:
            expected.append(f"f{level}")
    assert kept == expected
    own = 3 + OWN * 10 + 3
    assert warning.startswith(
        f"the functions of kernel @main, inlined, would be {3 + inlined(10):,} ops instead of {own}"
    )


@pytest.mark.tiny
def test_a_kernel_within_the_limit_and_a_cycle_are_left_alone() -> None:
    assert inlined(5) <= KERNEL_LIMIT
    assert limited(5) == ([], [])
    again = "func.func private @g(%x: f32) -> f32 {\n  %y = func.call @g(%x) : (f32) -> f32\n  return %y : f32\n}"
    module = parse_ir(again)
    LimitInliningPass().apply_to(module)
    assert "no_inline" not in print_ir(module)


def updates(number: int) -> str:
    """A fusion of `number` updates of row i + n: each adds the row before it, and row 0, to the row."""
    lines = [
        "  x0 = f32[8,4] parameter(0)",
        "  i0 = s32[] parameter(1)",
        "  zero = s32[] constant(0)",
        "  one = s32[] constant(1)",
    ]
    for n in range(1, number + 1):
        lines += [
            f"  row{n} = f32[1,4] dynamic-slice(x{n - 1}, i{n - 1}, zero), dynamic_slice_sizes={{1,4}}",
            f"  top{n} = f32[1,4] slice(x{n - 1}), slice={{[0:1], [0:4]}}",
            f"  sum{n} = f32[1,4] add(row{n}, top{n})",
            f"  x{n} = f32[8,4] dynamic-update-slice(x{n - 1}, sum{n}, i{n - 1}, zero)",
            f"  i{n} = s32[] add(i{n - 1}, one)",
        ]
    lines.append(f"  ROOT r = f32[8,4] negate(x{number})")
    text = "\n".join(lines)
    call = "  x = f32[8,4] parameter(0)\n  i = s32[] parameter(1)"
    return f"updates {{\n{text}\n}}\nENTRY main {{\n{call}\n  ROOT f = f32[8,4] fusion(x, i), kind=kLoop, calls=updates\n}}\n"


def test_a_chain_of_updates_has_linear_code_a_warning_and_numpys_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number, path = 9, tmp_path / "updates.hlo"
    path.write_text(updates(number))
    given = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
    expected, row = given.copy(), 2
    for n in range(number):
        at = min(row + n, 7)
        expected[at] += expected[0]
    np.testing.assert_array_equal(xe.compile(path).run_cpu(given, np.int32(row)), -expected)
    assert main(["compile", str(path), "--stage", "ptx", "-o", str(tmp_path / "updates.ptx")]) == 0
    assert "kernel @f, inlined, would be" in capsys.readouterr().err
    assert len((tmp_path / "updates.ptx").read_text().splitlines()) < 4000
