"""Reduces a kernel's arguments to pointers to device buffers, and numbers; the host reads lists in its memory for it.

    gpu.launch_func @k::@k ... args(%x, %shape, %n, %m)                    %shape: memref<2xi32, "cpu">; %n and %m are one size
      gpu.func @k(%x: memref<?xf32, "gpu">, %shape: memref<2xi32, "cpu">, %n: index, %m: index) kernel
->
    %0 = memref.load %shape[%c0]
    %1 = memref.load %shape[%c1]
    gpu.launch_func @k::@k ... args(%x, %0, %1, %n)
      gpu.func @k(%x: memref<?xf32, "gpu">, %s0: i32, %s1: i32, %n: index) kernel

A list of the host is replaced in place by its elements, in order; the kernel reads it at constant indices, and its size is part of its
type. Of equal arguments (one value, or one expression of the program's symbols) the first is kept; unused arguments are
dropped. The order of the others stays. If each buffer that the kernel writes is allocated by this program and passed once,
no other argument aliases it: all of these are marked `llvm.noalias`.
Source: seed document, "ReviseGpuKernelOutliningPass"; docs/reference/4 3.7.
"""

from __future__ import annotations

from itertools import product

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    MemRefType,
    ModuleOp,
    UnitAttr,
)
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import IncRefOp, space_of
from xla_emitters.dialects.mlir import gpu, memref
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.dialects.mlir.gpu import ModuleOp as GpuModuleOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.index_code import IndexCode
from xla_emitters.rewrite.captures import written_buffer
from xla_emitters.rewrite.kernel_pass import KernelPass

NO_ALIAS = "llvm.noalias"
MOST_ELEMENTS = 64
"""Largest number of elements of a host list that is passed as arguments."""


class DiscReviseGpuKernelOutliningPass(KernelPass):
    name = "disc-revise-gpu-kernel-outlining"

    def apply_to(self, op: ModuleOp) -> None:
        sizes = BufferSizes(from_allocations=True)
        kernels: dict[tuple[str, ...], FuncOp] = {
            (module.sym_name.data, kernel.sym_name.data): kernel
            for module in op.ops
            if isinstance(module, GpuModuleOp)
            for kernel in module.body.ops
            if isinstance(kernel, FuncOp)
        }
        for launch in [found for found in op.walk() if isinstance(found, gpu.LaunchFuncOp)]:
            names = (launch.kernel.root_reference, *launch.kernel.nested_references)
            function = kernels.get(tuple(name.data for name in names))
            if function is None:
                raise self.refuse(launch, f"a launch of {launch.kernel}, which is not defined")
            made = _merge(self.read_lists(launch, function), function, sizes)
            _set_argument_attributes(made, function)

    def read_lists(self, launch: gpu.LaunchFuncOp, function: FuncOp) -> gpu.LaunchFuncOp:
        """Replaces each host list among the arguments by its elements; returns the new launch."""
        block = function.body.block
        host = IndexCode(QuickBuilder(InsertPoint.before(launch)), launch.location)
        operands, number = list[SSAValue](), 0
        for value in launch.kernelOperands:
            argument = block.args[number]
            if not isa(value.type, MemRefType[Attribute]) or space_of(value.type) != HOST:
                operands.append(value)
                number += 1
                continue
            shape = value.type.get_shape()
            places = list(product(*map(range, shape)))
            if any(size < 0 for size in shape) or len(places) > MOST_ELEMENTS:
                raise self.refuse(launch, f"a kernel reads {value.type} of the host")
            found = dict[tuple[int, ...], BlockArgument]()
            for place in places:
                operands.append(host.insert(memref.LoadOp.get(value, [host.value(index) for index in place])))
                found[place] = block.insert_arg(value.type.element_type, number)
                found[place].name_hint = argument.name_hint
                number += 1
            for use in list(argument.uses):
                self.replace_load(use.operation, found)
            block.erase_arg(argument)
        return _relaunched(launch, function, operands)

    def replace_load(self, op: object, found: dict[tuple[int, ...], BlockArgument]) -> None:
        """Replaces a load at constant indices by the argument for that element."""
        assert isinstance(op, memref.LoadOp | memref.StoreOp)
        indices = [constant_of(index) for index in op.indices]
        place = tuple(index for index in indices if index is not None)
        if isinstance(op, memref.StoreOp) or len(place) < len(indices) or place not in found:
            raise self.refuse(op, "a kernel reads a list of the host at an index that is not constant, or writes it")
        Rewriter.replace_op(op, [], [found[place]])


