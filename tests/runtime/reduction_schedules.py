"""Reductions with one fusion for each schedule, and all sizes of the table: every start counted once, no fault of the sanitizer.

make reduction-schedules                          rows 0 to 300 by 9 numbers of columns, every schedule: about five minutes
python -m runtime.reduction_schedules row1 7      one schedule, every 7th number of rows
"""

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from runtime.fusion_loops import Schedule, run, scheduled
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from xla_emitters.dtypes import Array, dtype
from xla_emitters.dynamic.loops.column_reduction_schedule import ATOMICS, emit_column_reduction_schedule
from xla_emitters.dynamic.loops.row_loop import ROW_SCHEDULES
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.dynamic.loops.stitch_schedule import emit_stitch_schedule

COLUMNS = (0, 1, 31, 32, 33, 511, 512, 513, 4096)


def emit_columns_by_atomics(fusion: FusionLoops) -> None:
    fusion.op.attributes[ATOMICS] = UnitAttr()
    emit_column_reduction_schedule(fusion)


SCHEDULES: dict[str, tuple[int, Schedule]] = {
    "row1": (1, ROW_SCHEDULES["row1"]),
    "row2": (1, ROW_SCHEDULES["row2"]),
    "row3": (1, ROW_SCHEDULES["row3"]),
    "stitch": (1, emit_stitch_schedule),
    "column": (0, emit_column_reduction_schedule),
    "atomics": (0, emit_columns_by_atomics),
}
"""Name -> the dimension that is reduced, the schedule."""


def computation(name: str, element: str, *ops: str) -> str:
    """A reduction's computation of two values %a and %b, whose result is %r."""
    return "\n".join(
        (
            f"hlo.computation @{name} {{",
            f'  %a = hlo.parameter 0 {{name = "a"}} : tensor<{element}>',
            f'  %b = hlo.parameter 1 {{name = "b"}} : tensor<{element}>',
            *(f"  {op}" for op in ops),
            f"  hlo.return %r : tensor<{element}>",
            "}",
        )
    )


def by(opcode: str, element: str) -> str:
    return computation("body", element, f'%r = hlo.{opcode} %a, %b {{name = "r"}} : tensor<{element}>')


def reduction(element: str, dim: int, body: str, columns: str = "?") -> str:
    """A program with one fusion: %y = the reduction of %x along `dim`, from %i."""
    matrix, init, result = (
        f'memref<?x{columns}x{element}, "gpu">',
        f'memref<{element}, "gpu">',
        f'memref<{"?" if dim == 1 else columns}x{element}, "gpu">',
    )
    return f"""
{body}
func.func @main(%x: {matrix}, %i: {init}, %y: {result}) {{
  "lmhlo.fusion"() ({{
    lmhlo.reduce %x, %i -> %y {{dimensions = array<i64: {dim}>, name = "r", to_apply = @body}} : ({matrix}, {init}) -> {result}
    lmhlo.terminator
  }}) {{fusion_name = "f"}} : () -> ()
  func.return
}}"""


@lru_cache(maxsize=32)
def loops_of(text: str, schedule: Schedule) -> ModuleOp:
    return scheduled(text, schedule)


def reduced(name: str, element: str, body: str, x: Array, init: Any, columns: str = "?") -> Array:
    """The result of a schedule's loops, in a result array whose bits were all ones before."""
    dim, schedule = SCHEDULES[name]
    module = loops_of(reduction(str(dtype(element).ir_type), dim, body, columns), schedule)
    y = np.empty(x.shape[1 - dim], x.dtype)
    y.view(np.uint8)[...] = 0xFF
    run(module, x=x, i=np.asarray(init, x.dtype), y=y)
    return y


def whole_numbers(rows: int, columns: int, kind: Any = np.float32) -> Array:
    """Numbers whose sums are exact in any order."""
    return np.random.default_rng([rows, columns]).integers(-9, 10, (rows, columns)).astype(kind)


def check_sums(name: str, rows: int, columns: int) -> None:
    x = whole_numbers(rows, columns)
    found = reduced(name, "f32", by("add", "f32"), x, 5)
    np.testing.assert_array_equal(found, 5 + x.sum(SCHEDULES[name][0]), f"{name}: {rows} x {columns}")


def main(arguments: list[str]) -> None:
    """Checks all sizes; one line a schedule."""
    step = int(arguments[-1]) if arguments and arguments[-1].isdigit() else 1
    for name in [argument for argument in arguments if argument in SCHEDULES] or SCHEDULES:
        sizes = [(rows, columns) for rows in range(0, 301, step) for columns in COLUMNS]
        for rows, columns in sizes:
            check_sums(name, rows, columns)
        print(
            f"{name:8} {len(sizes)} sizes: starts counted once, no race, nothing out of bounds or unwritten", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
