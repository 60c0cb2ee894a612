"""Ids that become calls: their values, and that MLIR reads them."""

import subprocess

import numpy as np
import pytest
from tools_here import here, needs
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.lowering.convert_ids_to_calls import ConvertIdsToCallsPass
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.runtime.simt.execute import execute

# out[block * 8 + thread] = thread - 2 * block; the ids are the only thing that says the launch.
KERNEL = """
llvm.func @ids(%out: !llvm.ptr) attributes {nvvm.kernel} {
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 8> : i32 loc("a"("k.hlo":1:2))
  %b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 5> : i32 loc("a"("k.hlo":1:2))
  %again = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 5> : i32 loc("b"("k.hlo":2:2))
  %0 = llvm.mul %b, %c8 : i32
  %i = llvm.add %0, %t : i32
  %p = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %1 = llvm.sub %t, %b : i32
  %2 = llvm.sub %1, %again : i32
  llvm.store %2, %p : i32, !llvm.ptr
  llvm.return
}
"""


def converted(text: str) -> ModuleOp:
    module = parse_ir(text)
    ConvertIdsToCallsPass().apply(make_context(), module)
    module.verify()
    return module


def test_calls_compute_the_ids() -> None:
    """On the CPU, and read back from text."""
    module = converted(KERNEL)
    assert launch_of(module) == LaunchDimensions((5, 1, 1), (8, 1, 1))
    wanted = [thread - 2 * block for block in range(5) for thread in range(8)]
    for made in (module, parse_ir(print_ir(module)), parse_ir(print_ir(module, generic=True))):
        out = np.full(40, -99, np.int32)
        execute(made, [out])
        assert out.tolist() == wanted


def test_ranges_are_still_promises() -> None:
    """A launch in which a thread's number leaves the range of its function is an error, as with the op."""
    module = converted(KERNEL)
    with pytest.raises(ExecutionError, match="outside the range that it promises, 0 to 7") as raised:
        execute(module, [np.zeros(80, np.int32)], launch=LaunchDimensions((5, 1, 1), (16, 1, 1)))
    assert "k.hlo:1:2" in raised.value.render()


@needs("mlir-opt")
def test_mlir_reads_what_is_printed() -> None:
    text = print_ir(converted(KERNEL))
    done = subprocess.run(
        [find_tool("mlir-opt", here()).path],
        input=text.encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    out = np.full(40, -99, np.int32)
    execute(parse_ir(done.stdout.decode()), [out])
    assert out[8:16].tolist() == [-2, -1, 0, 1, 2, 3, 4, 5]
