"""The entry of a kernel module, and the launch, arguments and shared memory that its attributes describe.

    func.func @fusion(%arg0: tensor<8xf32> {llvm.align = 16 : index, xla.slice_index = 0 : index, xla.invariant}, ...)
        attributes {xla.entry, gpu.known_block_size = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>}

    llvm.func @fusion(...) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, gpu.known_grid_size = ...}

Emission writes these attributes, and the passes keep or translate them, so the IR of any stage is enough to launch the kernel. The IR that
today's XLA prints has no such attributes; there the launch follows from the ids:

    gpu.thread_id x {xla.range = [0 : index, 127 : index]}          128 threads in x
    xla.workgroup_id x {xla.range = [0 : index, 959 : index]}       960 blocks in x
    scf.forall (%x, %y, %z) in (128, 1, 1)                          128 threads in x, before it becomes thread ids
    nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 960>                  960 blocks in x
    llvm.func @sreg.ctaid.x.0.960() -> i32                          960 blocks in x (`id_functions.py`)

Attributes take precedence. The range of an id is its whole extent; an unused id has extent 1, because XLA drops such ids.
Source: docs/reference/2 4.1 "ABI"; MLIR's gpu and nvvm dialects for the attributes' names; docs/reference/1 1.6 "Static range of an SSA
value"; docs/reference/2 3.3 "xla-gpu-lower-xla-shared".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FixedBitwidthType,
    IntegerType,
    MemRefType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import func, gpu, llvm, nvvm
from xla_emitters.dialects.mlir.gpu_functions import FuncOp as GpuFuncOp
from xla_emitters.dialects.mlir.scf import ForallOp
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.ranges import RANGE_ATTR, range_of_value
from xla_emitters.dialects.verification import place_from_location
from xla_emitters.dialects.xla_gpu import AllocateSharedOp
from xla_emitters.dialects.xla_gpu.xla import WorkgroupIdOp
from xla_emitters.dtypes import dtype_of
from xla_emitters.errors import VerifyError
from xla_emitters.program import Extents, LaunchDimensions
from xla_emitters.rewrite.id_functions import REGISTERS, declared_by

ENTRY = "xla.entry"
KERNEL = "nvvm.kernel"
GRID = "gpu.known_grid_size"
BLOCK = "gpu.known_block_size"
REQUIRED_BLOCK = "nvvm.reqntid"
SLICE_INDEX = "xla.slice_index"
"""On an argument: the number of its buffer; arguments with one number are one buffer."""
UNROLL_FACTOR = "xla.unroll_factor"
"""On a function: `xla-gpu-optimize-loops` unrolls loops of up to so many iterations whatever their size; default: 4."""
INVARIANT = "xla.invariant"
"""On an argument: the kernel does not write its buffer."""
READS_GRANULES = "xla.reads_granules"
"""Of a module whose loads may read all of the aligned 16 bytes in which an element is: LLVM widens loads of aligned memory, and a GPU
protects no smaller part of it. What lies behind the array there is not used."""
DIMENSIONS = ("x", "y", "z")
SHARED = 3
"""The address space of a block's shared memory."""

_REGISTERS = {
    **{register: (False, dimension) for dimension, register in nvvm.THREAD_ID.items()},
    **{register: (True, dimension) for dimension, register in nvvm.BLOCK_ID.items()},
}
"""The op that reads an id -> (True for a block id, False for a thread id; its dimension)."""
_IDS = frozenset((gpu.ThreadIdOp, gpu.BlockIdOp, WorkgroupIdOp, ForallOp, llvm.FuncOp, *_REGISTERS))


def sanitize(name: str) -> str:
    """`name` as a function's name: characters other than letters, digits, _ and $ become _, and a leading digit is prefixed by _.

    >>> sanitize("fused_computation.1_add.3"), sanitize("2x")
    ('fused_computation_1_add_3', '_2x')
    """
    name = re.sub(r"[^A-Za-z0-9_$]", "_", name) or "__unnamed"
    return f"_{name}" if name[0].isdigit() or name in ("_", "$") else name


def is_entry(op: Operation) -> bool:
    """Whether `op` is marked as a function that is launched."""
    return ENTRY in op.attributes or KERNEL in op.attributes


def entry_of_kernel(module: ModuleOp) -> func.FuncOp | llvm.FuncOp:
    """The one function that is launched. raises VerifyError unless there is exactly one."""
    entries = [op for op in walk(module) if is_entry(op) and isinstance(op, func.FuncOp | llvm.FuncOp)]
    if len(entries) != 1:
        raise VerifyError(
            f"the module has {len(entries)} entry functions; it must have one",
            stage="kernel",
            place=place_from_location(entries[1]) if entries else None,
            help=f"the entry carries '{ENTRY}' (func.func) or '{KERNEL}' (llvm.func)"
            + ("; compile --fusion NAME prints the IR of one kernel" if entries else ""),
        )
    return entries[0]


