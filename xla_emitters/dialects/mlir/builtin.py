"""The `builtin` dialect: xDSL's, with a quick module."""

from __future__ import annotations

from xdsl.dialects import builtin as upstream

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.quick_op import QuickOp


class ModuleOp(upstream.ModuleOp, QuickOp):
    """Types in signatures name xDSL's; what makes a module of a program or kernel makes one of these."""


BUILTIN = dialect_of(upstream.Builtin, (ModuleOp,))
