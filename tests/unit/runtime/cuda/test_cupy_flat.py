"""Steps on the fake GPU, one at a time: what is copied, what is refused, how arrays are held."""

from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.fake_gpu import for_fake

from xla_emitters.dtypes import DTYPES, dtype
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.library import FUNCTIONS
from xla_emitters.library.arguments import numpy_type
from xla_emitters.program import Arrays, ArraySpec, Kernel, LibraryCall
from xla_emitters.program.executable import executable_of
from xla_emitters.program.step_values import place_of
from xla_emitters.program.steps import ArrayPlace, Call, Launch
from xla_emitters.runtime.cuda.cupy_flat import FlatCupyPlatform, load_functions, refusal
from xla_emitters.runtime.cuda.cupy_platform import bytes_of, to_device, to_host
from xla_emitters.runtime.cuda.cupy_steps import CupyMemory
from xla_emitters.runtime.loaded import LoadedProgram

NEGATE = """
HloModule negated
f { %x = f32[64] parameter(0) ROOT %n = f32[64] negate(%x) }
ENTRY main { %x = f32[64] parameter(0) ROOT %fusion = f32[64] fusion(%x), kind=kLoop, calls=f }
"""
TWO = """
HloModule two
f { %x = f32[64] parameter(0) ROOT %n = f32[64] negate(%x) }
g { %x = f32[64] parameter(0) ROOT %s = f32[64] add(%x, %x) }
ENTRY main {
  %x = f32[64] parameter(0)
  %first = f32[64] fusion(%x), kind=kLoop, calls=f
  ROOT %second = f32[64] fusion(%first), kind=kLoop, calls=g
}
"""
X = np.arange(64, dtype=np.float32)


def in_place() -> Kernel:
    """A kernel whose result is in the memory of its parameter."""
    (kernel,) = for_fake(NEGATE).kernels
    parameter, result = kernel.arguments
    return replace(kernel, arguments=(parameter, replace(result, slice_index=parameter.slice_index)))


def test_an_update_in_place_copies_a_parameter(cupy: ModuleType) -> None:
    kernel = in_place()
    spec = kernel.arguments[0].array
    x, arrays = to_device(cupy, X, spec), Arrays((spec,), (spec,), ())
    launch = Launch(kernel.name, kernel.launch.grid, kernel.launch.block, 0, places(arrays))
    made = executable_of(arrays, [launch], [], {kernel.name: kernel.arguments})
    (result,) = LoadedProgram(made, FlatCupyPlatform(cupy, [kernel], []), CupyMemory(cupy)).run([x])
    assert cupy.copies == [X.nbytes]
    assert np.array_equal(to_host(cupy, result, spec), -X)
    assert np.array_equal(to_host(cupy, x, spec), X)


def places(arrays: Arrays) -> tuple[ArrayPlace, ...]:
    """Of all parameters, then of all results."""
    parameters = arrays.places("parameter", len(arrays.parameters))
    return (*parameters, *arrays.places("result", len(arrays.results)))


def called(cupy: ModuleType, call: LibraryCall) -> list[Any]:
    """The results of a call of a library's function on zeros."""
    arrays = Arrays(call.operands, call.results, ())
    operands, results = arrays.places("parameter", len(call.operands)), arrays.places("result", len(call.results))
    step = Call(0, call.instruction, operands, results)
    inputs = [to_device(cupy, np.zeros(spec.shape, numpy_type(spec.dtype)), spec) for spec in call.operands]
    made = executable_of(arrays, [step], [call], {})
    return LoadedProgram(made, FlatCupyPlatform(cupy, [], [call]), CupyMemory(cupy)).run(inputs)


def test_kernels_of_one_ptx_are_loaded_together(cupy: ModuleType) -> None:
    first, second = for_fake(TWO, tune="xla").kernels
    assert first.ptx == second.ptx
    functions = load_functions(cupy, [first, second])
    assert set(functions) == {"first", "second"}
    assert cupy.loads == [("first", "second")]
    assert load_functions(cupy, [first, second]) == functions
    assert len(cupy.loads) == 1


def test_a_module_that_the_driver_rejects(cupy: ModuleType) -> None:
    kernels = [replace(kernel, ptx="newer") for kernel in for_fake(TWO, tune="xla").kernels]
    with pytest.raises(ToolError, match="the driver rejects the PTX of first and 1 more for sm_75: CUDA_ERROR"):
        load_functions(cupy, kernels)


def test_what_has_no_elements_is_not_loaded(cupy: ModuleType) -> None:
    (kernel,) = for_fake(NEGATE.replace("[64]", "[0]")).kernels
    assert load_functions(cupy, [kernel]) == {}
    assert cupy.loads == []


@pytest.mark.parametrize("name", [row.name for row in DTYPES])
def test_arrays_come_back_as_they_went(name: str, cupy: ModuleType) -> None:
    """Every element type; in a layout that is not its own inverse; 45 elements end in the middle of a byte."""
    row, spec = dtype(name), ArraySpec(name, (3, 5, 3), (0, 2, 1))
    bits = np.random.default_rng(0).integers(0, 1 << min(row.significant_bits, 62), (3, 5, 3), np.uint64)
    array = bits.astype(row.numpy)
    buffer = to_device(cupy, array, spec)
    assert buffer.shape == CupyMemory(cupy).empty(place_of(0, spec), (spec.elements,)).shape
    assert buffer.host.nbytes == bytes_of(spec) == row.size_bytes(45)
    assert to_host(cupy, buffer, spec).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("lu", "f32", "no library function 'lu' on a GPU, which 'c.1' calls: it is slow"),
        ("sort", "s4", "no library function for s4 on a GPU: 'c.1' calls 'sort' with it"),
    ],
)
def test_what_cupy_lacks_is_refused(
    name: str, kind: str, message: str, cupy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of the function or of the type, with the instruction; a result's type counts too."""
    monkeypatch.setitem(FUNCTIONS, "lu", replace(FUNCTIONS["lu"], lacks="it is slow"))
    narrow, wide = ArraySpec(kind, (4,), (0,)), ArraySpec("f32", (4,), (0,))
    for operand, result in ((narrow, wide), (wide, narrow)):
        call = LibraryCall(name, "c.1", (operand,), (result,))
        assert refusal(call).startswith(message)
        with pytest.raises(Unsupported, match=r"c\.1"):
            called(cupy, call)
    assert refusal(LibraryCall("sort", "c.1", (wide,), (ArraySpec("bf16", (4,), (0,)),))) == ""


def test_a_library_of_nvidias_that_is_not_installed(cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's wheels find them when they are first used."""

    def not_found(*_: object, **__: object) -> None:
        raise ImportError("libcufft.so.11: cannot open shared object file")

    monkeypatch.setattr(
        cupy, "fft", SimpleNamespace(fftn=not_found, ifftn=None, rfftn=None, irfftn=None), raising=False
    )
    spec = ArraySpec("c64", (4,), (0,))
    config = {"types": ["c64"], "kind": "FFT", "length": [4]}
    call = LibraryCall("fft", "fft.3", (spec,), (spec,), config)
    with pytest.raises(ToolError, match=r"'fft\.3' calls 'fft', which needs cuFFT: libcufft\.so\.11: cannot open"):
        called(cupy, call)


def test_bfloat16_is_bit_patterns(cupy: ModuleType) -> None:
    array = np.array([1, -2], ml_dtypes.bfloat16)
    assert to_device(cupy, array, ArraySpec("bf16", (2,), (0,))).host.tolist() == [0x3F80, 0xC000]
