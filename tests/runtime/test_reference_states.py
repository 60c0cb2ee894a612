"""The real XLA's own IR, before each of its passes, run on the CPU: NumPy's numbers at every state.

The launch is the one in the IR, which must be the real one; only the last state does not contain it.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from long_lists import every
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import FOR_TOOLS, KERNEL
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.execute import Entry
from xla_emitters.transforms.from_upstream_spelling import FromUpstreamSpellingPass

REFERENCE = Path(__file__).parent.parent / "corpus" / "reference"
DUMP = re.compile(r"^// -----// IR Dump Before (\w+?)(?:Pass)?: .*//----- //$", re.MULTILINE)
BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class State:
    """The module `text` before XLA's pass number `number`."""

    fusion: str
    number: int
    before: str
    text: str

    def __str__(self) -> str:
        return f"{self.fusion}-{self.number:02}-{self.before}"


def states(fusion: str) -> list[State]:
    """The states of a fusion's log, the first of those that are equal; the last is what XLA hands to LLVM."""
    log = (REFERENCE / fusion / "passes.mlir.log").read_text()
    dumps = list(DUMP.finditer(log))
    ends = [dump.start() for dump in dumps[1:]] + [len(log)]
    found: dict[str, State] = {}
    for number, (dump, end) in enumerate(zip(dumps, ends, strict=True)):
        text = log[dump.end() : end]
        found.setdefault(text, State(fusion, number, dump[1], text))
    return list(found.values())


@cache
def module_of(state: State) -> ModuleOp:
    return parse_ir(state.text)


def real_launch(fusion: str) -> LaunchDimensions:
    (kernel,) = json.loads((REFERENCE / fusion / "launch.json").read_text())["kernels"]
    return LaunchDimensions(tuple(kernel["blocks"]), tuple(kernel["threads"]))


def launch_for(state: State) -> LaunchDimensions | None:
    """The launch to pass to `execute`: None, except for states that do not contain it."""
    return real_launch(state.fusion) if state.before == "ReconcileUnrealizedCasts" else None


ALL = {fusion: states(fusion) for fusion in ("gelu", "transpose", "row_reduction")}


def of(fusion: str):
    """Neighbours are much alike."""
    return pytest.mark.parametrize("state", every(3, ALL[fusion]), ids=str)


@pytest.mark.parametrize("fusion", ALL)
def test_the_ir_says_its_launch(fusion):
    for state in ALL[fusion]:
        module = module_of(state)
        if launch_for(state):
            with pytest.raises(VerifyError, match="launch of the entry is not known"):
                Entry.of(module, None, None)
        else:
            assert Entry.of(module, None, None).launch == real_launch(fusion)


# ---------------------------------------------------------------------------------------------- GELU


@cache
def gelu() -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and the HLO's results in ml_dtypes' own bf16 arithmetic, which rounds after each op."""
    x = np.random.default_rng(0).standard_normal((6, 512, 4096), np.float32).astype(BF16)
    x[0, 0, :6] = [0.0, -0.0, np.inf, 3e38, -3e38, 1e-40]
    half, one, scale, cubic = (BF16(c) for c in (0.5, 1.0, 0.79785, 0.044708))
    with np.errstate(over="ignore"):
        inner = (x + x * x * x * cubic) * scale
        tanh = np.tanh(inner.astype(np.float32)).astype(BF16)
        return x, x * ((tanh + one) * half)


@of("gelu")
def test_gelu_in_some_blocks(state):
    """A block computes 512 neighbours; the others stay as they are, filled with a NaN that no block makes."""
    x, wanted = gelu()
    blocks = [0, 1, 4095, 12345, 24575]
    out = np.full(x.shape, -1, np.int16).view(BF16)
    execute(module_of(state), [x, out], blocks=blocks, launch=launch_for(state))
    bits = out.view(np.int16).reshape(24576, 512)
    np.testing.assert_array_equal(np.flatnonzero((bits != -1).any(axis=1)), blocks)
    np.testing.assert_array_equal(bits[blocks], wanted.view(np.int16).reshape(24576, 512)[blocks])


@pytest.mark.parametrize("state", [ALL["gelu"][0], ALL["gelu"][-1]], ids=str)
def test_gelu_in_all_blocks(state):
    x, wanted = gelu()
    out = np.zeros_like(wanted)
    execute(module_of(state), [x, out], launch=launch_for(state))
    np.testing.assert_array_equal(out.view(np.uint16), wanted.view(np.uint16))


def test_our_passes_keep_the_numbers_of_what_xla_emits():
    """XLA's first state, read into our spelling, through our passes; the bits after each."""
    x, wanted = gelu()
    blocks = [0, 1, 12345, 24575]
    module = module_of(ALL["gelu"][0])
    for kernel_pass in (FromUpstreamSpellingPass(), *(row.make(CompileOptions()) for row in (*KERNEL, *FOR_TOOLS))):
        run_pass(kernel_pass, make_context(), module)
        out = np.full(x.shape, -1, np.int16).view(BF16)
        execute(module, [x, out], blocks=blocks)
        bits = out.view(np.int16).reshape(24576, 512)
        np.testing.assert_array_equal(np.flatnonzero((bits != -1).any(axis=1)), blocks)
        np.testing.assert_array_equal(bits[blocks], wanted.view(np.int16).reshape(24576, 512)[blocks])
    assert {op.name.partition(".")[0] for op in module.walk()} == {"builtin", "llvm"}


def test_gelu_is_the_same_as_ours():
    x, wanted = gelu()
    (ours,) = run_program(xe.compile(REFERENCE / "gelu" / "input.hlo"), [x], "xla_gpu")
    np.testing.assert_array_equal(ours.view(np.uint16), wanted.view(np.uint16))


# ---------------------------------------------------------------------------------------------- transpose


@of("transpose")
def test_transpose(state):
    x = np.random.default_rng(1).standard_normal((20, 160, 170), np.float32) * 30
    x[3, 5, :4] = [np.inf, -np.inf, np.nan, -0.0]
    with np.errstate(over="ignore"):
        wanted = np.abs(np.exp(x).transpose(2, 1, 0))
    out = np.zeros_like(wanted, order="C")
    execute(module_of(state), [x, out], launch=launch_for(state))
    np.testing.assert_array_equal(out, wanted)


# ---------------------------------------------------------------------------------------------- row reduction


def summed(state: State, x: np.ndarray) -> np.ndarray:
    out = np.zeros(8, np.float32)
    execute(module_of(state), [x, out], launch=launch_for(state))
    return out


@of("row_reduction")
def test_row_reduction(state):
    """Exact for whole numbers; else within what 2047 roundings can do, and the same bits as before every pass."""
    draw = np.random.default_rng(2)
    whole = draw.integers(-1000, 1000, (8, 2048)).astype(np.float32)
    np.testing.assert_array_equal(summed(state, whole), whole.sum(axis=1, dtype=np.float64))
    x = draw.standard_normal((8, 2048), np.float32)
    out = summed(state, x)
    bound = 2047 * 2.0**-24 * np.abs(x.astype(np.float64)).sum(axis=1)
    assert (np.abs(out - x.sum(axis=1, dtype=np.float64)) <= bound).all()
    assert out.tobytes() == summed(ALL["row_reduction"][0], x).tobytes()
