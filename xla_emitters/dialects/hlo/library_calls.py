"""stub, replaced at merge"""

from typing import Any

from xla_emitters.dialects.hlo.base import HloOp


def library_call_of(op: HloOp) -> tuple[str, dict[str, Any]]:
    raise op.unsupported("no kernel outside fusions", "put it into a fusion, or compile it alone")
