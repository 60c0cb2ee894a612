"""The transpose emitter: what it accepts, its refusals, and how its two loops are built."""

import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from xla_emitters.device import device
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.xla_gpu import LoopOp, PureCallOp, SyncThreadsOp
from xla_emitters.emitters.transpose import TransposeEmitter
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import view_of
from xla_emitters.rewrite.kernel_entry import launch_of, shared_bytes
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.text.hlo import parse_hlo

H200 = device("h200")
EMITTER = TransposeEmitter()


def computation(body: str) -> ComputationOp:
    return entry_of(parse_hlo(f"ENTRY f {{\n{body}\n}}"))


def emitted(body: str) -> ModuleOp:
    module = EMITTER.emit(view_of(computation(body)), H200)
    module.verify()
    return module


PLAIN = "p = f32[64,32] parameter(0)\nROOT t = f32[32,64] transpose(p), dimensions={1,0}"
TWICE = """p = f32[64,32] parameter(0)
    t = f32[32,64] transpose(p), dimensions={1,0}
    n = f32[64,32] negate(p)
    ROOT r = (f32[32,64], f32[64,32], f32[32,64], f32[64,32]) tuple(t, n, t, n)"""


def test_it_says_why_it_does_not_apply():
    assert EMITTER.applies(view_of(computation(PLAIN)), H200) is None
    small = PLAIN.replace("64", "4")
    reason = "the hero of %t is %t: tiles of 32 by 4 elements are too small"
    assert EMITTER.applies(view_of(computation(small)), H200) == reason


def test_one_root_as_two_outputs():
    module = emitted(TWICE)
    first, last = (op for op in module.walk() if isinstance(op, LoopOp))
    assert shapes(first) == [(32, 33), (64, 32), (64, 32)]
    assert shapes(last) == [(32, 64), (32, 64)]
    (wait,) = (op for op in module.walk() if isinstance(op, SyncThreadsOp))
    assert len(wait.arguments) == 1


def shapes(loop: LoopOp) -> list[tuple[int, ...]]:
    """Of the tensors that the loop writes."""
    return [init.type.get_shape() for init in loop.inits if isa(init.type, TensorType[Attribute])]


def test_only_what_is_called_is_emitted():
    """Neither the transpose nor the root computed from it is a function: their elements come from the tile."""
    body = PLAIN.replace("ROOT t", "t") + "\nROOT a = f32[32,64] abs(t)"
    calls = [op.callee for op in emitted(body).walk() if isinstance(op, PureCallOp)]
    assert calls == ["f_p", "f__epilogue__a"]


@pytest.mark.parametrize(
    ("body", "blocks", "bytes"),
    [
        # A tile of 32 x 33 for each transpose.
        (PLAIN, 2, 4224),
        # 64 x 64 elements of two bytes, 128 x 128 of one.
        (PLAIN.replace("f32", "bf16"), 1, 8192),
        (PLAIN.replace("f32", "s8").replace("32", "128"), 1, 16384),
        # 33 rows more than a tile has.
        (PLAIN.replace("64", "65"), 3, 4224),
        (PLAIN.replace("f32", "f64"), 2, 8448),
        # A block is enough.
        (PLAIN.replace("64", "32"), 1, 4224),
    ],
)
def test_launch_and_shared_memory(body: str, blocks: int, bytes: int):
    module = emitted(body)
    assert launch_of(module).grid == (blocks, 1, 1)
    assert launch_of(module).threads == 128
    assert shared_bytes(module) == bytes


def test_it_explains_itself():
    with take_notes() as notes:
        emitted(PLAIN)
    assert {decision.topic: decision.text for decision in notes.decisions} == {
        "hero": "%t: [64, 32] by {1,0} of 32 bits, tiled",
        "launch": "2x1x1 blocks of 128x1x1 threads",
        "tile": "32x32 of the input through 32x33, one element at a time",
        "partition": "3 functions: f_t (1 instruction), f_p (1 instruction), f__epilogue__t (0 instructions)",
    }
