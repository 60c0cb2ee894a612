"""The ops of a scan in a computation under construction.

parts = ScanParts(Part(computation), find_scan(...), add)
y = parts.window(parts.part.take(found.array))        one window over whole rows
z = parts.combined(x, y)                              the body, element by element
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, SymbolRefAttr, i64
from xdsl.ir import Block, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.called import MapOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, ReturnOp, find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import ReshapeOp
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim
from xla_emitters.graph.fusion_parts import Part
from xla_emitters.graph.scan_ranges import FoundScan
from xla_emitters.graph.scans import PREFIX
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class ScanParts:
    """See the file's head.

    part   gets the ops
    add    adds a computation to the module: the body, if there is none of the elements' type
    """

    part: Part
    found: FoundScan
    add: Callable[[ComputationOp], None]

    def insert(self, op: HloOp) -> SSAValue:
        return self.part.insert(op, self.found.op)

    def window(self, array: SSAValue) -> SSAValue:
        """The scan of the rows of an array as one window."""
        *rows, columns = dims_of(array)
        low, high = (columns - 1, 0) if self.found.way == PREFIX else (0, columns - 1)
        window = Window((*(WindowDim(1) for _ in rows), WindowDim(columns, low=low, high=high)))
        properties = {"window": WindowAttr(window), "to_apply": self.body()}
        return self.insert(ReduceWindowOp([array, self.initial()], array.type, "scan", properties))

    def initial(self) -> SSAValue:
        element = element_of(self.found.array)
        value = np.asarray(self.found.initial).astype(element.numpy)
        return self.insert(ConstantOp.from_array(value, element, "initial"))

    def body(self) -> SymbolRefAttr:
        """The computation of the elements' type that combines two."""
        op, element = self.found.op, element_of(self.found.array)
        if isinstance(op, ReduceWindowOp | MapOp) and element_of(op.result) == element:
            return op.to_apply
        pair = [ParameterOp(number, array_type(element.ir_type, ()), name) for number, name in enumerate("ab")]
        both = type(self._root)([each.result for each in pair], pair[0].result.type, "both")
        name = f"{self.part.source.sym_name.data}.body"
        made = ComputationOp(name, Block([*pair, both, ReturnOp(both.result)]))
        for each in (*pair, both, made):
            each.location = op.location
        self.add(made)
        return SymbolRefAttr(made.sym_name.data)

    def combined(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """Two arrays of one shape, combined element by element."""
        if self.found.opcode:
            return self.insert(type(self._root)([one, other], one.type, "both"))
        dims = DenseArrayBase.from_list(i64, list(range(len(dims_of(one)))))
        return self.insert(MapOp([one, other], one.type, "both", {"to_apply": self.body(), "dimensions": dims}))

    def shaped(self, value: SSAValue, dims: tuple[int, ...]) -> SSAValue:
        if dims_of(value) == dims:
            return value
        return self.insert(ReshapeOp([value], array_type(element_of(value).ir_type, dims), "shaped"))

    @property
    def _root(self) -> HloOp:
        """The op of a body that is one op."""
        op = self.found.op
        if not isinstance(op, ReduceWindowOp | MapOp):
            return op
        root = find_computation(op, op.to_apply).root.owner
        while isinstance(root, HloOp) and root.opcode == "convert":
            root = root.operands[0].owner
        assert isinstance(root, HloOp)
        return root
