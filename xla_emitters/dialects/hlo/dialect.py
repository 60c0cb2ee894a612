"""The `hlo` dialect: all op classes, types and attributes. Loaded where IR is read from MLIR's text; a compilation asks for single ops."""

from __future__ import annotations

from xdsl.ir import Dialect

from xla_emitters.dialects.hlo import ALL_OPS
from xla_emitters.dialects.hlo.computation import ComputationOp, ReturnOp
from xla_emitters.dialects.hlo.types import AliasAttr, BufferType, LayoutAttr, OpaqueType, TokenType
from xla_emitters.dialects.hlo.windows import WindowAttr

HLO = Dialect(
    "hlo",
    [ComputationOp, ReturnOp, *ALL_OPS.values()],
    [AliasAttr, LayoutAttr, TokenType, OpaqueType, BufferType, WindowAttr],
)
