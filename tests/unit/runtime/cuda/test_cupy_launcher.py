"""The launcher on a fake GPU (see `fake_cupy`): what it allocates, copies, launches and refuses."""

from dataclasses import replace
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from runtime.modules import recipes
from runtime.small_programs import PROGRAMS
from unit.runtime.fake_gpu import for_fake

from xla_emitters.errors import DataError, ToolError
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import random_arrays, same_bits
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.cuda.cupy_launcher import cuda_reason_missing, device_architecture, launch_program

COLUMN_MAJOR = """
HloModule transposed_layout
f {
  %x = f32[6,8]{0,1} parameter(0)
  %y = bf16[6,8]{1,0} parameter(1)
  %w = f32[6,8]{0,1} convert(%y)
  ROOT %s = f32[6,8]{0,1} subtract(%x, %w)
}
ENTRY main {
  %x = f32[6,8]{0,1} parameter(0)
  %y = bf16[6,8]{1,0} parameter(1)
  ROOT %fusion = f32[6,8]{0,1} fusion(%x, %y), kind=kLoop, calls=f
}
"""
IN_PLACE = """
HloModule in_place
f {
  %x = f64[64] parameter(0)
  %y = f64[64] parameter(1)
  ROOT %s = f64[64] add(%x, %y)
}
ENTRY main {
  %x = f64[64] parameter(0)
  %y = f64[64] parameter(1)
  ROOT %fusion = f64[64] fusion(%x, %y), kind=kLoop, calls=f
}
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_numpy_in_numpy_out(name: str, cupy: ModuleType) -> None:
    """The bits of the CPU's run; bf16, pred and s8 among them."""
    program = for_fake(PROGRAMS[name])
    inputs = random_arrays(program.parameters, 3)
    results = launch_program(program, inputs)
    assert cupy.launches == ["fusion"]
    for got, wanted in zip(results, run_program(program, inputs, "ptx"), strict=True):
        assert isinstance(got, np.ndarray)
        assert got.shape == wanted.shape
        assert same_bits(got, wanted)


@pytest.mark.tiny
def test_device_arrays_in_device_arrays_out(cupy: ModuleType) -> None:
    """Logical and row-major for the caller whatever the layout; a type that CuPy lacks comes as its bit pattern."""
    x, y = np.arange(48, dtype=np.float32).reshape(6, 8), np.full((6, 8), 2, ml_dtypes.bfloat16)
    (result,) = launch_program(for_fake(COLUMN_MAJOR), [cupy.asarray(x), cupy.asarray(y.view(np.uint16))])
    assert isinstance(result, cupy.ndarray)
    assert (result.shape, result.dtype) == ((6, 8), np.float32)
    assert np.array_equal(cupy.asnumpy(result), x - 2)


def test_a_foreign_array_comes_by_dlpack(cupy: ModuleType) -> None:
    class Tensor:
        """Of another library: all that it offers is DLPack."""

        def __init__(self, host: np.ndarray):
            self.host = host

        def __dlpack__(self, **options: object) -> object:
            return self.host.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.host.__dlpack_device__()

    x = np.arange(1003).astype(np.int8)
    (result,) = launch_program(for_fake(PROGRAMS["bytes"]), [Tensor(x)])
    assert np.array_equal(cupy.asnumpy(result), ((~x).astype(np.int32) + 7).astype(np.int8))


def test_calling_the_program(cupy: ModuleType) -> None:
    """One result is an array, two are a tuple. It runs where its arrays are, unless a platform is named."""
    x, program = np.arange(512, dtype=np.float32).reshape(8, 64) / 64, for_fake(PROGRAMS["two_results"])
    for given, make in ((x, program), (x, program.on("gpu")), (cupy.asarray(x), program)):
        before = len(cupy.launches)
        first, second = make(given)
        assert len(cupy.launches) - before == (make is not program or given is not x)
        assert isinstance(first, type(given))
        assert np.allclose(cupy.asnumpy(cupy.asarray(first)), np.exp(x), rtol=1e-6)
        assert np.array_equal(cupy.asnumpy(cupy.asarray(second)), -cupy.asnumpy(cupy.asarray(first)).reshape(512))
    assert program.on("gpu").log == {}


