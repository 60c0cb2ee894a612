"""Generated Python: what each form of IR becomes, and what it computes."""

from __future__ import annotations

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.host.python_program import python_program
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.program import PythonHost


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    made = python_program(parse_ir(text))
    return PythonHost(made.source, made.functions, made.dtypes, Constants({})).run_on_garbage(inputs)


STRAIGHT = """
func.func @main(%x: memref<?x4xf32>) -> memref<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32>
  %y = memref.alloc(%n) : memref<?x4xf32>
  lmhlo.abs %x -> %y {name = "y"} : (memref<?x4xf32>) -> memref<?x4xf32>
  return %y : memref<?x4xf32>
}
"""


def test_a_straight_program_is_a_line_for_each_op() -> None:
    assert python_program(parse_ir(STRAIGHT)).source == (
        "def main(ctx, x):\n"
        "    alloc, dealloc, inc_ref = ctx.alloc, ctx.dealloc, ctx.inc_ref\n"
        "    n = x.shape[0]\n"
        "    y = alloc((n, 4), f32)\n"
        "    lmhlo_abs_y(x, y)\n"
        "    return (y,)\n"
    )


ARITHMETIC = {
    "arith.addi %a, %b": 7 + 3,
    "arith.subi %a, %b": 7 - 3,
    "arith.muli %a, %b": 21,
    "arith.floordivsi %a, %b": 2,
    "arith.ceildivsi %a, %b": 3,
    "arith.maxsi %a, %b": 7,
    "arith.minsi %a, %b": 3,
}


@pytest.mark.parametrize("expression", ARITHMETIC)
def test_arithmetic_on_sizes(expression: str) -> None:
    text = f"""
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>) -> memref<i32> {{
  %c0 = arith.constant 0 : index
  %a = memref.dim %x, %c0 : memref<?xf32>
  %b = memref.dim %y, %c0 : memref<?xf32>
  %s = {expression} : index
  %i = arith.index_cast %s : index to i32
  %o = memref.alloc() : memref<i32>
  memref.store %i, %o[] : memref<i32>
  return %o : memref<i32>
}}"""
    (found,) = run(text, np.zeros(7, np.float32), np.zeros(3, np.float32))
    assert found == ARITHMETIC[expression]


SWAP = """
func.func @main(%n: memref<i32>, %x: memref<i32>, %y: memref<i32>) -> (memref<i32>, memref<i32>) {
  %a = memref.alloc() : memref<i32>
  lmhlo.copy %x -> %a {name = "a"} : (memref<i32>) -> memref<i32>
  %b = memref.alloc() : memref<i32>
  lmhlo.copy %y -> %b {name = "b"} : (memref<i32>) -> memref<i32>
  %k = memref.load %n[] : memref<i32>
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  cf.br ^head(%k, %a, %b : i32, memref<i32>, memref<i32>)
^head(%left: i32, %p: memref<i32>, %q: memref<i32>):
  %more = arith.cmpi sgt, %left, %zero : i32
  cf.cond_br %more, ^body, ^end
^body:
  %less = arith.subi %left, %one : i32
  cf.br ^head(%less, %q, %p : i32, memref<i32>, memref<i32>)
^end:
  return %p, %q : memref<i32>, memref<i32>
}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_blocks_pass_their_arguments_all_at_once(count: int) -> None:
    found = run(SWAP, *(np.array(value, np.int32) for value in (count, 10, 20)))
    assert [int(value) for value in found] == ([20, 10] if count % 2 else [10, 20])


SWITCH = """
func.func @main(%n: memref<i32>) -> memref<i32> {
  %k = memref.load %n[] : memref<i32>
  %o = memref.alloc() : memref<i32>
  %ten = arith.constant 10 : i32
  %eleven = arith.constant 11 : i32
  %last = arith.constant 99 : i32
  cf.switch %k : i32, [
    default: ^end(%last : i32),
    0: ^end(%ten : i32),
    1: ^end(%eleven : i32)
  ]
^end(%v: i32):
  memref.store %v, %o[] : memref<i32>
  return %o : memref<i32>
}
"""


@pytest.mark.parametrize(("selector", "wanted"), [(0, 10), (1, 11), (2, 99), (-1, 99)])
def test_a_switch_takes_its_default_for_every_other_number(selector: int, wanted: int) -> None:
    (found,) = run(SWITCH, np.array(selector, np.int32))
    assert found == wanted


def test_names_that_python_takes_are_not_used() -> None:
    text = STRAIGHT.replace("%x", "%f32").replace("%y", "%lambda").replace("%n", "%ctx")
    (found,) = run(text, -np.ones((2, 4), np.float32))
    assert found.tolist() == [[1] * 4] * 2


def test_what_has_no_row_is_named() -> None:
    text = STRAIGHT.replace("  return", '  %z = "test.op"() : () -> index\n  return')
    with pytest.raises(Unsupported, match="the host program has no"):
        python_program(parse_ir(text, allow_unregistered=True))
    with pytest.raises(UsageError, match="no function on buffers"):
        python_program(parse_ir("module {}"))


LOOPS = """
func.func @main(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %y = memref.alloc(%n) : memref<?xf32>
  %some = arith.cmpi ne, %n, %c0 : index
  scf.if %some {
    "lmhlo.fusion"() ({
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        %v = memref.load %x[%i] : memref<?xf32>
        %w = arith.addf %v, %v : f32
        memref.store %w, %y[%i] : memref<?xf32>
        scf.reduce
      }
      lmhlo.terminator
    }) {fusion_name = "twice"} : () -> ()
  }
  return %y : memref<?xf32>
}
"""


@pytest.mark.parametrize("elements", [0, 3])
def test_a_fusion_of_loops_is_one_call(elements: int) -> None:
    source = python_program(parse_ir(LOOPS)).source
    assert "    if some:\n        loops_twice(0, n, 1, x, y)\n    return" in source
    x = np.arange(elements, dtype=np.float32)
    np.testing.assert_array_equal(run(LOOPS, x)[0], 2 * x)


FUSED = """
func.func @main(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %rest = arith.remsi %n, %c4 : index
  %fits = arith.cmpi eq, %rest, %c0 : index
  %t = memref.alloc(%n) : memref<?xf32>
  %y = memref.alloc(%n) : memref<?xf32>
  scf.if %fits {
    "lmhlo.fusion"() <{fusion_name = "by_four"}> ({
      lmhlo.abs %x -> %t {name = "t"} : (memref<?xf32>) -> memref<?xf32>
      lmhlo.negate %t -> %y {name = "y"} : (memref<?xf32>) -> memref<?xf32>
      lmhlo.terminator
    }) : () -> ()
  } else {
    lmhlo.abs %x -> %y {name = "z"} : (memref<?xf32>) -> memref<?xf32>
  }
  memref.dealloc %t : memref<?xf32>
  return %y : memref<?xf32>
}
"""


def test_a_fusion_is_its_ops_and_a_choice_is_one_of_python() -> None:
    assert (
        "    if fits:\n"
        "        # by_four\n"
        "        lmhlo_abs_t(x, t)\n"
        "        lmhlo_negate_y(t, y)\n"
        "    else:\n"
        "        lmhlo_abs_z(x, y)\n"
    ) in python_program(parse_ir(FUSED)).source
    for count, sign in ((8, -1), (7, 1)):
        x = np.arange(-3, count - 3, dtype=np.float32)
        np.testing.assert_array_equal(run(FUSED, x)[0], sign * np.abs(x))
