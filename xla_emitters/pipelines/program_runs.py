"""Runs a program's module after any pass, on tensors or on buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.disc_ral import is_marker, is_runtime_value
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.mlir import func
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.host.steps_of_buffers import steps_of_buffers
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.numpy_platform import Kernels, NumpyPlatform
from xla_emitters.runtime.ral.buffer_ops import value_of
from xla_emitters.runtime.ral.constants_file import constants_in

if TYPE_CHECKING:
    from xla_emitters.runtime.ral.host_program import HostProgram


def entries_of(module: ModuleOp) -> Iterator[ComputationOp]:
    """The entries on tensors; none on buffers."""
    return (op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)


def run_module(module: ModuleOp, arrays: Sequence[Array]) -> list[Array]:
    """The results of a program after any pass, on tensors or on buffers, for arguments that fit. raises DataError, ExecutionError

    Buffers are filled before the run, so that a result that is never written is certainly wrong.
    """
    if any(entries_of(module)):
        from xla_emitters.runtime.reference.reference import evaluate  # imported here: only stages on tensors need it

        return evaluate(entry_of(module), arrays, value_of=value_of)
    loaded = load_any(module)
    given = [array.copy() if number in loaded.donated else array for number, array in enumerate(arrays)]
    return loaded.run_on_garbage(given)


def load(module: ModuleOp, kernels: Kernels | None = None, constants: str = "") -> LoadedProgram:
    """A program on buffers as a function of arrays. raises like `steps_of_buffers`

    kernels    the kernels that it launches; None: it launches none
    constants  the file that holds them; "": the module does
    """
    made = steps_of_buffers(module, constants_in(constants))
    return LoadedProgram(made, NumpyPlatform(made.ops, kernels))


def load_any(module: ModuleOp, kernels: Kernels | None = None) -> LoadedProgram | HostProgram:
    """A program on buffers after any pass, as a function of arrays. raises like `load` and `HostProgram`"""
    if not is_host_program(module):
        return load(module, kernels)
    # Imported here: steps run without it, and it loads the executor.
    from xla_emitters.runtime.ral.host_program import HostProgram

    return HostProgram(module, kernels)


def is_host_program(module: ModuleOp) -> bool:
    """Whether a pass on the host has run: the function has blocks, takes a context, or marks buffers."""
    found = [op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    return any(
        len(op.body.blocks) > 1 or any(map(is_runtime_value, op.args)) or any(map(is_marker, op.body.block.ops))
        for op in found
    )
