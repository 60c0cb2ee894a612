"""The launch that a kernel module says.

    gpu.known_grid_size, gpu.known_block_size, nvvm.reqntid         attributes of the entry, as emission writes them
    gpu.thread_id x {xla.range = [0 : index, 127 : index]}          128 threads in x: what today's XLA says, and no more
    xla.workgroup_id x {xla.range = [0 : index, 959 : index]}       960 blocks in x
    scf.forall (%x, %y, %z) in (128, 1, 1)                          128 threads in x, before there are any
    nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 960>                  960 blocks in x

The attributes win. Where an attribute is missing, an id's range is its whole extent, and an id that nothing reads has extent 1: XLA
drops those.
Source: spec/1 1.6 "Static range of an SSA value"; spec/2 3.3 "xla-gpu-lower-xla-shared".
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import gpu
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from xla_emitters.analysis.launch import Launch
from xla_emitters.dialects import nvvm
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.dialects.scf import ForallOp
from xla_emitters.dialects.xla import WorkgroupIdOp
from xla_emitters.errors import DataError

DIMENSIONS = ("x", "y", "z")

Extents = tuple[int, int, int]


def launch_of(module: ModuleOp, entry: Operation) -> Launch:
    """The launch of `module`, whose entry is `entry`. raises DataError when neither attributes nor ids say it."""
    grid = _extents(entry, "gpu.known_grid_size")
    block = _extents(entry, "gpu.known_block_size") or _extents(entry, "nvvm.reqntid")
    if grid and block:
        return Launch(grid, block)
    ids = list(_ids(module))
    if not ids or any(extent is None for *_, extent in ids):
        raise DataError(
            "the entry does not say its launch",
            stage="simt",
            details=(
                "wanted: gpu.known_grid_size, and gpu.known_block_size or nvvm.reqntid, as array<i32: x, y, z>",
                "or ids that all carry xla.range",
            ),
        )

    def extents(of_grid: bool) -> Extents:
        x, y, z = (
            max((n or 1 for kind, d, n in ids if (kind, d) == (of_grid, axis)), default=1) for axis in DIMENSIONS
        )
        return x, y, z

    return Launch(grid or extents(True), block or extents(False))


def _extents(entry: Operation, name: str) -> Extents | None:
    attribute: Attribute | None = entry.attributes.get(name)
    if not isa(attribute, DenseArrayBase[IntegerType]) or len(attribute) != len(DIMENSIONS):
        return None
    x, y, z = attribute.get_values()
    return x, y, z


def _ids(module: ModuleOp) -> Iterator[tuple[bool, str, int | None]]:
    """Each id in `module`: whether it is the block's, its dimension, and its extent if it says that."""
    registers = {register: (False, dimension) for dimension, register in nvvm.THREAD_ID.items()}
    registers |= {register: (True, dimension) for dimension, register in nvvm.BLOCK_ID.items()}
    for op in module.walk():
        match op:
            case gpu.ThreadIdOp() | gpu.BlockIdOp() | WorkgroupIdOp():
                bounds = range_of_value(op.result)
                of_grid = not isinstance(op, gpu.ThreadIdOp)
                yield of_grid, op.dimension.data, bounds.upper + 1 if bounds else None
            case ForallOp() if not op.dynamic_upper:
                for dimension, extent in zip(DIMENSIONS, op.static_upper.get_values(), strict=False):
                    yield False, dimension, int(extent)
            case nvvm.SpecialRegisterOp() if type(op) in registers:
                yield *registers[type(op)], op.range.upper.value.data if op.range else None
            case _:
                pass
