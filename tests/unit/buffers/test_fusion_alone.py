"""A fusion as a program of its own, at sizes and as HLO: the same numbers as in the original program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.buffers.fusion_alone import Interface, NoInterface, at_sizes, fusion_alone
from xla_emitters.buffers.fusion_as_hlo import fusion_as_hlo
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import InternalError, Unsupported
from xla_emitters.fusions.entry import entry_of
from xla_emitters.host.python_program import python_program
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.program import LoadedProgram
from xla_emitters.runtime.reference import evaluate

Array = np.ndarray[Any, Any]
TYPES = {
    "!rows": 'memref<?x?xf32, "gpu">',
    "!row": 'memref<1x?xf32, "gpu">',
    "!many": 'memref<?xf32, "gpu">',
    "!one": 'memref<f32, "gpu">',
    "!pair": 'memref<2xi64, "cpu">',
    "!list": 'memref<1xi64, "cpu">',
    "!lists": 'memref<1xi64, "cpu">, memref<1xi64, "cpu">, memref<1xi64, "cpu">',
}


def ir(text: str) -> str:
    """IR with its types written out."""
    for name in sorted(TYPES, key=len, reverse=True):
        text = text.replace(name, TYPES[name])
    return text


ROWS = ir("""
func.func @main(%x: !rows {disc.sizes = ["b", "s"]}, %w: !row {disc.sizes = ["1", "s"]}, %b: index, %s: index, %shape: !pair) -> !rows {
  %wide = memref.alloc(%b, %s) {disc.sizes = ["b", "s"]} : !rows
  %y = memref.alloc(%b, %s) {disc.sizes = ["b", "s"]} : !rows
  "lmhlo.fusion"() <{fusion_name = "rows", kind = "kLoop"}> ({
    lmhlo.dynamic_broadcast_in_dim %w, %shape -> %wide {dimensions = array<i64: 0, 1>, name = "wide"} : (!row, !pair) -> !rows
    lmhlo.multiply %x, %wide -> %y {name = "y"} : (!rows, !rows) -> !rows
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  memref.dealloc %wide : !rows
  return %y : !rows
}
""")
PAD = ir("""
func.func @main(%x: !many {disc.sizes = ["n"]}, %m: index, %low: !list, %high: !list, %no: !list) -> !many {
  %c = memref.alloc() : !one
  %y = memref.alloc(%m) {disc.sizes = ["m"]} : !many
  "lmhlo.fusion"() <{fusion_name = "pad", kind = "kLoop"}> ({
    lmhlo.constant -> %c {name = "c", value = dense<7.0> : tensor<f32>} : () -> !one
    lmhlo.dynamic_pad %x, %c, %low, %high, %no -> %y {name = "y"} : (!many, !one, !lists) -> !many
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y : !many
}
""")


def alone_of(text: str) -> ModuleOp:
    fusion = next(op for op in parse_ir(text).walk() if isinstance(op, FusionOp))
    found = Interface.of(fusion)
    assert isinstance(found, Interface)
    return parse_ir(print_ir(fusion_alone(fusion, found)))  # as text: so it goes to the process that compiles


def run(module: ModuleOp, arrays: list[Array]) -> list[Array]:
    made = python_program(module)
    return LoadedProgram(made.source, made.functions, made.dtypes, Constants({})).run(arrays)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.asarray([[1, 2, 4, 8]], np.float32)


def test_the_program_alone_has_sizes_in_its_types_and_the_numbers_of_the_fusion() -> None:
    module = at_sizes(alone_of(ROWS), [(1, 4), (3, 4), (3, 4)], [])
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    assert [str(argument.type) for argument in main.args] == ['memref<1x4xf32, "gpu">', 'memref<3x4xf32, "gpu">']
    assert sum(isinstance(op, memref.AllocOp) for op in module.walk()) == 2
    np.testing.assert_array_equal(run(module, [W, X])[0], X * W)


def test_hlo_has_the_same_numbers_without_sizes_as_operands() -> None:
    hlo = fusion_as_hlo(at_sizes(alone_of(ROWS), [(1, 4), (3, 4), (3, 4)], []))
    assert "dynamic" not in print_ir(hlo)
    np.testing.assert_array_equal(evaluate(entry_of(hlo), [W, X])[0], X * W)


@pytest.mark.parametrize(("low", "high", "no"), [(2, 1, 0), (0, 0, 1), (-1, 2, 0)])
def test_lists_of_the_host_are_numbers(low: int, high: int, no: int) -> None:
    x = np.asarray([1, 2, 3], np.float32)
    inner = [1, 2, 3] if no == 0 else [1, 7, 2, 7, 3]
    wanted = np.asarray([7] * low + inner[max(0, -low) :] + [7] * high, np.float32)
    module = at_sizes(alone_of(PAD), [(3,), wanted.shape], [low, high, no])
    np.testing.assert_array_equal(run(module, [x])[0], wanted)
    np.testing.assert_array_equal(evaluate(entry_of(fusion_as_hlo(module)), [x])[0], wanted)


def test_shapes_that_do_not_fit_are_an_internal_error() -> None:
    with pytest.raises(InternalError, match="an array of"):
        at_sizes(alone_of(ROWS), [(2, 4), (3, 4), (3, 4)], [])


def test_a_fusion_that_reads_its_own_reduction_has_no_hlo() -> None:
    module = at_sizes(alone_of(ROWS.replace("kLoop", "kStitch")), [(1, 4), (3, 4), (3, 4)], [])
    with pytest.raises(Unsupported, match="reads its own reductions"):
        fusion_as_hlo(module)


def test_a_fusion_without_a_name_has_no_interface() -> None:
    fusion = next(op for op in parse_ir(ROWS).walk() if isinstance(op, FusionOp))
    fusion.fusion_name = None
    assert Interface.of(fusion) == NoInterface("it has no name")
