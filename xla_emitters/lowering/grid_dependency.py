"""PTX's instruction for dependent launches, used by the passes that emit it."""

from __future__ import annotations

from xdsl.ir import Operation

from xla_emitters.dialects.mlir.nvvm import GridDepActionAttr, GriddepcontrolOp
from xla_emitters.dialects.xla_gpu.tensors import PdlLaunchDependentsOp, PdlWaitOp

_KINDS = {PdlWaitOp.name: "wait", PdlLaunchDependentsOp.name: "launch_dependents"}


def griddepcontrol(op: Operation) -> Operation:
    """The instruction for one of the two ops of `xla_gpu`."""
    return GriddepcontrolOp.create(properties={"kind": GridDepActionAttr.of(_KINDS[op.name])})
