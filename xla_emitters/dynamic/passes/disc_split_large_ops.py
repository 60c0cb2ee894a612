"""A concatenation of many arrays becomes a tree of small ones, so that the kernel of each has few enough parameters. On HLO.

    c = concatenate(a, b, c, d)       ->      u = concatenate(a, b), v = concatenate(c, d), c = concatenate(u, v)     limit 2

The halves are split again while they have more operands than the limit. The size along the concatenated axis is known if all operands'
sizes are, else `?`. Order and elements stay. The default limit, 32 arrays, keeps a kernel below 64 buffers, the limit of fusion.
Other ops with many operands (tuples, sorts of many arrays) are not compiled to one kernel; they are not changed.
Source: seed document, "DhloSplitLargeOpsPass"; BladeDISC split_large_ops.cc for the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.shape_ops import ConcatenateOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of
from xla_emitters.errors import UsageError
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscSplitLargeOpsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    max_operands   limit of a concatenation's operands; at least 2
    """

    name = "disc-split-large-ops"

    max_operands: int = 32

    def apply_to(self, op: ModuleOp) -> None:
        if self.max_operands < 2:
            raise UsageError(f"{self.name}: max-operands={self.max_operands}", help="at least 2: fewer join nothing")
        names = Names(op)
        for large in list(op.walk()):
            if isinstance(large, ConcatenateOp) and len(large.operands) > self.max_operands:
                self._split(large, names)

    def _split(self, large: ConcatenateOp, names: Names) -> None:
        (along,) = integers(large.dimensions)

        name = large.instruction_name.data

        def joined(operands: Sequence[SSAValue]) -> SSAValue:
            """One value for some of the operands."""
            if len(operands) == 1:
                return operands[0]
            if len(operands) > self.max_operands:
                operands = [joined(operands[: len(operands) // 2]), joined(operands[len(operands) // 2 :])]
            dims = [list(dims_of(operand)) for operand in operands]
            sizes = [max(sizes) for sizes in zip(*dims, strict=True)]  # the known size if one of the two is unknown
            ends = [row[along] for row in dims]
            sizes[along] = UNBOUNDED if UNBOUNDED in ends else sum(ends)
            ir_type = array_type(as_array(operands[0].type).element_type, sizes)
            return names.add(ConcatenateOp(operands, ir_type, f"{name}.part", {"dimensions": large.dimensions}), large)

        middle = len(large.operands) // 2
        large.operands = [joined(large.operands[:middle]), joined(large.operands[middle:])]
