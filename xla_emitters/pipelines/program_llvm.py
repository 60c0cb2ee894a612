"""The ahead-of-time form of a program for C: one function that launches kernels and calls the runtime for everything else.

    LlvmHost(name, host, code, options).ir          LLVM IR of the host program and its kernels

Kernels for a CPU are in the same code and are called directly.
Source: seed document, "RewriteRalApiPass"; docs/reference/4 4.3, 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.disc_ral import DispatchOp, RecvInputOp, SendOutputOp
from xla_emitters.dialects.lmhlo import DONATED, tensor_of
from xla_emitters.dialects.mlir import arith, func, gpu, llvm
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.host.disc_rewrite_ral_api import NAME, keep_names, name_buffer_ops
from xla_emitters.lowering.cpu.host_runtime import host_program_ir
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import HOST_BY_LLVM
from xla_emitters.pipelines.recorder import Recorder

MAIN, FREE, DROP = "ral_main", "ral_free", "ral_drop"
"""Functions of the machine code: the host program; the one that frees a result; the one that frees all buffers of a call."""
CONSTANT = "ral_const"


@dataclass(frozen=True)
class Interface:
    """The parameters and results of a host program.

    inputs     ranks of the arguments; 0 for arguments that it does not read
    donated    indices of the arguments that it owns: it works on copies
    outputs    element type and rank of each result
    constants  number of its constants
    """

    inputs: tuple[int, ...]
    donated: frozenset[int]
    outputs: tuple[tuple[str, int], ...]
    constants: int


class LlvmHost:
    """A host program in the LLVM dialect; see the file's head.

    host        the module after the list PROGRAM_HOST
    code        the kernels that it launches, in the LLVM dialect, for a CPU
    raises      Unsupported for what a host program cannot be made of
    """

    def __init__(
        self,
        name: str,
        host: ModuleOp,
        code: ModuleOp,
        options: CompileOptions,
    ) -> None:
        self.source, self._code = host, code
        self.ops = name_buffer_ops(host)
        self.host = without_kernels(host)
        keep_names(self.host)
        self.interface, self.constants = _interface(self.host), _constants(self.host)
        recorder, context = Recorder(name, "none", options.verify, None), make_context()
        for row in HOST_BY_LLVM:
            recorder.run(row.make(options), row.stage, context, self.host)
        for op in self.host.ops:
            if isinstance(op, llvm.FuncOp) and op.body.blocks:
                op.properties["sym_name"] = StringAttr(MAIN)

    @cached_property
    def ir(self) -> str:
        """The program and its kernels as LLVM IR, before LLVM's own passes."""
        return host_program_ir(self.host, self._code)

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of the runtime functions that it calls, always or only where its own code fails."""
        named = (op for op in self.host.ops if isinstance(op, llvm.GlobalOp) and op.sym_name.data.startswith(NAME))
        return tuple(op.value.data.rstrip("\0") for op in named if isinstance(op.value, StringAttr))


def without_kernels(host: ModuleOp) -> ModuleOp:
    """A copy of a host program without the kernels that it launches, which are compiled separately."""
    copy = host.clone()
    for op in list(copy.ops):
        if isinstance(op, gpu.ModuleOp):
            Rewriter.erase_op(op)
    return copy


def _interface(host: ModuleOp) -> Interface:
    """The host program's parameters and results, read from the ops that load and return them."""
    inputs, outputs, donated = dict[int, int](), dict[int, tuple[str, int]](), set[int]()
    for function in [op for op in host.ops if isinstance(op, func.FuncOp)]:
        for op in function.walk():
            if isinstance(op, RecvInputOp):
                inputs[op.number.value.data] = tensor_of(op.buffer.type).get_num_dims()
                if DONATED in op.attributes:
                    donated.add(op.number.value.data)
            elif isinstance(op, SendOutputOp):
                held = tensor_of(op.buffer.type)
                outputs[op.number.value.data] = dtype_of(held.element_type).name, held.get_num_dims()
    return Interface(
        tuple(inputs.get(number, 0) for number in range(max(inputs, default=-1) + 1)),
        frozenset(donated),
        tuple(outputs[number] for number in range(len(outputs))),
        max(_constants(host), default=-1) + 1,
    )


def _constants(host: ModuleOp) -> dict[int, tuple[str, str]]:
    """Number of a constant -> its name, and HLO's name of its element type."""
    found = dict[int, tuple[str, str]]()
    for op in host.walk():
        if isinstance(op, DispatchOp) and op.call.data == CONSTANT and isinstance(op.config, StringAttr):
            index = op.arguments[2].owner
            assert isinstance(index, arith.ConstantOp)
            assert isinstance(index.value, IntegerAttr)
            element = dtype_of(tensor_of(op.res[0].type).element_type).name
            found.setdefault(index.value.value.data, (op.config.data, element))
    return found
