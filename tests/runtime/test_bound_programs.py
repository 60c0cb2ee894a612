"""Programs as bound steps: any sizes, any number of calls and threads, loops of many trips, and messages."""

import gc
import threading
from typing import Any

import numpy as np
import pytest
from runtime.cpu_ways import compiled

from xla_emitters.errors import DataError, ExecutionError
from xla_emitters.pipelines.cpu_lowering import BACKENDS
from xla_emitters.runtime.block_threads import SHARED_WORK
from xla_emitters.runtime.loaded import MOST_BINDINGS


@pytest.fixture(params=[name for name in BACKENDS if name != "auto"])
def way(request: pytest.FixtureRequest) -> str:
    return request.param


DOUBLE = """module @m { func.func public @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = stablehlo.add %x, %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32> } }"""


@pytest.mark.parametrize("rows", [0, 1, 5, SHARED_WORK // 32 + 1])
def test_any_number_of_rows(rows: int, way: str) -> None:
    """The largest number is above the limit from which threads share work."""
    program = compiled(DOUBLE, way)
    x = np.random.default_rng(0).standard_normal((rows, 4), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(program(x), x + x)


def test_an_argument_may_begin_anywhere(way: str) -> None:
    x = np.arange(41, dtype=np.float32)[1:].reshape(10, 4)
    assert x.ctypes.data % 16
    np.testing.assert_array_equal(compiled(DOUBLE, way)(x), x + x)


def test_a_result_lives_as_long_as_a_view_of_it(way: str) -> None:
    gc.freeze()  # what other tests have left is not looked through below
    program, x = compiled(DOUBLE, way), np.ones((1000, 4), np.float32)
    row = program(x)[7]
    gc.collect()
    others = [program(x * 3) for _ in range(20)]
    np.testing.assert_array_equal(row, [2, 2, 2, 2])
    row += 1
    np.testing.assert_array_equal(others[0], x * 6)


def test_threads_call_one_program(way: str) -> None:
    program, wrong = compiled(DOUBLE, way), list[int]()

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(50):
            x = random.standard_normal((int(random.integers(0, 9)), 4), np.float32)
            if not np.array_equal(program(x), x + x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sizes_are_bound_once_and_the_least_recently_used_go(way: str) -> None:
    program = compiled.__wrapped__(DOUBLE, way)
    for _ in range(3):
        for rows in (2, 5):
            program(np.ones((rows, 4), np.float32))
    assert (program.compilation.loaded.runs, program.compilation.loaded.bindings) == (6, 2)
    for rows in range(10, 10 + MOST_BINDINGS):
        program(np.ones((rows, 4), np.float32))
    before = program.compilation.loaded.bindings
    program(np.ones((10, 4), np.float32))
    assert program.compilation.loaded.bindings == before
    program(np.ones((2, 4), np.float32))
    assert program.compilation.loaded.bindings == before + 1


# ----------------------------------------------------------------------------------------------------------------- loops

LOOP = """module @m {{ func.func public @main(%n: tensor<i32>, %x: tensor<?x?xf32>) -> (tensor<i32>, tensor<?x?xf32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?x?xf32>
   cond {{ %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }}
   do {{ %j = stablehlo.add %i, %one : tensor<i32>
     %z = {body}
     stablehlo.return %j, %z : tensor<i32>, tensor<?x?xf32> }}
  return %0#0, %0#1 : tensor<i32>, tensor<?x?xf32> }} }}"""
NEGATED = "stablehlo.negate %y : tensor<?x?xf32>"
MULTIPLIED = (
    "stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
)
UNTIL_LARGE = """module @m { func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<100.0> : tensor<f32>
  %0 = stablehlo.while(%y = %x) : tensor<?xf32>
   cond {
     %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
       : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
     %c = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }
   do { %z = stablehlo.add %y, %x : tensor<?xf32>
     stablehlo.return %z : tensor<?xf32> }
  return %0 : tensor<?xf32> } }"""
GROWING = """module @m { func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %limit = stablehlo.constant dense<9> : tensor<i32>
  %one = stablehlo.constant dense<1.0> : tensor<1xf32>
  %0 = stablehlo.while(%y = %x) : tensor<?xf32>
   cond {
     %n = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
     %c = stablehlo.compare LT, %n, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }
   do { %z = stablehlo.concatenate %y, %one, dim = 0 : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
     stablehlo.return %z : tensor<?xf32> }
  return %0 : tensor<?xf32> } }"""


def test_a_loop_of_any_number_of_trips(way: str) -> None:
    program, x = compiled(LOOP.format(body=NEGATED), way), np.arange(6, dtype=np.float32).reshape(2, 3)
    for count in (3, 2001, 0, 5, -1):
        number, y = program.run([np.int32(count), x])
        assert int(number) == max(0, count)
        np.testing.assert_array_equal(y, -x if max(0, count) % 2 else x)


def test_a_loop_that_calls_the_library(way: str) -> None:
    number, y = compiled(LOOP.format(body=MULTIPLIED), way).run([np.int32(500), np.eye(3, dtype=np.float32)])
    assert int(number) == 500
    np.testing.assert_array_equal(y, np.eye(3))


def test_a_loop_that_data_end(way: str) -> None:
    program = compiled(UNTIL_LARGE, way)
    for x in (np.ones(2, np.float32), np.full(2, 10.0, np.float32), np.full(3, 40.0, np.float32)):
        times = max(1, int(np.ceil(100 / x.sum())))
        for _ in range(2):
            np.testing.assert_array_equal(program(x), np.float32(times) * x)


def test_a_carried_array_may_grow() -> None:
    """Kernels do not check sizes, so NumPy computes it."""
    program = compiled(GROWING, "numpy")
    for count in (0, 1, 8, 9, 12):
        np.testing.assert_array_equal(program(np.zeros(count, np.float32)), [0.0] * count + [1.0] * max(0, 9 - count))


def test_an_endless_loop_is_refused_and_the_program_can_be_called_again(way: str) -> None:
    program = compiled(UNTIL_LARGE, way)
    # Machine code is asked less often.
    with pytest.raises(ExecutionError, match=r"does not end: the state after \d+ iterations is the one after 63"):
        program(np.zeros(2, np.float32))
    np.testing.assert_array_equal(program(np.full(2, 50.0, np.float32)), [50.0, 50.0])


# --------------------------------------------------------------------------------------------------------------- messages

FILLED = """module @m { func.func public @main(%n: tensor<i32>) -> tensor<?x1000x1000xf32> {
  %rows = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %rest = stablehlo.constant dense<1000> : tensor<2xi32>
  %shape = stablehlo.concatenate %rows, %rest, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x1000x1000xf32>
  return %y : tensor<?x1000x1000xf32> } }"""


def test_a_failed_allocation_is_a_message() -> None:
    """A size is negative, or there is no such memory; the program can be called again."""
    program = compiled(FILLED, "numpy")  # kernels do not check sizes
    for count, said in ((-1, "negative"), (2**31 - 1, "memory")):
        with pytest.raises(DataError, match=said):
            program(np.int32(count))
    assert program(np.int32(0)).shape == (0, 1000, 1000)


ASSERTED = """module @m { func.func public @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xi32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %rest = stablehlo.remainder %n, %two : tensor<i32>
  %even = stablehlo.compare EQ, %rest, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%even, %n) {has_side_effect = true, error_message = "{0} is odd"} : (tensor<i1>, tensor<i32>) -> ()
  %y = stablehlo.add %x, %x : tensor<?xi32>
  return %y : tensor<?xi32> } }"""


def test_an_assertion_is_raised_where_the_program_was_called(way: str) -> None:
    program, x = compiled(ASSERTED, way), np.arange(6, dtype=np.int32)
    for _ in range(2):
        np.testing.assert_array_equal(program(x), x + x)
        with pytest.raises(DataError, match="3 is odd"):
            program(x[:3])


DONATED: Any = """module @m { func.func public @main(%x: tensor<?xf32> {tf.aliasing_output = 0 : i32}) -> tensor<?xf32> {
  %y = stablehlo.add %x, %x : tensor<?xf32>
  return %y : tensor<?xf32> } }"""


def test_an_argument_is_the_callers_unless_it_is_donated(way: str) -> None:
    program, x = compiled(DONATED, way), np.arange(5, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(program(x), 2.0 * np.arange(5))
        np.testing.assert_array_equal(x, np.arange(5))
