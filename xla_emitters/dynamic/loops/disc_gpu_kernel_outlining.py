"""Each launch's body becomes a kernel: a function in a module of its own, which the host launches by name.

    gpu.launch blocks(%b ...) in (%grid, 1, 1) threads(%t ...) in (256, 1, 1) {
      %v = memref.load %x[%i] ...
    } {disc.name = "main_kLoop_add_0"}
->
    gpu.launch_func @main_kLoop_add_0::@main_kLoop_add_0 blocks in (%grid, 1, 1) threads in (256, 1, 1) args(%x, %y, %n)

    gpu.module @main_kLoop_add_0 {
      gpu.func @main_kLoop_add_0(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index) kernel
          attributes {known_block_size = array<i32: 256, 1, 1>} {
        %b = gpu.block_id x
        ...

Outside values that the body uses become arguments, buffers first, each in the order of its first use; constants are copied into the kernel.
Shared memory that the body allocates becomes a `workgroup` buffer of the function. If its size is known only at run time, it remains
an allocation in the kernel, and the launch passes the total size in bytes, each allocation aligned to 16. The number of
threads of a block is part of the kernel, the number of blocks is not.
Source: seed document, "ReviseGpuKernelOutliningPass" (the pass before it); MLIR's gpu-kernel-outlining.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, gpu, memref
from xla_emitters.dialects.mlir.gpu import FuncOp, LaunchOp, ReturnOp
from xla_emitters.dialects.mlir.gpu import ModuleOp as GpuModuleOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.quick_op import operands_of
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.index_code import IndexCode, Number
from xla_emitters.dynamic.loops.schedule import SCHEDULE
from xla_emitters.rewrite.captures import KERNEL_NAME, captured_by
from xla_emitters.rewrite.kernel_entry import DIMENSIONS, SHARED
from xla_emitters.rewrite.kernel_pass import KernelPass

CONTAINER = "gpu.container_module"
SHARED_ALIGNMENT = 16
"""Alignment in bytes of each allocation in shared memory."""


class DiscGpuKernelOutliningPass(KernelPass):
    name = "disc-gpu-kernel-outlining"

    def apply_to(self, op: ModuleOp) -> None:
        taken = {found.sym_name.data for found in op.ops if isinstance(found, GpuModuleOp)}
        launches = [found for found in op.walk() if isinstance(found, LaunchOp)]
        for launch in launches:
            name = launch.attributes.get(KERNEL_NAME)
            free = _free(name.data if isinstance(name, StringAttr) else "kernel", taken)
            op.body.block.add_op(self.outline(launch, free))
        if launches:
            op.attributes[CONTAINER] = UnitAttr()

    def outline(self, launch: LaunchOp, name: str) -> GpuModuleOp:
        """Replaces the launch body by a kernel; returns its module."""
        body = launch.body.block
        sizes = [constant_of(size) for size in (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ)]
        threads = [size for size in sizes if size is not None]
        if len(threads) != len(sizes):
            raise self.refuse(launch, "a launch whose number of threads is not constant")
        captured, copies = captured_by(launch), dict[SSAValue, SSAValue]()
        for value in captured:
            if (copy := _constant_inside(launch, value)) is not None:
                copies[value] = copy
        captured = [value for value in captured if value not in copies]
        captured.sort(key=lambda value: not isinstance(value.type, MemRefType))
        allocations = [op for op in body.walk() if isinstance(op, memref.AllocOp | memref.AllocaOp)]
        shared = [op for op in allocations if is_shared(op.memref.type) and not op.dynamic_sizes]
        sized = [op for op in allocations if is_shared(op.memref.type) and op.dynamic_sizes]
        added_bytes = self.added_bytes(launch, sized) if sized else None
        types = [value.type for value in captured]
        block = Block(arg_types=[*types, *(op.results[0].type for op in shared)])
        inside = dict(zip([*captured, *(op.results[0] for op in shared)], block.args, strict=True))
        for value, argument in inside.items():
            argument.name_hint = value.name_hint
        _replace_inside(launch, {**copies, **inside})
        for op in shared:
            Rewriter.erase_op(op)
        _ids(launch, block)
        for op in list(body.ops)[:-1]:
            op.detach()
            block.add_op(op)
        block.add_op(ReturnOp())
        known = DenseArrayBase.from_list(i32, threads)
        function = FuncOp(
            name, FunctionType.from_lists(types, []), Region(block), True, len(shared), {"known_block_size": known}
        )
        function.location = launch.location
        if (schedule := launch.attributes.get(SCHEDULE)) is not None:
            function.attributes[SCHEDULE] = schedule
        call = gpu.LaunchFuncOp(
            SymbolRefAttr(name, [name]),
            [launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ],
            [launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ],
            kernelOperands=captured,
            dynamicSharedMemorySize=added_bytes,
        )
        call.location = launch.location
        Rewriter.replace_op(launch, call, [])
        made = GpuModuleOp(name, Region(Block([function])))
        made.location = function.location
        return made

    def added_bytes(self, launch: LaunchOp, allocations: Sequence[memref.AllocOp | memref.AllocaOp]) -> SSAValue:
        """The bytes of allocations of unknown size, each a multiple of 16, as i32 before the launch."""
        host = IndexCode(QuickBuilder(InsertPoint.before(launch)), launch.location)
        total: Number = 0
        for op in allocations:
            assert isa(op.memref.type, MemRefType[Attribute])
            if any(launch.is_ancestor(size.owner) for size in op.dynamic_sizes):
                raise self.refuse(op, "shared memory of a size that the host does not know")
            known = prod(size for size in op.memref.type.get_shape() if size >= 0)
            count = host.product([known, *op.dynamic_sizes])
            bytes_ = host.multiply(count, dtype_of(op.memref.type.element_type).bytes)
            parts = host.divide(host.add(bytes_, SHARED_ALIGNMENT - 1), SHARED_ALIGNMENT)
            total = host.add(total, host.multiply(parts, SHARED_ALIGNMENT))
        return host.insert(arith.IndexCastOp(host.value(total), i32))


def is_shared(ir_type: Attribute) -> bool:
    """Whether a buffer is in the memory of a block: space 3, or `#gpu.address_space<workgroup>`."""
    if not isa(ir_type, MemRefType[Attribute]):
        return False
    space = ir_type.memory_space
    return space.value.data == SHARED if isinstance(space, IntegerAttr) else "workgroup" in str(space)


def _replace_inside(launch: LaunchOp, values: Mapping[SSAValue, SSAValue]) -> None:
    """Replaces values inside a launch. Not by their uses: a size may be used by all launches of a program."""
    for op in launch.body.walk():
        for number, operand in enumerate(operands_of(op)):
            if operand in values:
                op.operands[number] = values[operand]


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 0
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


def _constant_inside(launch: LaunchOp, value: SSAValue) -> SSAValue | None:
    """A copy of an outside constant at the start of the body; None for other values."""
    owner = value.owner
    if not isinstance(owner, Operation) or not owner.has_trait(ConstantLike):
        return None
    copy = owner.clone()
    Rewriter.insert_op(copy, InsertPoint.at_start(launch.body.block))
    copy.results[0].name_hint = value.name_hint
    return copy.results[0]


def _ids(launch: LaunchOp, block: Block) -> None:
    """Inserts ops that read ids and sizes at the end of `block`, and replaces the launch's arguments by them."""
    arguments = launch.body.block.args
    builder = located_builder(InsertPoint.at_end(block), launch)
    for number, argument in enumerate(arguments):
        if argument.first_use is not None:
            make, axis = READERS[number // len(DIMENSIONS)], DIMENSIONS[number % len(DIMENSIONS)]
            made = builder.insert(make(gpu.DimensionAttr(gpu.DimensionEnum(axis)))).results[0]
            made.name_hint = argument.name_hint
            argument.replace_all_uses_with(made)


READERS: tuple[Callable[[gpu.DimensionAttr], Operation], ...] = (
    *(gpu.BlockIdOp, gpu.ThreadIdOp),
    *(gpu.GridDimOp, gpu.BlockDimOp),
)
"""The ops that read each three of the arguments of a launch's body."""
