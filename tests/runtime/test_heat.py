"""Programs whose hot fusions get kernels for their sizes in the background: no wrong number when they are installed, no wait, limits.

The values of all programs of the corpus with such kernels: `make heat`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from runtime.programs_table import programs
from unit.runtime.fake_gpu import HOT_PROCESS, fake_cupy, program_for_fake

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.errors import DataError, UsageError
from xla_emitters.library.arguments import numpy_type
from xla_emitters.lowering.machine_code import assemble
from xla_emitters.pipelines.compiler import compile as compile_hlo
from xla_emitters.pipelines.hot_fusions import HotFusion, HotFusions, load_for_simt
from xla_emitters.pipelines.hot_kernels import compile_hot
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.program_llvm import HOST
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.program_cache import DIRECTORY
from xla_emitters.runtime.ral import hot_kernels
from xla_emitters.runtime.ral.cupy_program import to_numpy
from xla_emitters.runtime.ral.heat import Heat, HeatLimits
from xla_emitters.runtime.ral.hot_compiler import HotCompiler
from xla_emitters.runtime.ral.hot_spots import Spot
from xla_emitters.stablehlo_text import parse_stablehlo

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]
ROWS = """module @m { func.func public @main(%x: tensor<?x?xi32>, %y: tensor<?x?xi32>) -> (tensor<?x?xi32>, tensor<?xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = stablehlo.multiply %x, %y : tensor<?x?xi32>
  %q = stablehlo.add %p, %x : tensor<?x?xi32>
  %s = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xi32>, tensor<i32>) -> tensor<?xi32>
  return %q, %s : tensor<?x?xi32>, tensor<?xi32> } }"""
WAIT = 120.0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def surroundings(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "llvm")
    monkeypatch.setenv(DIRECTORY, str(directory))
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)


@pytest.fixture
def own_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The command of the background process, for a test to change before the first program is loaded."""
    made = HotCompiler()
    monkeypatch.setattr(HotCompiler, "_of_process", made)
    command = list(made.command)
    made.command = command
    yield command
    made.abandon()


def compiled(heat: str, text: str = ROWS) -> DynamicProgram:
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none", heat=heat))


def arrays_of(shape: tuple[int, ...], seed: int = 0) -> list[Array]:
    draw = np.random.default_rng(seed)
    return [draw.integers(-1000, 1000, shape, np.int32) for _ in range(2)]


def wanted_of(x: Array, y: Array) -> list[Array]:
    q = x * y + x
    return [q, q.sum(1, dtype=np.int32)]


def assert_right(program: DynamicProgram, arrays: list[Array], stage: str | None = None) -> None:
    for found, wanted in zip(program.run(arrays, stage), wanted_of(*arrays), strict=True):
        assert np.array_equal(found, wanted)


def heat_of(program: DynamicProgram) -> Heat:
    assert program.heat is not None
    return program.heat


def answered() -> None:
    assert HotCompiler.of_process().wait(WAIT)


SHAPES = [(1, 1), (3, 5), (4, 64), (7, 31), (16, 16), (2, 257), (33, 8), (5, 100), (64, 3), (9, 9)]


def test_kernels_are_put_in_while_threads_call_with_changing_sizes() -> None:
    program = compiled("calls=20")
    cases = [arrays_of(shape, seed) for seed, shape in enumerate(SHAPES)]
    faults = list[BaseException]()

    def call(seed: int) -> None:
        try:
            draw = np.random.default_rng(seed)
            for _ in range(2500):
                assert_right(program, cases[int(draw.integers(len(cases)))])
        except BaseException as error:
            faults.append(error)

    threads = [Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    answered()
    heat = heat_of(program)
    for arrays in cases:
        assert_right(program, arrays)
    assert sum(spot.calls for spot in heat.spots) >= 10_000
    assert all(spot.what for spot in heat.spots)  # each had a kernel of its own
    assert sum(spot.runs for spot in heat.spots) > 0
    assert all(spot.runs < spot.calls for spot in heat.spots)


@pytest.mark.long
def test_a_second_process_starts_with_what_the_first_compiled() -> None:
    code = f"""if True:
        import numpy
        from xla_emitters.pipelines.options import CompileOptions
        from xla_emitters.pipelines.programs import compile_program
        from xla_emitters.runtime.ral.hot_compiler import HotCompiler
        from xla_emitters.stablehlo_text import parse_stablehlo
        module = parse_stablehlo({ROWS!r}, "<test>")
        program = compile_program(module, CompileOptions(record="none", heat="calls=3"))
        x, compiler = numpy.arange(42, dtype="i4").reshape(6, 7), HotCompiler.of_process()
        for calls in (1, 2, 1):
            for _ in range(calls):
                q, s = program(x, x)
                assert numpy.array_equal(q, x * x + x) and numpy.array_equal(s, q.sum(1))
            assert compiler.wait({WAIT})
        print(compiler.found, compiler.compiled, sum(spot.runs for spot in program.heat.spots))
    """
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True).stdout
        for _ in range(2)
    ]
    # Found, compiled, and runs of the one fusion's kernel: in the second process from the second call on.
    assert [line.split() for line in said] == [["0", "1", "1"], ["1", "0", "3"]]


