"""What a module says about its machine: the width of `index`."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, ModuleOp
from xdsl.dialects.dlti import DataLayoutSpecAttr

DEFAULT_INDEX_BITS = 64  # MLIR's


def index_width(module: ModuleOp) -> int:
    """Bits of `index` in `module`: 32 for `dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>`, 64 without a layout."""
    spec = module.attributes.get("dlti.dl_spec")
    if isinstance(spec, DataLayoutSpecAttr):
        for entry in spec.entries:
            if isinstance(entry.key, IndexType):
                match entry.value:
                    case IntegerAttr(value=IntAttr(data=bits)) | IntAttr(data=bits):
                        return bits
                    case _:
                        break
    return DEFAULT_INDEX_BITS
