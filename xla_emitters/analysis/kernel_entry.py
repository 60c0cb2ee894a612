"""The entry of a kernel module and what its attributes say: launch, arguments, shared memory.

    func.func @fusion(%arg0: tensor<8xf32> {llvm.align = 16 : index, xla.slice_index = 0 : index, xla.invariant}, ...)
        attributes {xla.entry, gpu.known_block_size = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>}

    llvm.func @fusion(...) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, gpu.known_grid_size = ...}

Emission writes these attributes, and the passes keep or translate them; so a launcher needs nothing but the IR of any stage.
Source: spec/2 4.1 "ABI"; MLIR's gpu and nvvm dialects for the attributes' names.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from xla_emitters.analysis.launch import Launch
from xla_emitters.dialects import llvm
from xla_emitters.errors import VerifyError

ENTRY = "xla.entry"
KERNEL = "nvvm.kernel"
GRID = "gpu.known_grid_size"
BLOCK = "gpu.known_block_size"
REQUIRED_BLOCK = "nvvm.reqntid"


def entry_of_kernel(module: ModuleOp) -> func.FuncOp | llvm.FuncOp:
    """The one function that is launched. raises VerifyError unless there is exactly one."""
    entries = [
        op
        for op in module.walk()
        if (ENTRY in op.attributes or KERNEL in op.attributes) and isinstance(op, func.FuncOp | llvm.FuncOp)
    ]
    if len(entries) != 1:
        raise VerifyError(
            f"the module has {len(entries)} entry functions, one is wanted",
            stage="kernel",
            help=f"the entry carries '{ENTRY}' (func.func) or '{KERNEL}' (llvm.func)",
        )
    return entries[0]


def launch_of(module: ModuleOp) -> Launch:
    """The grid and block that the entry was made for. raises VerifyError when they are not there."""
    entry = entry_of_kernel(module)
    block = _three(entry.attributes.get(BLOCK)) or _three(entry.attributes.get(REQUIRED_BLOCK))
    grid = _three(entry.attributes.get(GRID))
    if grid is None or block is None:
        raise VerifyError(
            f"function '{entry.sym_name.data}' does not say how it is launched",
            stage="kernel",
            help=f"add '{GRID}' and '{BLOCK}', each array<i32: x, y, z>",
        )
    return Launch(grid, block)


def argument_number(module: ModuleOp, number: int, name: str) -> int | None:
    """The integer attribute `name` of the entry's argument, e.g. "xla.slice_index"; None when it has none."""
    entry = entry_of_kernel(module)
    if entry.arg_attrs is None or number >= len(entry.arg_attrs):
        return None
    value = entry.arg_attrs.data[number].data.get(name)
    return value.value.data if isa(value, IntegerAttr) else None


def _three(attribute: Attribute | None) -> tuple[int, int, int] | None:
    if not isa(attribute, DenseArrayBase) or len(attribute) != 3 or not isinstance(attribute.elt_type, IntegerType):
        return None
    x, y, z = cast("DenseArrayBase[IntegerType]", attribute).get_values()
    return x, y, z