def test_calls_do_not_wait_for_a_compiler_that_never_answers(own_compiler: list[str]) -> None:
    own_compiler[1:] = ["-c", "import time; time.sleep(600)"]
    program = compiled("calls=3")
    for number in range(300):
        assert_right(program, arrays_of((number % 5 + 1, 8)))
    assert {spot.state for spot in heat_of(program).spots} == {"asked"}


def test_a_compiler_that_is_killed_leaves_the_kernels_for_all_sizes(own_compiler: list[str]) -> None:
    own_compiler[1:] = ["-c", "import os; os.kill(os.getpid(), 9)"]
    program = compiled("calls=2")
    for _ in range(3):
        assert_right(program, arrays_of((11, 13)))
    answered()
    assert_right(program, arrays_of((11, 13)))
    assert all(
        "it ended with status -9" in spot.state or "Broken pipe" in spot.state for spot in heat_of(program).spots
    )


def test_what_is_no_object_file_is_not_run(own_compiler: list[str]) -> None:
    answer = (
        '{"what": "?", "launches": [], "temporaries": [], "code": {"object": "bm8=", "parameters": {}, "accesses": {}}}'
    )
    own_compiler[1:] = ["-c", f"import sys\nfor line in sys.stdin: print({answer!r}, flush=True)"]
    program = compiled("calls=1")
    arrays = arrays_of((12, 13))
    for _ in range(2):
        assert_right(program, arrays)
        answered()
    assert all("this is not an object file" in spot.state for spot in heat_of(program).spots)


def test_memory_that_cannot_be_had_ends_in_the_kernels_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    program, arrays = compiled("calls=1"), arrays_of((6, 7))
    program.run(arrays)
    answered()

    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(hot_kernels.PlannedLaunches, "__call__", full)
    assert_right(program, arrays)
    assert all("it failed" in spot.state for spot in heat_of(program).spots)


def test_a_call_without_memory_is_a_message_and_the_next_one_works() -> None:
    text = ELEMENT.format("tensor<?x1000000x1000000xf64>")
    program = compiled("calls=1", text)
    with pytest.raises(DataError, match="out of memory"):
        program(np.zeros((9_000_000,), np.float64))
    np.testing.assert_array_equal(program(np.zeros(0)), np.zeros((0, 1000000, 1000000)))
    assert program.counters.live == 0


ELEMENT = """module @m {{ func.func public @main(%x: tensor<?xf64>) -> {0} {{
  %c = stablehlo.constant dense<1000000> : tensor<1xi64>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf64>) -> tensor<i32>
  %m = stablehlo.convert %n : (tensor<i32>) -> tensor<i64>
  %l = stablehlo.reshape %m : (tensor<i64>) -> tensor<1xi64>
  %s = stablehlo.concatenate %l, %c, %c, dim = 0 : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
  %y = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0] : (tensor<?xf64>, tensor<3xi64>) -> {0}
  return %y : {0} }} }}"""


def test_arrays_that_are_not_aligned_give_the_same() -> None:
    program, arrays = compiled("calls=1"), arrays_of((6, 7))
    program.run(arrays)
    answered()
    held = np.zeros(43, np.int32)
    odd = held[1:].reshape(6, 7)
    odd[...] = arrays[0]
    assert_right(program, [odd, arrays[1]])


