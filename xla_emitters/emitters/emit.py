"""The way into emission: which emitter takes a fusion, and the kernel module it makes.

`EMITTERS` is the rule of selection: the first that says nothing against a fusion takes it. So heroes with emitters of their own stand
before the loop emitter, which takes what is left; with only that one here, a transpose or a reduction in a fusion is emitted element by
element, if its ops have code, and refused by name if not.
Source: seed document, "Hero-based codegen"; spec/2 1.3.
"""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.analysis.fusion import FusionView, view_of
from xla_emitters.device import Device
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.emitters.loop import LoopEmitter
from xla_emitters.errors import Unsupported


class Emitter(Protocol):
    """One way to make a kernel of a fusion."""

    name: str

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None if this emitter can take the fusion, else the reason why not."""
        ...

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        """The kernel module: the entry function first, then the functions it calls."""
        ...


EMITTERS: tuple[Emitter, ...] = (LoopEmitter(),)


def emitter_for(view: FusionView, device: Device) -> Emitter:
    """The first emitter that takes the fusion.

    raises   Unsupported with every emitter's reason
    """
    reasons = list[str]()
    for emitter in EMITTERS:
        reason = emitter.applies(view, device)
        if reason is None:
            return emitter
        reasons.append(f"{emitter.name} emitter: {reason}")
    raise Unsupported(f"no emitter takes fusion %{view.name}", stage="emit", details=tuple(reasons))


def emit_fusion(fusion: FusionOp | ComputationOp, device: Device) -> ModuleOp:
    """The kernel module of a fusion, or of a computation as if a fusion called it.

    raises   Unsupported, with its place, naming the op that has no code, or the reasons of all emitters
    """
    view = view_of(fusion)
    return emitter_for(view, device).emit(view, device)
