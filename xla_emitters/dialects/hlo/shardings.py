"""How ENTRY's parameters and results are parts of whole arrays: `sharding=` of the parameters, and of ENTRY's ROOT, as text.

    parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}       one array
    ROOT t = (f32[4], f32[8]) tuple(a, b), sharding={{devices=[8]<=[8]}, {replicated}}      a tuple: one for each leaf

XLA prints those of parameters, but jaxlib 0.12 not behind its passes; `optimize` adds them, and that of the ROOT. What a text means for the
devices of a run: `runtime/shards`.
Source: hlo_sharding.cc.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import StringAttr, TupleType

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import leaf_types


def shardings_of(entry: ComputationOp) -> tuple[str, ...]:
    """The sharding of each array of the parameters, then of each of the result; "" where the text has none."""
    root = entry.root.owner
    assert isinstance(root, HloOp)
    parameters = sorted(entry.parameters, key=lambda op: op.number.value.data)
    return tuple(sharding for op in (*parameters, root) for sharding in _of(op))


def _of(op: HloOp) -> tuple[str, ...]:
    """One for each leaf of an op's result."""
    said, count = op.attributes.get("sharding"), len(leaf_types(op.result.type))
    text = said.data.strip() if isinstance(said, StringAttr) else ""
    if not isinstance(op.result.type, TupleType):
        return (text,)
    # Shardings of single arrays have braces of their own inside: {devices=[2]<=[2] last_tile_dims={manual}}.
    found = tuple(re.findall(r"\{(?:[^{}]|\{[^{}]*\})*\}", text[1:-1]))
    return found if len(found) == count else ("",) * count
