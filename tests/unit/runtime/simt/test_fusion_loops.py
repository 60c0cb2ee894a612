"""A fusion's loops: every iteration is a lane."""

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.errors import DataError, ExecutionError, Unsupported
from xla_emitters.runtime.simt.fusion_loops import compile_loops

MATRIX, VECTOR = 'memref<?x32xf32, "gpu">', 'memref<?xf32, "gpu">'


def run(arguments: str, body: str, **given: object) -> None:
    """Runs the loops of a fusion with this body on values by the names of the arguments."""
    text = f"""
    func.func @main({arguments}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      "lmhlo.fusion"() ({{
        {body}
        lmhlo.terminator
      }}) {{fusion_name = "f"}} : () -> ()
      func.return
    }}"""
    (fusion,) = [op for op in parse_ir(text).walk() if isinstance(op, FusionOp)]
    loops = compile_loops(fusion)
    known = {"c0": 0, "c1": 1, "c64": 64, **given}
    loops(*[known[value.name_hint or ""] for value in loops.captured])


DOUBLE = f"""
scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
  %j, %k = affine.delinearize_index %i into (%d, 32) : index, index
  %v = memref.load %x[%j, %k] : {MATRIX}
  %w = arith.addf %v, %v : f32
  memref.store %w, %y[%j, %k] : {MATRIX}
  scf.reduce
}}"""
DOUBLED = f"%x: {MATRIX}, %y: {MATRIX}, %n: index, %d: index"


@pytest.mark.parametrize("rows", [0, 1, 5, 5000])
def test_a_loop_of_one_variable_has_a_lane_for_each_element(rows: int) -> None:
    x = np.arange(rows * 32, dtype=np.float32).reshape(rows, 32)
    y = np.full_like(x, -1)
    run(DOUBLED, DOUBLE, x=x, y=y, n=rows * 32, d=rows)
    np.testing.assert_array_equal(y, 2 * x)


def test_an_iteration_too_many_is_an_error() -> None:
    x = np.zeros((5, 32), np.float32)
    with pytest.raises(ExecutionError, match="outside of dimension 0, 0 to 4, of %x"):
        run(DOUBLED, DOUBLE, x=x, y=x.copy(), n=161, d=6)


def test_an_array_of_another_shape_is_refused() -> None:
    x = np.zeros((5, 31), np.float32)
    with pytest.raises(DataError, match="the array is float32"):
        run(DOUBLED, DOUBLE, x=x, y=x.copy(), n=155, d=5)


COLUMN_SUMS = f"""
scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %y[%i] : {VECTOR}
  scf.reduce
}}
scf.parallel (%row, %column) = (%c0, %c0) to (%rows, %c64) step (%c1, %c1) {{
  %in = arith.cmpi slt, %column, %n : index
  scf.if %in {{
    %v = memref.load %x[%row, %column] : memref<?x?xf32, "gpu">
    %old = memref.atomic_rmw addf %v, %y[%column] : (f32, {VECTOR}) -> f32
  }}
  scf.reduce
}}"""


@pytest.mark.parametrize("rows", [0, 7, 1000])
def test_loops_run_one_after_the_other(rows: int) -> None:
    x = np.arange(rows * 50, dtype=np.float32).reshape(rows, 50) % 11
    y = np.full(50, np.nan, np.float32)
    run(f'%x: memref<?x?xf32, "gpu">, %y: {VECTOR}, %n: index, %rows: index', COLUMN_SUMS, x=x, y=y, n=50, rows=rows)
    np.testing.assert_array_equal(y, x.sum(axis=0))


NEIGHBOURS = """
scf.parallel (%b, %t) = (%c0, %c0) to (%n, %c64) step (%c1, %c1) {
  %s = memref.alloca() : memref<64xf32, 3>
  %v = memref.load %x[%b, %t] : memref<?x64xf32, "gpu">
  memref.store %v, %s[%t] : memref<64xf32, 3>
  gpu.barrier
  %last = arith.constant 63 : index
  %other = arith.subi %last, %t : index
  %w = memref.load %s[%other] : memref<64xf32, 3>
  memref.store %w, %y[%b, %t] : memref<?x64xf32, "gpu">
  scf.reduce
}"""


def test_the_second_variable_is_the_thread_of_a_block() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32)
    y = np.zeros_like(x)
    run('%x: memref<?x64xf32, "gpu">, %y: memref<?x64xf32, "gpu">, %n: index', NEIGHBOURS, x=x, y=y, n=3000)
    np.testing.assert_array_equal(y, x[:, ::-1])


def test_four_variables_are_refused() -> None:
    bounds = " ".join(
        f"{word} ({', '.join([name] * 4)})" for word, name in (("=", "%c0"), ("to", "%n"), ("step", "%c1"))
    )
    loop = f"scf.parallel (%i, %j, %k, %l) {bounds} {{ scf.reduce }}"
    with pytest.raises(Unsupported, match="over 4 variables"):
        run("%n: index", loop, n=2)
