"""Transposes of unknown size through tiles of shared memory: the bits of NumPy's transpose at every stage, at sizes around a tile's."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_lists import every
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import gpu
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.errors import ExecutionError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.ral.simt_kernels import SimtKernels
from xla_emitters.runtime.simt.sanitizer import SanitizerOfLaunches
from xla_emitters.text.stablehlo import parse_stablehlo

STAGES = ("loops", "kernels", "llvm-dialect")
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "f64": np.float64, "i1": np.bool_}
ORDERS = ((1, 0), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))
SIZES = (16, 17, 31, 32, 33, 64, 70)


def text_of(type: str, order: tuple[int, ...]) -> str:
    """x transposed, and a select that reads it beside an array that is not transposed."""
    full = f"tensor<{'?x' * len(order)}{type}>"
    mask = f"tensor<{'?x' * len(order)}i1>"
    dims = list(order)
    return f"""func.func public @main(%x: {full}, %y: {full}, %m: {mask}) -> ({full}, {full}) {{
  %t = stablehlo.transpose %x, dims = {dims} : ({full}) -> {full}
  %s = stablehlo.select %m, %t, %y : ({mask}, {full}, {full}) -> {full}
  return %t, %s : {full}, {full}
}}"""


@cache
def compiled(type: str, order: tuple[int, ...]) -> Program:
    return compile_program(parse_stablehlo(text_of(type, order), "m"), CompileOptions(record="none"))


def inputs_of(type: str, order: tuple[int, ...], shape: tuple[int, ...], seed: int) -> list[Array]:
    draw = np.random.default_rng(seed)
    x = draw.integers(-100, 100, shape).astype(TYPES[type])
    there = tuple(shape[dim] for dim in order)
    return [x, draw.integers(-100, 100, there).astype(TYPES[type]), draw.integers(0, 2, there).astype(np.bool_)]


def run_watched(program: Program, *arrays: Array) -> list[Array]:
    """The results of its kernels under the sanitizer."""

    def watched(kernels: Kernels) -> Kernels:
        assert isinstance(kernels, SimtKernels)
        return kernels.watched_by(SanitizerOfLaunches())

    compilation: Any = program.compilation
    return compilation.lowering.watched("kernels", print, watched).run(compilation.checked(arrays))


@pytest.mark.parametrize(
    ("type", "order"), every(2, [(type, order) for order in ORDERS for type in ("f32", "bf16")]), ids=str
)
def test_a_transpose_and_what_reads_it_have_numpys_bits(type: str, order: tuple[int, ...]) -> None:
    program = compiled(type, order)
    draw = np.random.default_rng(len(order))
    for number in range(4):
        shape = tuple(int(size) for size in draw.choice(SIZES if number else (33,), len(order)))
        if len(order) == 3:
            shape = (min(shape[0], 33), *shape[1:])
        x, y, mask = inputs_of(type, order, shape, number)
        for stage in STAGES:
            transposed, chosen = program.run_cpu(x, y, mask, stage=stage)
            assert transposed.tobytes() == np.ascontiguousarray(x.transpose(order)).tobytes(), (shape, stage)
            assert chosen.tobytes() == np.where(mask, x.transpose(order), y).tobytes(), (shape, stage)
        assert run_watched(program, x, y, mask)[0].tobytes() == np.ascontiguousarray(x.transpose(order)).tobytes()


@pytest.mark.parametrize("type", ["i8", "i1", "f64"])
def test_other_elements(type: str) -> None:
    x, y, mask = inputs_of(type, (1, 0), (40, 65), 0)
    for stage in STAGES:
        transposed, chosen = compiled(type, (1, 0)).run_cpu(x, y, mask, stage=stage)
        assert np.array_equal(transposed, x.T)
        assert np.array_equal(chosen, np.where(mask, x.T, y))


def test_the_kernel_is_chosen_by_the_sizes() -> None:
    """Below 16 elements in either dimension a thread has an element; one kernel for both results."""
    program = compiled("f32", (1, 0))
    names = [kernel.name for kernel in program.kernels]
    assert sum(name.endswith("_tiles") for name in names) == 1
    assert {name.removesuffix("_tiles").removesuffix("_vec4") for name in names} == {names[0].removesuffix("_tiles")}
    x, y, mask = inputs_of("f32", (1, 0), (3, 70), 0)
    assert np.array_equal(program.run_cpu(x, y, mask, stage="kernels")[0], x.T)


def test_a_barrier_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warps would read elements of the tile that others have not written: the sanitizer names the race."""
    insert = KernelCode.insert

    def without_barriers(self: KernelCode, op: Operation) -> Operation:
        return op if isinstance(op, gpu.BarrierOp) else insert(self, op)

    monkeypatch.setattr(KernelCode, "insert", without_barriers)
    program = compile_program(parse_stablehlo(text_of("f32", (1, 0)), "m"), CompileOptions(record="none"))
    x, y, mask = inputs_of("f32", (1, 0), (64, 64), 0)
    with pytest.raises(ExecutionError, match="shared memory"):
        run_watched(program, x, y, mask)
