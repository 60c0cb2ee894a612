"""The entry function: the kernel's signature, ids and launch; the hero's emitter writes its body.

    func.func @fusion(%input: tensor<8xf32> {llvm.align = 16 : index, llvm.dereferenceable = 32 : index, xla.invariant,
                                             xla.slice_index = 0 : index},
                      %output: tensor<8xf32> {llvm.align = 256 : index, ..., xla.slice_index = 1 : index}) -> tensor<8xf32>
        attributes {xla.entry, gpu.known_block_size = array<i32: 8, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
      %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 7 : index]}
      ...
    }

Its arguments are the parameters and the results as tensors; it inserts into the result tensors and returns them, and these have no other
uses. The launch is in two attributes, so passes, the executor and tools can read it from the IR alone. Ids of extent 1 are not emitted.
Source: seed document, "Entry function"; docs/reference/1 1.8; docs/reference/2 2.0.5, 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects.attributes import UNIT, array, function_type, index_number, integer_array
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, leaf_types
from xla_emitters.dialects.mlir import builtin as quick_builtin
from xla_emitters.dialects.mlir import func, gpu
from xla_emitters.dialects.mlir.dlti import DataLayoutEntryAttr, DataLayoutSpecAttr
from xla_emitters.dialects.ranges import RANGE_ATTR, range_attr
from xla_emitters.emitters.elemental import FunctionBuilder, emit_functions, kernel_tensor
from xla_emitters.emitters.partitioner import PartitionedComputation, partition_called
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.view import FusionView
from xla_emitters.program import Argument, LaunchDimensions
from xla_emitters.rewrite.kernel_entry import BLOCK, ENTRY, GRID, INVARIANT, SLICE_INDEX, sanitize
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class KernelEntry:
    """An entry function under construction.

    inputs   the kernel's parameters
    outputs  the tensors to insert the results into
    ids      thread and block ids of extent above 1, in the order of `LaunchDimensions.ids`
    builder  inserts at the end of the body; ops get the fusion's location
    """

    function: func.FuncOp
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    ids: tuple[SSAValue, ...]
    builder: FunctionBuilder

    def finish(self, results: Iterable[SSAValue]) -> None:
        """Ends the body: returns the results, one per output."""
        self.builder.insert(func.ReturnOp(*results))

    def module(
        self,
        view: FusionView,
        partitioned: PartitionedComputation,
        called: Mapping[str, PartitionedComputation] | None = None,
    ) -> ModuleOp:
        """The kernel module, with the functions of the computation, and of those that it calls."""
        called = partition_called(view.called) if called is None else called
        return kernel_module(view, self.function, emit_functions(self.function, partitioned, called))


def entry_function(view: FusionView, launch: LaunchDimensions) -> KernelEntry:
    """The kernel's function: signature, launch and ids; the body is still empty."""
    inputs = [kernel_tensor(hlo_type) for hlo_type in view.parameter_types]
    outputs = [kernel_tensor(hlo_type) for hlo_type in view.result_types]
    block = Block(arg_types=[*inputs, *outputs])
    function = func.FuncOp(
        sanitize(view.name),
        function_type([*inputs, *outputs], outputs),
        Region(block),
        arg_attrs=array(argument_attributes(argument) for argument in kernel_arguments(view)),
    )
    function.location = view.location
    function.attributes[ENTRY] = UNIT
    function.attributes[BLOCK] = integer_array(launch.block, 32)
    function.attributes[GRID] = integer_array(launch.grid, 32)
    parameters = view.parameters
    for i, argument in enumerate(block.args):
        argument.name_hint = "input" if i < len(inputs) else "output"
        argument.location = parameters[i].location if i < len(inputs) else view.location
    builder = FunctionBuilder(block, view.location)
    ids = tuple(_id(builder, name, extent) for name, extent in launch.ids)
    return KernelEntry(function, tuple(block.args[: len(inputs)]), tuple(block.args[len(inputs) :]), ids, builder)


def _id(builder: FunctionBuilder, name: str, extent: int) -> SSAValue:
    kind, axis = name.split("_")
    make, hint = (gpu.ThreadIdOp, "thread_id") if kind == "th" else (gpu.BlockIdOp, "block_id")
    op = builder.insert(make(_dimension(axis)))
    op.attributes[RANGE_ATTR] = range_attr(0, extent - 1)
    op.result.name_hint = f"{hint}_{axis}"
    return op.result


@lru_cache(8)
def _dimension(axis: str) -> gpu.DimensionAttr:
    return gpu.DimensionAttr(gpu.DimensionEnum(axis))


def argument_attributes(argument: Argument) -> DictionaryAttr:
    """The alignment, size, invariance and slice of an argument's buffer, as attributes of the entry's argument."""
    attributes: dict[str, Attribute] = {
        "llvm.align": index_number(argument.alignment),
        "llvm.dereferenceable": index_number(argument.bytes),
    }
    if not argument.written:
        attributes[INVARIANT] = UNIT
    attributes[SLICE_INDEX] = index_number(argument.slice_index)
    return DictionaryAttr(attributes)


def kernel_module(view: FusionView, entry: func.FuncOp, functions: Iterable[func.FuncOp]) -> ModuleOp:
    """The kernel module: the entry, then the functions that it calls. Its data layout gives the width of an index."""
    ops: list[Operation] = [entry, *functions]
    module = quick_builtin.ModuleOp(ops, data_layout(view))
    module.location = view.location
    return module


def data_layout(view: FusionView) -> dict[str, Attribute]:
    """The kernel module's attribute that gives the width of an index."""
    width = DataLayoutEntryAttr(IndexType(), IntegerAttr(index_bits(view), i32))
    return {"dlti.dl_spec": DataLayoutSpecAttr(ArrayAttr([width]))}


def index_bits(view: FusionView) -> int:
    """32, or 64 where an array has 2^31 elements or more, or where 64-bit values become indices."""
    types = (*view.parameter_types, *(op.result.type for op in view.instructions))
    if any(math.prod(dims_of(leaf)) >= 2**31 for hlo_type in types for leaf in leaf_types(hlo_type)):
        return 64
    indices = (index for op in view.instructions for index in _indices(op))
    return 64 if any(element_of(index).bits == 64 for index in indices if element_of(index).is_integer) else 32


def _indices(op: HloOp) -> Sequence[SSAValue]:
    """The operands that are used as indices."""
    match op.opcode:
        case "dynamic-slice":
            return op.operands[1:]
        case "dynamic-update-slice":
            return op.operands[2:]
        case "gather" | "scatter":
            # Operands: the arrays, one array of indices, and one array of updates per array.
            middle = len(op.operands) // 2
            return op.operands[middle : middle + 1]
        case _:
            return ()
