"""The `lmhlo` dialect: all op classes. Loaded where IR is read from MLIR's text, or a host program in IR runs."""

from __future__ import annotations

from xdsl.ir import Dialect

from xla_emitters.dialects.hlo import ALL_OPS
from xla_emitters.dialects.lmhlo import (
    BufferOp,
    CaseOp,
    ConditionOp,
    FusionOp,
    IncRefOp,
    TerminatorOp,
    WatchOp,
    WhileOp,
    on_buffers,
)

BUFFER_OPS: dict[str, type[BufferOp]] = {
    opcode: found for opcode, hlo in ALL_OPS.items() if (found := on_buffers(hlo)) is not None
}
"""Opcode -> its class on buffers."""

LMHLO = Dialect(
    "lmhlo",
    [*BUFFER_OPS.values(), FusionOp, WhileOp, CaseOp, ConditionOp, TerminatorOp, IncRefOp, WatchOp],
    [],
)