def known_grid(entry: Operation) -> Extents | None:
    """The numbers of blocks in x, y, z that the function is made for, if an attribute gives them; else None."""
    return _extents(entry.attributes.get(GRID))


def known_block(entry: Operation) -> Extents | None:
    """The threads of a block in x, y, z that the function is made for, if attributes give them; else None."""
    return _extents(entry.attributes.get(BLOCK)) or _extents(entry.attributes.get(REQUIRED_BLOCK))


def launch_of(module: ModuleOp, entry: Operation | None = None) -> LaunchDimensions:
    """The grid and block that `entry`, or the module's one entry, is made for. raises VerifyError if the IR does not give them."""
    entry = entry or entry_of_kernel(module)
    grid, block = known_grid(entry), known_block(entry)
    if grid and block:
        return LaunchDimensions(grid, block)
    ids = list(_ids(module))
    if not ids or any(extent is None for *_, extent in ids):
        raise VerifyError(
            "the launch of the entry is not known",
            stage="kernel",
            help=f"add '{GRID}' and '{BLOCK}', each array<i32: x, y, z>, or '{RANGE_ATTR}' to every id",
        )

    def extents(of_grid: bool) -> Extents:
        x, y, z = (
            max((n or 1 for kind, d, n in ids if (kind, d) == (of_grid, axis)), default=1) for axis in DIMENSIONS
        )
        return x, y, z

    return LaunchDimensions(grid or extents(True), block or extents(False))


def shared_bytes(module: Operation) -> int:
    """Static shared memory of one block, in bytes: its tensors before lower-tensors, globals in address space 3 after it.

    For a kernel on buffers, the workgroup buffers in its signature.
    """
    total = 0
    for op in walk(module):
        if isinstance(op, llvm.GlobalOp) and op.addr_space.value.data == SHARED:
            total += _bytes_of(op.global_type)
        elif isinstance(op, AllocateSharedOp):
            tensor = op.result.type
            assert isa(tensor, TensorType[Attribute])
            total += dtype_of(tensor.element_type).size_bytes(prod(tensor.get_shape()))
        elif isinstance(op, GpuFuncOp):
            for memory in op.body.blocks[0].args[len(op.function_type.inputs) :]:
                assert isa(memory.type, MemRefType[Attribute])
                total += dtype_of(memory.type.element_type).size_bytes(prod(memory.type.get_shape()))
    return total


def _bytes_of(array_type: Attribute) -> int:
    """Bytes of a variable; the alignment of each part is its size, so there is no padding."""
    match array_type:
        case llvm.LLVMArrayType():
            return array_type.size.data * _bytes_of(array_type.type)
        case llvm.LLVMStructType():
            return sum(map(_bytes_of, array_type.types))
        case VectorType():
            return prod(array_type.get_shape()) * _bytes_of(array_type.element_type)
        case _ if isinstance(array_type, FixedBitwidthType):
            return array_type.size
        case _:
            raise VerifyError(f"the size of a shared variable of type {array_type} is not known", stage="kernel")


def _extents(attribute: Attribute | None) -> Extents | None:
    if not isa(attribute, DenseArrayBase[IntegerType]) or len(attribute) != len(DIMENSIONS):
        return None
    x, y, z = attribute.get_values()
    return x, y, z


def _ids(module: ModuleOp) -> Iterator[tuple[bool, str, int | None]]:
    """Each id in `module`: whether it is a block id, its dimension, and its extent (None if unknown)."""
    for op in walk(module):
        # A fast path: few ops are ids, and this runs before every execution.
        if type(op) not in _IDS:
            continue
        match op:
            case gpu.ThreadIdOp() | gpu.BlockIdOp() | WorkgroupIdOp():
                bounds = range_of_value(op.result)
                of_grid = not isinstance(op, gpu.ThreadIdOp)
                dimension = op.dimension.word if isinstance(op, WorkgroupIdOp) else op.dimension
                yield of_grid, dimension.data, bounds.upper + 1 if bounds else None
            case ForallOp() if not op.dynamic_upper:
                for dimension, extent in zip(DIMENSIONS, op.static_upper.get_values(), strict=False):
                    yield False, dimension, int(extent)
            case nvvm.SpecialRegisterOp():
                yield *_REGISTERS[type(op)], op.range.upper.value.data if op.range else None
            case llvm.FuncOp() if (declared := declared_by(op)) is not None:
                yield *_REGISTERS[REGISTERS[declared.register]], declared.high
            case _:
                pass