def test_kernels_that_machine_code_launches_are_timed_and_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOST, "llvm")
    program, arrays = compiled("calls=3"), arrays_of((6, 7))
    native = program.host.native
    assert native is not None
    for _ in range(3):
        native.run(arrays)
    answered()
    spots = heat_of(program).spots
    assert spots
    for spot in spots:
        assert spot.calls == 3
        assert (spot.fastest[0] or 0) > 0
    results = native.run(arrays)
    for found, wanted in zip(results, wanted_of(*arrays), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert all(spot.fastest[1] is not None for spot in spots if spot.is_replaced)


@pytest.mark.parametrize("name", ["masked_softmax", "padded", "update_slice"])
def test_programs_have_the_values_that_jax_gave(name: str) -> None:
    program = programs()[name]
    found = compile_program(parse_stablehlo(program.text(), name), CompileOptions(record="none", heat="calls=1"))
    program.differences(found)
    answered()
    for spot in heat_of(found).spots:
        spot.fastest = [None, None]  # so that no kernel is dropped for its time
    assert max(program.differences(found)) <= program.case.tolerance
    assert sum(spot.runs for spot in heat_of(found).spots) > 0


# ------------------------------------------------------------------------------------------------------- kernels of a GPU


def test_the_emitters_kernels_run_in_the_place_of_those_for_all_sizes() -> None:
    program, stage = compiled("calls=1", TRANSPOSED), "llvm-dialect"
    x = np.random.default_rng(0).standard_normal((64, 33, 8)).astype(np.float32)
    wanted = np.abs(x).transpose(2, 0, 1)
    for _ in range(2):
        np.testing.assert_array_equal(program.run([x], stage)[0], wanted)
        answered()
    heat = program.lowering.loaded(stage).context.heat
    assert heat is not None
    (spot,) = (spot for spot in heat.spots if "transpose" in spot.fusion)
    assert (spot.what, spot.runs, spot.calls) == ("emitters", 1, 2)
    before, after = spot.gain.instructions or (0, 0)
    assert 0 < after < before


TRANSPOSED = """module @m { func.func public @main(%x: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %y = stablehlo.abs %x : tensor<?x?x?xf32>
  %z = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %z : tensor<?x?x?xf32> } }"""


def test_on_a_gpu_a_hot_fusion_is_launched_from_a_module_of_its_own(own_compiler: list[str]) -> None:
    own_compiler[1:] = ["-c", HOT_PROCESS]
    with fake_cupy() as cupy:
        program = program_for_fake(TRANSPOSED.replace("f32", "bf16"), heat="calls=1").on("gpu")
        x = np.random.default_rng(0).standard_normal((64, 33, 8)).astype(numpy_type("bf16"))
        wanted = np.abs(x).transpose(2, 0, 1)
        np.testing.assert_array_equal(program(x), wanted)
        answered()
        # All kernels of the program; those for the hot sizes, which are loaded before a call meets them.
        assert len(cupy.loads) == 2
        for array in (x, cupy.asarray(x.view(np.uint16))):
            np.testing.assert_array_equal(to_numpy(cupy, program(array), "bf16"), wanted)
        program.heat.limits = HeatLimits()  # nothing more is hot
        np.testing.assert_array_equal(program(x[:5].copy()), wanted[:, :5])
        assert len(cupy.loads) == 2
        (spot,) = (spot for spot in program.heat.spots if "transpose" in spot.fusion and spot.shapes[0][0] == 64)
        assert (spot.what, spot.runs, spot.calls) == ("emitters", 2, 3)
        cupy.state.device = 1  # another device has the kernels for all sizes
        np.testing.assert_array_equal(program(x), wanted)
        assert (spot.runs, spot.calls, len(cupy.loads)) == (2, 4, 3)
        before, after = spot.gain.instructions or (0, 0)
        assert 0 < after < before


def test_ptx_that_the_driver_rejects_leaves_the_kernels_for_all_sizes(own_compiler: list[str]) -> None:
    answer = '{"what": "?", "launches": [], "temporaries": [], "code": {"ptx": "no PTX", "entries": {"f": "f"}}}'
    own_compiler[1:] = ["-c", f"import sys\nfor line in sys.stdin: print({answer!r}, flush=True)"]
    with fake_cupy():
        program, x = program_for_fake(TRANSPOSED, heat="calls=1").on("gpu"), np.ones((3, 4, 5), np.float32)
        for _ in range(2):
            np.testing.assert_array_equal(program(x), np.ones((5, 3, 4)))
            answered()
        assert all("the driver rejects the PTX" in spot.state for spot in program.heat.spots)


@pytest.mark.parametrize("text", [TRANSPOSED, ROWS])
def test_a_kernel_for_a_gpu_is_ptx_that_is_assembled(text: str) -> None:
    program = compiled("off", text)
    assert program.fused is not None
    hot = HotFusions(program.fused, "gpu", program.options, load_for_simt)
    fusion = next(op for op in program.fused.walk() if isinstance(op, FusionOp)).fusion_name.data
    shapes = ((64, 33, 8), (8, 64, 33)) if text is TRANSPOSED else ((6, 7), (6, 7), (6, 7), (6,))
    large = {"kernel": "", "grid": (1 << 20, 1, 1), "block": (1, 1, 1)}  # not counted, so that the kernel is taken
    spot = Spot(fusion, shapes, (), launches=[large])
    request = HotFusion(hot, Heat(HeatLimits(), lambda *_: None), spot).request()
    answer = compile_hot(request)
    ptx = answer["code"]["ptx"]
    assert all(f".entry {entry}(" in ptx for entry in answer["code"]["entries"].values())
    assert {launch["kernel"] for launch in answer["launches"]} == set(answer["code"]["entries"])
    assert assemble(ptx, program.options.device.architecture)


def test_both_platforms_agree_and_other_sizes_take_the_other_kernels() -> None:
    program, stage = compiled("calls=1"), "llvm-dialect"
    assert_right(program, arrays_of((5, 70)), stage)
    answered()
    assert_right(program, arrays_of((5, 70)), stage)
    assert_right(program, arrays_of((5, 71)), stage)


def test_heat_is_for_programs() -> None:
    with pytest.raises(UsageError, match="heat is for programs"):
        compile_hlo("HloModule m\nENTRY e { ROOT %x = f32[2] parameter(0) }", heat="on")
