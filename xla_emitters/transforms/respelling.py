"""Replaces an op by the same op of the other spelling; shared by the two spelling passes."""

from __future__ import annotations

from xdsl.ir import Operation

from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr
from xla_emitters.rewrite.replacement import replace_alike


def respell(op: Operation, op_type: type[Operation], map_type: type[IndexingMapAttr]) -> None:
    """Replaces `op` by an op of `op_type` with the same fields; its maps become attributes of `map_type`."""
    properties = {
        name: map_type(value.data) if isinstance(value, IndexingMapAttr) else value
        for name, value in op.properties.items()
    }
    new = op_type.create(
        operands=op.operands,
        result_types=op.result_types,
        properties=properties,
        regions=[op.detach_region(region) for region in tuple(op.regions)],
    )
    replace_alike(op, new)
