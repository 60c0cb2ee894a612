"""The data layout of a module: the width of `index`."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, i32
from xdsl.ir import Operation

from xla_emitters.dialects.mlir.dlti import DataLayoutEntryAttr, DataLayoutSpecAttr
from xla_emitters.errors import Unsupported

DEFAULT_INDEX_BITS = 64  # MLIR's
INDEX_BITS = (32, 64)
NARROW = DataLayoutSpecAttr(ArrayAttr([DataLayoutEntryAttr(IndexType(), IntegerAttr(32, i32))]))
"""An index of 32 bits."""


def index_width(op: Operation) -> int:
    """Bits of `index` in the outermost module around `op`: 32 with `dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>`, 64 without.

    raises Unsupported for any other number of bits, and for a value that is not an integer
    """
    outermost = op
    while (parent := outermost.parent_op()) is not None:
        outermost = parent
    spec = outermost.attributes.get("dlti.dl_spec")
    if isinstance(spec, DataLayoutSpecAttr):
        for entry in spec.entries:
            if isinstance(entry.key, IndexType):
                match entry.value:
                    case IntegerAttr(value=IntAttr(data=bits)) | IntAttr(data=bits):
                        if bits not in INDEX_BITS:
                            raise Unsupported(f"an index of {bits} bits", stage="data-layout", help="use 32 or 64 bits")
                        return bits
                    case _:
                        raise Unsupported(
                            f"a data layout in which index is {entry.value}",
                            stage="data-layout",
                            help="index = 32 : i32",
                        )
    return DEFAULT_INDEX_BITS