def _merge(launch: gpu.LaunchFuncOp, function: FuncOp, sizes: BufferSizes) -> gpu.LaunchFuncOp:
    """Drops unused arguments and duplicates; returns the launch with the rest."""
    block, launch_operands = function.body.block, list(launch.kernelOperands)
    kept, first = list[SSAValue](), dict[object, BlockArgument]()
    for value, argument in zip(launch_operands, block.args[: len(launch_operands)], strict=True):
        known = first.get(_key(value, sizes)) if argument.first_use else None
        if known is not None:
            argument.replace_all_uses_with(known)
        if argument.first_use is None:
            block.erase_arg(argument)
        else:
            first[_key(value, sizes)] = argument
            kept.append(value)
    made = _relaunched(launch, function, kept)
    for value in set(launch_operands) - set(kept):
        if isinstance(value.owner, memref.LoadOp) and value.first_use is None:
            Rewriter.erase_op(value.owner)
    return made


def _set_argument_attributes(launch: gpu.LaunchFuncOp, function: FuncOp) -> None:
    """Marks buffers that are known not to be aliased while the kernel runs."""
    written = {_root(value) for value in written_by(function, launch)}
    roots = [_root(value) for value in launch.kernelOperands if isinstance(value.type, MemRefType)]
    is_apart = all(isinstance(root.owner, memref.AllocOp) and roots.count(root) == 1 for root in written)
    attributes = [
        DictionaryAttr({NO_ALIAS: UnitAttr()} if is_apart and isinstance(value.type, MemRefType) else {})
        for value in launch.kernelOperands
    ]
    function.arg_attrs = ArrayAttr(attributes) if is_apart else None


def _key(value: SSAValue, sizes: BufferSizes) -> object:
    """A key that is equal for equal values; views of one buffer in the same form have the same pointer."""
    if isinstance(value.type, IndexType):
        return sizes.number(value)
    if isinstance(value.owner, memref.CollapseShapeOp):
        return value.owner.src, value.type
    return value


def _relaunched(launch: gpu.LaunchFuncOp, function: FuncOp, operands: list[SSAValue]) -> gpu.LaunchFuncOp:
    """Replaces the launch by one with these arguments, and updates the function's type."""
    types = [argument.type for argument in function.body.block.args[: len(operands)]]
    function.function_type = FunctionType.from_lists(types, [])
    made = gpu.LaunchFuncOp(
        launch.kernel,
        [launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ],
        [launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ],
        kernelOperands=operands,
        dynamicSharedMemorySize=launch.dynamicSharedMemorySize,
    )
    made.location = launch.location
    Rewriter.replace_op(launch, made, [])
    return made


def written_by(function: FuncOp, launch: gpu.LaunchFuncOp) -> list[SSAValue]:
    """The buffers of the launch that the kernel writes."""
    written = {target for op in function.walk() if (target := written_buffer(op)) is not None}
    pairs = zip(launch.kernelOperands, function.body.block.args, strict=False)
    return [value for value, argument in pairs if argument in written]


def _root(value: SSAValue) -> SSAValue:
    """The buffer that a view refers to."""
    while isinstance(value.owner, memref.CollapseShapeOp | IncRefOp):
        value = value.owner.operands[0]
    return value