def test_a_kernel_is_loaded_once_per_device(cupy: ModuleType) -> None:
    program = for_fake(PROGRAMS["bytes"])
    x = np.zeros(1003, np.int8)
    for _ in range(3):
        launch_program(program, [x])
    assert (cupy.loads, len(cupy.launches)) == ([("fusion",)], 3)
    cupy.state.device = 1
    launch_program(program, [x])
    assert cupy.loads == [("fusion",)] * 2


def test_misaligned_views_are_copied(cupy: ModuleType) -> None:
    """Kernels promise that parameters begin at a multiple of 16 bytes; a view need not."""
    program = for_fake(IN_PLACE)
    x, y = random_arrays(program.parameters, 0)
    memory = cupy.full(8 + x.nbytes, 0, np.uint8)
    shifted = memory[8:].view(np.float64)
    assert shifted.data.ptr % 16 == 8
    shifted[:] = cupy.asarray(x)
    (result,) = launch_program(program, [shifted, cupy.asarray(y)])
    assert np.array_equal(cupy.asnumpy(result), x + y)


def shared(program: Program) -> Program:
    """The program with its result in the slice of parameter 0, as XLA's buffer assignment may have it."""
    (kernel,) = program.kernels
    first, second, result = kernel.arguments
    aliased = replace(kernel, arguments=(first, second, replace(result, slice_index=first.slice_index)))
    return replace(program, compilation=replace(program.compilation, kernels=(aliased,)))


def test_a_result_in_the_place_of_a_parameter_leaves_the_callers_array(cupy: ModuleType) -> None:
    program = shared(for_fake(IN_PLACE))
    x, y = random_arrays(program.parameters, 0)
    mine = cupy.asarray(x)
    (result,) = launch_program(program, [mine, cupy.asarray(y)])
    assert np.array_equal(cupy.asnumpy(result), x + y)
    assert np.array_equal(cupy.asnumpy(mine), x)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.zeros(1003, np.uint8)], "parameter 0 is uint8, but s8"),
        ([np.zeros((17, 59), np.int8)], r"parameter 0 has shape \[17, 59\], but s8\[1003\] is expected"),
        ([np.zeros(1003, np.int8), np.zeros(3)], "bytes takes 1 arrays, 2 were given"),
    ],
)
def test_host_arrays_that_do_not_fit(arrays: list[np.ndarray], message: str, cupy: ModuleType) -> None:
    with pytest.raises(DataError, match=message):
        launch_program(for_fake(PROGRAMS["bytes"]), arrays)
    assert cupy.launches == []


def test_device_arrays_that_do_not_fit(cupy: ModuleType) -> None:
    """As wide is not enough: s32 for f32 would be read as floats."""
    program = for_fake(PROGRAMS["two_results"])
    for array in (np.zeros((8, 64), np.int32), np.zeros((64, 8), np.float32)):
        with pytest.raises(DataError, match=r"parameter 0 is .*, but f32\[8,64\] is expected \(float32\)"):
            launch_program(program, [cupy.asarray(array)])


PACKED = """
HloModule packed
f {
  %x = s4[5,7]{0,1} parameter(0)
  %y = u2[5,7] parameter(1)
  %w = s4[5,7] convert(%y)
  %s = s4[5,7]{1,0} add(%x, %w)
  %n = u2[5,7] not(%y)
  ROOT %t = (s4[5,7], u2[5,7]) tuple(%s, %n)
}
ENTRY main {
  %x = s4[5,7]{0,1} parameter(0)
  %y = u2[5,7] parameter(1)
  ROOT %fusion = (s4[5,7], u2[5,7]) fusion(%x, %y), kind=kLoop, calls=f
}
"""


