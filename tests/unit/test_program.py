"""Programs and kernels as values: printed, stored as JSON, and back."""

import json
from typing import Any

import numpy as np
import pytest
from runtime.small_programs import PROGRAMS, TARGET

from xla_emitters.errors import DataError, ToolError, UsageError
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import (
    Argument,
    ArraySpec,
    Kernel,
    LaunchDimensions,
    Program,
)
from xla_emitters.program.as_json import kernel_from_json, kernel_json


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_survives_json(name: str) -> None:
    program = compile(PROGRAMS[name], target=TARGET, stage="llvm-dialect")
    back = Program.from_json(json.loads(json.dumps(program.to_json())))
    assert back == program
    assert back.hlo == program.hlo


@pytest.mark.tiny
def test_the_keys_that_users_are_told() -> None:
    """Name, grid, block, shared_bytes and what a launcher needs; the PTX is the program's."""
    kernel = Kernel(
        *("k", "// ptx", "sm_90", LaunchDimensions((2, 1, 1), (128, 1, 1)), 0),
        (Argument("parameter", 0, ArraySpec("f32", (256,), (0,)), 1024, 16, 0, False),),
    )
    data = kernel_json(kernel)
    assert list(data) == ["name", "grid", "block", "shared_bytes", "architecture", "arguments", "scalars"]
    assert (data["grid"], data["block"]) == ([2, 1, 1], [128, 1, 1])
    assert data["arguments"][0]["array"] == {"dtype": "f32", "shape": [256], "minor_to_major": [0]}
    assert kernel_from_json(json.loads(json.dumps(data)), "// ptx") == kernel


def test_array_specs_are_printed_as_in_hlo() -> None:
    assert str(ArraySpec("bf16", (6, 512, 4096), (2, 1, 0))) == "bf16[6,512,4096]"
    assert str(ArraySpec("f32", (2, 3), (0, 1))) == "f32[2,3]{0,1}"
    assert str(ArraySpec("pred", (), ())) == "pred[]"
    assert ArraySpec("pred", (), ()).elements == 1
    assert ArraySpec("f32", (3, 0), (1, 0)).elements == 0


def test_what_gelus_kernel_promises() -> None:
    """XLA's ABI: parameters 16-byte aligned, results 256; bytes of the whole slice; a slice each."""
    (kernel,) = compile(PROGRAMS["gelu"], target=TARGET, stage="xla_gpu").kernels
    parameter, result = kernel.arguments
    size = 5 * 64 * 128 * 2
    assert (parameter.kind, parameter.bytes, parameter.alignment, parameter.written) == ("parameter", size, 16, False)
    assert (result.kind, result.bytes, result.alignment, result.written) == ("result", size, 256, True)
    assert parameter.slice_index != result.slice_index


def test_running_on_the_cpu_by_the_value_itself() -> None:
    """One result is an array, several are a tuple; `stage` chooses the IR."""
    x = np.arange(512, dtype=np.float32).reshape(8, 64) / 64
    program = compile(PROGRAMS["two_results"], target=TARGET, stage="llvm-dialect")
    for stage in ("hlo", "xla_gpu", "scf", "llvm-dialect"):
        first, second = program.run_cpu(x, stage=stage)
        assert np.allclose(first, np.exp(x), rtol=1e-6)
        assert np.array_equal(second, -first.reshape(512))
    bytes_ = compile(PROGRAMS["bytes"], target=TARGET, stage="llvm-dialect")
    y = np.arange(1003).astype(np.int8)
    assert np.array_equal(bytes_.run_cpu(y), ((~y).astype(np.int32) + 7).astype(np.int8))


def test_what_cannot_be_run_says_why() -> None:
    program = compile(PROGRAMS["bytes"], target=TARGET, stage="scf")
    with pytest.raises(UsageError, match="no stage 'flat' in this trace"):
        program.run_cpu(np.zeros(1003, np.int8), stage="flat")
    with pytest.raises(DataError, match="takes 1 arrays, 2 were given"):
        program.run_cpu(np.zeros(1003, np.int8), np.zeros(1003, np.int8), stage="scf")
    with pytest.raises(DataError, match="parameter 0 is float64, but s8"):
        program.run_cpu(np.zeros(1003), stage="scf")


def test_calling_a_program_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xla_emitters.runtime.cuda.cupy_launcher.cuda_reason_missing", lambda: "CuPy is not installed")
    program = compile(PROGRAMS["bytes"], target=TARGET, stage="xla_gpu")
    with pytest.raises(ToolError, match="CuPy is not installed") as raised:
        program.on("gpu")(np.zeros(1003, np.int8))
    assert "[cuda12]" in raised.value.help
    with pytest.raises(UsageError, match="no platform 'tpu'"):
        program.on("tpu")


@pytest.mark.parametrize(
    ("stage", "record"), [("llvm-dialect", "stages"), ("scf", "stages"), ("scf", "none"), ("hlo", "stages")]
)
def test_a_call_on_numpy_arrays_runs_on_the_cpu(stage: str, record: Any) -> None:
    """At the last stage that was recorded; without one, the text's."""
    program = compile(PROGRAMS["bytes"], target=TARGET, stage=stage, record=record, cache=False)
    x = np.arange(1003).astype(np.int8)
    for made in (program(x), program.on("cpu")(x), program.run_cpu(x), *program.on("cpu").run([x])):
        assert np.array_equal(made, ((~x).astype(np.int32) + 7).astype(np.int8))
    assert program.on("cpu").log == {}
