"""What a module says about its machine: the width of `index`."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr
from xdsl.dialects.dlti import DataLayoutSpecAttr
from xdsl.ir import Operation

DEFAULT_INDEX_BITS = 64  # MLIR's


def index_width(op: Operation) -> int:
    """Bits of `index` where `op` stands: 32 for `dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>` on its outermost module, 64 without."""
    outermost = op
    while (parent := outermost.parent_op()) is not None:
        outermost = parent
    spec = outermost.attributes.get("dlti.dl_spec")
    if isinstance(spec, DataLayoutSpecAttr):
        for entry in spec.entries:
            if isinstance(entry.key, IndexType):
                match entry.value:
                    case IntegerAttr(value=IntAttr(data=bits)) | IntAttr(data=bits):
                        return bits
                    case _:
                        break
    return DEFAULT_INDEX_BITS