def test_sub_byte_arrays_are_packed(cupy: ModuleType) -> None:
    """An element in a byte for the caller, NumPy's or on the device; 35 elements end in the middle of one."""
    program = for_fake(PACKED)
    x = (np.arange(35).reshape(5, 7) % 16 - 8).astype(ml_dtypes.int4)
    y = (np.arange(35).reshape(5, 7) % 4).astype(ml_dtypes.uint2)
    wanted = [(np.arange(35) % 16 + np.arange(35) % 4) % 16 - 8, 3 - np.arange(35) % 4]
    for got, numbers in zip(launch_program(program, [x, y]), wanted, strict=True):
        assert got.astype(int).ravel().tolist() == numbers.tolist()
    results = launch_program(program, [cupy.asarray(x.view(np.uint8)), cupy.asarray(y.view(np.uint8))])
    patterns = [np.where(wanted[0] < 0, wanted[0] + 16, wanted[0]), wanted[1]]
    for got, numbers in zip(results, patterns, strict=True):
        assert isinstance(got, cupy.ndarray)
        assert (got.shape, got.dtype) == ((5, 7), np.uint8)
        assert cupy.asnumpy(got).ravel().tolist() == numbers.tolist()


def test_a_bitcast_of_packed_arrays_copies_their_bytes(cupy: ModuleType) -> None:
    program = for_fake(
        "HloModule m ENTRY e { x = u8[2,1] parameter(0) b = s4[2,2] bitcast(x) c = s8[2,2] convert(b) ROOT n = s8[2,2] negate(c) }"
    )
    (got,) = launch_program(program, [np.array([[0xE1], [0x83]], np.uint8)])
    assert got.tolist() == [[-1, 2], [-3, 8]]


def test_a_driver_that_does_not_take_the_ptx(cupy: ModuleType) -> None:
    program = for_fake(PROGRAMS["bytes"])
    kernels = (replace(program.kernels[0], ptx="not for this driver"),)
    broken = replace(program, compilation=replace(program.compilation, kernels=kernels))
    with pytest.raises(ToolError, match=r"the driver rejects the PTX of fusion for sm_75: CUDA_ERROR") as raised:
        launch_program(broken, [np.zeros(1003, np.int8)])
    assert "12.7" in raised.value.help


def test_what_is_missing(cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuda_reason_missing() is None
    cupy.state.devices = 0
    assert cuda_reason_missing() == "no CUDA device"

    def no_driver() -> int:
        raise cupy.CUDARuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", no_driver)
    assert cuda_reason_missing() == "no CUDA device (cudaErrorInsufficientDriver)"
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    assert cuda_reason_missing() == "CuPy is not installed"
    with pytest.raises(ToolError, match="CuPy is not installed"):
        launch_program(for_fake(PROGRAMS["bytes"]), [np.zeros(1003, np.int8)])


@pytest.mark.parametrize(
    ("capability", "wanted"), [("75", "sm_75"), ("89", "sm_86"), ("90", "sm_90"), ("120", "sm_100")]
)
def test_what_to_compile_for(capability: str, wanted: str, cupy: ModuleType) -> None:
    """The device's architecture, or the newest known one whose PTX it runs."""
    cupy.state.capability = capability
    assert device_architecture() == wanted


@pytest.mark.parametrize("name", ["search_sorted", "fori_power_iteration", "switch_of_three", "cond_of_trees"])
def test_whole_modules(name: str, cupy: ModuleType) -> None:
    """Sorts, products, loops, branches: what XLA:CPU makes of the same arrays. Their kernels are one PTX module, loaded once."""
    recipe = recipes()[name]
    program = for_fake(recipe.text(""), "h200")
    results = launch_program(program, recipe.arrays())
    assert recipe.differs(results, program.results) == ()
    assert len(cupy.loads) == 1
    assert set(cupy.launches) <= set(cupy.loads[0]) == {kernel.name for kernel in program.kernels}
