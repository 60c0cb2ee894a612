"""A program bound at sizes: guards first, launches as numbers, calls of these sizes alone."""

import numpy as np
import pytest
from unit.runtime.fake_gpu import fake_cupy

import xla_emitters as xe
from xla_emitters.errors import DataError, UsageError
from xla_emitters.pipelines.lowerings import lowerings_of

SUMS = """
func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.add %x, %y : tensor<?x?xf32>
  %rows = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %rows : tensor<?xf32>
}
"""
TWICE = """f {
 p = f32[4,8] parameter(0)
 ROOT s = f32[4,8] add(p, p) }
"""


@pytest.fixture(scope="module")
def program() -> xe.Program:
    return xe.compile(SUMS)


def arrays(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    return x, x[::-1].copy()


def test_the_steps_are_those_of_the_sizes(program: xe.Program) -> None:
    rows, columns = program.symbols
    bound = program.bind(**{rows: 40, columns: 3000})
    assert [spec.shape for spec in bound.parameters] == [(40, 3000)] * 2
    (launch,) = bound.launches
    assert all(isinstance(number, int) for number in (*launch.grid, *launch.block, launch.shared_bytes))
    # A block a row: 40 of them, whatever the schedule is.
    assert sorted(launch.grid, key=str) == [1, 1, 40]
    assert str(bound) == f"{program.name} for h200 at {rows}=40, {columns}=3000: (f32[40,3000], f32[40,3000])"


def test_calls_are_of_these_sizes(program: xe.Program) -> None:
    bound = program.bind(**dict(zip(program.symbols, (3, 5), strict=True)))
    x, y = arrays(3, 5)
    for found in (bound(x, y), *bound.run([x, y]), bound.run_cpu(x, y, stage="llvm-dialect"), bound.on("cpu")(x, y)):
        np.testing.assert_array_equal(found, (x + y).sum(1))
    for other in (arrays(2, 5), (x, y[:2])):
        with pytest.raises(
            DataError, match=r"argument \d \(p\d\) has the sizes \[2,5\].*is bound where it is f32\[3,5\]"
        ):
            bound(*other)
    with pytest.raises(DataError, match="argument"):
        bound(x)


def test_a_first_call_binds_nothing_anew(program: xe.Program) -> None:
    bound = program.bind(**dict(zip(program.symbols, (7, 9), strict=True)))
    loaded = lowerings_of(program).loaded
    counted = loaded.bindings
    bound(*arrays(7, 9))
    program(*arrays(7, 9))
    assert loaded.bindings == counted


def test_on_a_gpu(program: xe.Program) -> None:
    bound = program.bind(**dict(zip(program.symbols, (3, 5), strict=True)))
    with fake_cupy():
        on_gpu = bound.on("gpu")
        x, y = arrays(3, 5)
        np.testing.assert_array_equal(on_gpu(x, y), (x + y).sum(1))
        with pytest.raises(DataError, match="has the sizes"):
            on_gpu(*arrays(4, 5))


def test_guards_are_checked(program: xe.Program) -> None:
    rows, columns = program.symbols
    for sizes, message in (
        ({}, f"it cannot be bound: the sizes '{rows}', '{columns}' of"),
        ({rows: 1}, f"it cannot be bound: the size '{columns}' of"),
        ({rows: 1, columns: 2, "q": 3}, "has no size 'q'"),
        ({rows: -1, columns: 2}, "negative"),
    ):
        with pytest.raises(DataError, match=message):
            program.bind(**sizes)


def test_without_symbols_it_is_bound_already() -> None:
    program = xe.compile(TWICE)
    bound = program.bind()
    assert bound.steps == program.steps
    assert bound.arena_bytes == 0
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(bound(x), 2 * x)
    with pytest.raises(DataError, match="has the sizes"):
        bound(x[:2])
    with pytest.raises(UsageError, match="those of HLO text are known"):
        program.bind(b=2)
