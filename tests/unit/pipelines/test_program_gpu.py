"""Programs with unknown sizes through CuPy: on a fake CuPy, whose device is the CPU executor."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from long_lists import but_long
from unit.runtime.fake_gpu import NO_SCALARS, of_corpus, program_for_fake

import xla_emitters as xe
from xla_emitters.errors import DataError, ToolError, UsageError
from xla_emitters.pipelines.program_gpu import GpuProgram
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.program import Program

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = {
    "softmax": "fusions/softmax",
    "products": "programs/causal_attention",
    "loop": "programs/given_trips",
    "sort": "library/sorts",
    "scatter": "stablehlo/scatter_add",
}


def compiled(name: str) -> Program:
    return of_corpus(FILES[name])


def loaded(program: Program) -> GpuProgram:
    """On the fake of this test; `on` keeps the first."""
    return GpuProgram(program.compilation)


# `test_nothing_on_the_host.py` has programs of every kind.
@pytest.mark.parametrize("name", but_long(FILES, ("products", "loop", "scatter")))
def test_one_compilation_has_the_reference_s_numbers_at_several_sizes(name: str, cupy: ModuleType) -> None:
    program = compiled(name)
    on_gpu = loaded(program)
    for first in (1, 4):
        inputs = drawn_inputs(program, {symbol: first + i for i, symbol in enumerate(program.symbols)}, 0)
        for found, wanted in zip(on_gpu.run(inputs), program.run(inputs, stage="hlo"), strict=True):
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert len(cupy.loads) <= 1  # one module, whatever the sizes
    assert cupy.launches or name == "sort"


def test_what_no_kernel_and_no_library_computes_is_done_on_the_host_and_said(cupy: ModuleType) -> None:
    """A computation of more than ops on scalars."""
    on_gpu = loaded(program_for_fake(NO_SCALARS))
    (found,) = on_gpu.run([np.array([1, 3, 2, -5], np.float32)])
    np.testing.assert_array_equal(found, [3, 3, 3, 2])
    assert on_gpu.log
    assert all("no kernel computes it" in reason for reason in on_gpu.log.values())


def test_arrays_of_the_device_give_arrays_of_the_device(cupy: ModuleType) -> None:
    program = compiled("softmax")
    inputs = drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0)
    (found,) = loaded(program).run([cupy.asarray(array) for array in inputs])
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(found), program.run(inputs, stage="hlo")[0], rtol=1e-5)
    with pytest.raises(DataError):
        loaded(program).run([cupy.asarray(array.astype(np.int32)) for array in inputs])


def test_a_limit_on_memory_is_checked_before_device_memory_is_allocated(cupy: ModuleType) -> None:
    program = compiled("softmax")
    inputs = drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0)
    with xe.limited_memory(1000):
        loaded(program).run(inputs)
    with (
        xe.limited_memory(20),
        pytest.raises(
            DataError, match=r"out of memory: %[\w.]+ is f(loat)?32\[3,3\], 36 bytes; a run may take 20 bytes"
        ),
    ):
        loaded(program).run(inputs)


def test_without_cupy_it_is_said_with_a_way_out() -> None:
    program = xe.compile(CORPUS / "fusions/softmax.mlir")
    with pytest.raises(ToolError, match="CuPy"):
        program.on("gpu")
    with pytest.raises(UsageError, match="cpu or gpu"):
        program.on("tpu")
    assert program.on("cpu").log == {}


def test_a_kernel_is_loaded_once_in_the_lifetime_of_a_context(cupy: ModuleType) -> None:
    """The seed's "load_kernel_if_not_and_then_launch_kernel": launches in a loop, and in calls at other sizes, load nothing again."""
    program = compiled("loop")
    on_gpu = loaded(program)
    counts = list[int]()
    for first in (2, 5, 2):
        on_gpu.run(drawn_inputs(program, {symbol: first + i for i, symbol in enumerate(program.symbols)}, 0))
        counts.append(len(cupy.launches))
    assert len(cupy.loads) == 1
    assert 2 < counts[0] < counts[1] < counts[2]
    cupy.state.device = 1
    on_gpu.run(drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0))
    assert len(cupy.loads) == 2


CALLS = """
func.func public @main(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
  %y = stablehlo.add %x, %x : tensor<?x3xf32>
  stablehlo.custom_call @print(%y) {has_side_effect = true, name = "twice"} : (tensor<?x3xf32>) -> ()
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %low = stablehlo.constant dense<-1.0> : tensor<f32>
  %high = stablehlo.constant dense<2.0> : tensor<f32>
  %u = "stablehlo.rng"(%low, %high, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>}
    : (tensor<f32>, tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
  return %y, %u : tensor<?x3xf32>, tensor<?x3xf32>
}
"""


def test_prints_and_random_numbers_on_a_device(cupy: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    program = program_for_fake(CALLS)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = program(x)[1]
    capfd.readouterr()
    on_gpu = loaded(program)
    twice, numbers = on_gpu.run([x])
    np.testing.assert_array_equal(twice, x + x)
    np.testing.assert_array_equal(numbers, wanted)
    assert not on_gpu.log
    assert capfd.readouterr().err == f"twice: f32[2,3] {x + x}\n"


def test_arguments_in_another_order_are_copied(cupy: ModuleType) -> None:
    """The same types and sizes with other strides: after a call with arrays in C order, and before one."""
    program = compiled("softmax")
    on_gpu, rows = loaded(program), dict.fromkeys(program.symbols, 3)
    (x,) = drawn_inputs(program, rows, 0)
    wanted = program.run([x], stage="hlo")[0]
    for array in (cupy.asarray(x), cupy.asarray(np.ascontiguousarray(x.T)).transpose(1, 0)) * 2:
        (found,) = on_gpu.run([array])
        np.testing.assert_allclose(cupy.asnumpy(found), wanted, rtol=1e-5)
