"""Kernels of a program on the CPU: called with arrays of any size and numbers; the launch says how many blocks run.

    kernel = SizedKernel.of(module)                     a `gpu.func` on buffers, or an entry on pointers
    kernel(LaunchDimensions((5, 1, 1), (256, 1, 1)), [x, y, 1200])

For a kernel on buffers, the array is the buffer's memory. For one on pointers, its bytes are, as in `execute`: elements below eight bits
are packed for the launch, and a written array is padded to a whole word. Shared memory is fresh for each block.
Source: docs/reference/4 3.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_entry import entry_of_kernel
from xla_emitters.runtime.simt.code import Compiler, FrameSlots, FunctionCode
from xla_emitters.runtime.simt.execute import RULES, chunks, memory_of
from xla_emitters.runtime.simt.follow import followed
from xla_emitters.runtime.simt.fusion_loops import ALIGNMENT, bind
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.memory import Memory, Space, Watcher
from xla_emitters.runtime.simt.scalars import form_of


@dataclass(frozen=True)
class SizedKernel:
    """A kernel, compiled for the executor.

    types    of its arguments
    shared   types of its blocks' shared buffers, which are the last arguments of its code
    """

    name: str
    types: tuple[Attribute, ...]
    shared: tuple[Attribute, ...]
    function: FunctionCode = field(repr=False)

    @staticmethod
    def of(module: ModuleOp, watchers: Sequence[Watcher] = ()) -> SizedKernel:
        """The one kernel of a module. raises VerifyError where there is not one, Unsupported for an op without a rule

        watchers  followers among them get the results of ops, in every launch
        """
        found = [op for op in module.walk() if isinstance(op, gpu.FuncOp) and op.kernel is not None]
        function = found[0] if len(found) == 1 else entry_of_kernel(module)
        types = tuple(function.function_type.inputs.data)
        scope = FrameSlots(Compiler.of(module, followed(RULES, watchers)))
        code = scope.region(function.body)
        shared = function.body.blocks[0].arg_types[len(types) :]
        name = function.sym_name.data
        return SizedKernel(name, types, tuple(shared), FunctionCode(name, scope.count, code))

    def __call__(
        self,
        launch: LaunchDimensions,
        values: Sequence[Array | complex],
        shared_bytes: int = 0,
        watchers: Sequence[Watcher] = (),
        blocks: Sequence[int] | None = None,
    ) -> None:
        """Runs all blocks, or those of these numbers. raises DataError for values that do not fit, ExecutionError as `execute`.

        shared_bytes  dynamic shared memory of a block
        """
        if len(values) != len(self.types):
            raise DataError(f"kernel @{self.name} takes {len(self.types)} values, not {len(values)}", stage="simt")
        packed, padded = dict[int, Array](), dict[int, Array]()
        memories = [
            memory_of(value, packed, padded)
            if isinstance(ir_type, llvm.LLVMPointerType) and isinstance(value, np.ndarray)
            else None
            for value, ir_type in zip(values, self.types, strict=True)
        ]
        with np.errstate(all="ignore"):
            for chunk in chunks(launch, blocks):
                memory = Memory(launch, chunk, watchers, launch_shared_bytes=shared_bytes)
                machine = Machine(launch, chunk, memory)
                inputs = [
                    bind(machine, value, ir_type, f"argument {number}") if data is None else data.value(machine, number)
                    for number, (value, ir_type, data) in enumerate(zip(values, self.types, memories, strict=True))
                ]
                inputs += [_shared(machine, ir_type) for ir_type in self.shared]
                memory.tell(Watcher.begin)
                self.function.call(machine, inputs)
                memory.tell(Watcher.end)
        for data in memories:
            if data is not None:
                data.unpack()


def _shared(machine: Machine, ir_type: Attribute) -> Value:
    assert isa(ir_type, MemRefType[Attribute])
    form, shape = form_of(ir_type.element_type), ir_type.get_shape()
    size = int(np.prod(shape)) * form.size
    buffer = machine.memory.allocate("shared memory", Space.SHARED, size, ALIGNMENT)
    return machine.tensor(buffer, form, shape, row_major_strides(shape))
