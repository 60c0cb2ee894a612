"""The ahead-of-time form of a program for C: one function that calls the runtime by name for everything, launches too.

    LlvmHost(name, lowering, options).ir          LLVM IR of the host program, its kernels, and an entry of each for the runtime

Source: seed document, "RewriteRalApiPass"; docs/reference/4 4.3, 4.5.
"""

from __future__ import annotations

from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.disc_ral import DispatchOp, RecvInputOp
from xla_emitters.dialects.lmhlo import DONATED, tensor_of
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.host.disc_rewrite_ral_api import API, FUNCTION, NAME, keep_names, name_buffer_ops
from xla_emitters.lowering.cpu.cpu_code import cpu_ir
from xla_emitters.lowering.cpu.cpu_steps import step_entries
from xla_emitters.pipelines.cpu_lowering import CpuLowering
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import HOST_BY_LLVM
from xla_emitters.pipelines.recorder import Recorder

MAIN = "ral_main"
"""The function of the host program."""
CALL = f"""
define internal void @{API}(ptr %context, ptr %name, ptr %args) {{
  %place = getelementptr i64, ptr %context, i64 {FUNCTION}
  %function = load ptr, ptr %place
  call void %function(ptr %context, ptr %name, ptr %args)
  ret void
}}
"""
CONSTANT = "ral_const"


class LlvmHost:
    """A host program in the LLVM dialect; see the file's head.

    lowering    the program on the CPU: its host program and kernels
    raises      Unsupported for what a host program cannot be made of
    """

    def __init__(self, name: str, lowering: CpuLowering, options: CompileOptions) -> None:
        self.source, self.lowering = lowering.host, lowering
        self.ops = name_buffer_ops(self.source)
        self.host = without_kernels(self.source)
        keep_names(self.host)
        self.donated, self.constants = _donated(self.host), _constants(self.host)
        recorder, context = Recorder(name, "none", options.verify, None), make_context()
        for row in HOST_BY_LLVM:
            recorder.run(row.make(options), row.stage, context, self.host)
        for op in self.host.ops:
            if isinstance(op, llvm.FuncOp) and op.body.blocks:
                op.properties["sym_name"] = StringAttr(MAIN)

    @cached_property
    def ir(self) -> str:
        """The program and its kernels as LLVM IR, before LLVM's own passes. raises as `cpu_ir`"""
        together = self.lowering.module.clone()
        for op in list(self.host.clone().ops):
            op.detach()
            if not isinstance(op, llvm.FuncOp) or op.body.blocks:
                together.body.block.add_op(op)
        return cpu_ir(together) + CALL + step_entries(self.lowering.parameters)

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of the runtime functions that it calls."""
        named = (op for op in self.host.ops if isinstance(op, llvm.GlobalOp) and op.sym_name.data.startswith(NAME))
        return tuple(op.value.data.rstrip("\0") for op in named if isinstance(op.value, StringAttr))


def without_kernels(host: ModuleOp) -> ModuleOp:
    """A copy of a host program without the kernels that it launches, which are compiled separately."""
    copy = host.clone()
    for op in list(copy.ops):
        if isinstance(op, gpu.ModuleOp):
            Rewriter.erase_op(op)
    return copy


def _donated(host: ModuleOp) -> frozenset[int]:
    """The indices of the arguments that the program owns: it works on copies."""
    received = (op for op in host.walk() if isinstance(op, RecvInputOp) and DONATED in op.attributes)
    return frozenset(op.number.value.data for op in received)


def _constants(host: ModuleOp) -> dict[int, tuple[str, str]]:
    """Number of a constant -> its name, and HLO's name of its element type."""
    found = dict[int, tuple[str, str]]()
    for op in host.walk():
        if isinstance(op, DispatchOp) and op.call.data == CONSTANT and isinstance(op.config, StringAttr):
            number = constant_of(op.arguments[2])
            assert number is not None
            element = dtype_of(tensor_of(op.res[0].type).element_type).name
            found.setdefault(number, (op.config.data, element))
    return found
