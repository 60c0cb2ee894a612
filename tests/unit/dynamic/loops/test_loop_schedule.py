"""LoopSchedule, run: vectors, roots of several shapes, updates in place, variants of one fusion."""

import numpy as np
import pytest
from runtime.loops_of_programs import with_loops

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.loops.roots import roots_of
from xla_emitters.pipelines.program_runs import load

V, M = 'memref<?xf32, "gpu">', 'memref<?x6xf32, "gpu">'


def run(text: str, *arrays: Array) -> list[Array]:
    return load(with_loops(parse_ir(text))).run(arrays)


def vectors(width: int) -> str:
    return f"""
    func.func @main(%x: {M}) -> ({M}, memref<6x?xf32, "gpu">) {{
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : {M}
      %y = memref.alloc(%n) : {M}
      %z = memref.alloc(%n) : memref<6x?xf32, "gpu">
      "lmhlo.fusion"() <{{kind = "kLoop", fusion_name = "f"}}> ({{
        lmhlo.negate %x -> %y {{name = "y"}} : ({M}) -> {M}
        lmhlo.transpose %y -> %z {{dimensions = array<i64: 1, 0>, name = "z"}} : ({M}) -> memref<6x?xf32, "gpu">
        lmhlo.terminator
      }}) {{disc.vector = {width} : i64}} : () -> ()
      return %y, %z : {M}, memref<6x?xf32, "gpu">
    }}"""


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("width", [1, 2, 6])
def test_an_iteration_computes_as_many_elements_as_said(width: int, rows: int) -> None:
    x = np.arange(6 * rows, dtype=np.float32).reshape(rows, 6)
    y, z = run(vectors(width), x)
    np.testing.assert_array_equal(y, -x)
    np.testing.assert_array_equal(z, -x.T)


def in_place(start: str, element: str) -> str:
    return f"""
    func.func @main(%x: {V}, %u: {V}) -> {V} {{
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : {V}
      %i = memref.alloc() : memref<{element}, "gpu">
      %z = memref.alloc(%n) : {V}
      lmhlo.copy %x -> %z {{name = "z"}} : ({V}) -> {V}
      "lmhlo.fusion"() <{{kind = "kLoop", fusion_name = "f"}}> ({{
        lmhlo.constant -> %i {{name = "i", value = dense<{start}> : tensor<{element}>}} : () -> memref<{element}, "gpu">
        lmhlo.dynamic_update_slice %z, %u, %i -> %z {{name = "u"}} : ({V}, {V}, memref<{element}, "gpu">) -> {V}
        lmhlo.terminator
      }}) : () -> ()
      memref.dealloc %i : memref<{element}, "gpu">
      return %z : {V}
    }}"""


STARTS = [("1", "i32", 1), ("-4", "i32", 0), ("99", "i64", 4), ("4294967290", "ui32", 4)]


@pytest.mark.parametrize("where", ["constant of the kernel", "buffer"])
@pytest.mark.parametrize(("start", "element", "first"), STARTS)
def test_an_update_in_place_leaves_the_rest(start: str, element: str, first: int, where: str) -> None:
    x, u = np.arange(7, dtype=np.float32), -np.arange(1, 4, dtype=np.float32)
    text = in_place(start, element)
    if where == "buffer":
        (line,) = [line for line in text.splitlines() if "lmhlo.constant" in line]
        text = text.replace(line, "").replace('      "lmhlo.fusion"', f'{line}\n      "lmhlo.fusion"')
    wanted = x.copy()
    wanted[first : first + 3] = u
    np.testing.assert_array_equal(run(text, x, u)[0], wanted)


VARIANTS = f"""
func.func @main(%x: {V}) -> {V} {{
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : {V}
  %t = memref.alloc(%n) : {V}
  %z = memref.alloc(%n) : {V}
  %rest = arith.remui %n, %c4 : index
  %fits = arith.cmpi eq, %rest, %c0 : index
  scf.if %fits {{
    "lmhlo.fusion"() <{{kind = "kLoop", fusion_name = "f_vec4"}}> ({{
      lmhlo.negate %x -> %t {{name = "t"}} : ({V}) -> {V}
      lmhlo.abs %t -> %z {{name = "z"}} : ({V}) -> {V}
      lmhlo.terminator
    }}) {{disc.vector = 4 : i64}} : () -> ()
  }} else {{
    "lmhlo.fusion"() <{{kind = "kLoop", fusion_name = "f"}}> ({{
      lmhlo.negate %x -> %t {{name = "t"}} : ({V}) -> {V}
      lmhlo.abs %t -> %z {{name = "z"}} : ({V}) -> {V}
      lmhlo.terminator
    }}) : () -> ()
  }}
  memref.dealloc %t : {V}
  return %z : {V}
}}"""


@pytest.mark.parametrize("elements", [0, 3, 8])
def test_variants_of_a_fusion_need_nothing_of_each_other(elements: int) -> None:
    for fusion in (op for op in parse_ir(VARIANTS).walk() if isinstance(op, FusionOp)):
        assert [root.instruction_name for root in roots_of(fusion)] == ["z"]
    x = np.arange(elements, dtype=np.float32) - 4
    np.testing.assert_array_equal(run(VARIANTS, x)[0], abs(x))


def test_what_a_later_fusion_reads_is_a_root() -> None:
    text = VARIANTS.replace("return %z", f'lmhlo.negate %t -> %z {{name = "later"}} : ({V}) -> {V}\n return %z')
    first, second = (op for op in parse_ir(text).walk() if isinstance(op, FusionOp))
    assert [root.instruction_name for root in roots_of(first)] == ["t", "z"]
    assert [root.instruction_name for root in roots_of(second)] == ["t", "z"]
