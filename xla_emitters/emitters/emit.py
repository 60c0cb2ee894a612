"""The entry point of emission: selects a fusion's emitter and returns its kernel module.

`EMITTERS` defines the selection: the first emitter whose `applies` returns None takes the fusion. Emitters of heroes come before the loop
emitter, which takes all other fusions and emits them element by element. Ops without code, in the fusion or in called computations, are
refused by name.
Source: seed document, "Hero-based codegen"; docs/reference/2 1.3.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import Device
from xla_emitters.dialects.completion import adopt_all
from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import written_at
from xla_emitters.dialects.verification import verify_ir
from xla_emitters.emitters.emitter import Emitter, TunableEmitter
from xla_emitters.emitters.loop import LoopEmitter
from xla_emitters.emitters.memcpy import MemcpyEmitter
from xla_emitters.emitters.partitioner import PartitionedComputation
from xla_emitters.errors import Unsupported, UsageError, VerifyError
from xla_emitters.graph.heroes import find_transposes
from xla_emitters.graph.in_place_updates import find_in_place_updates
from xla_emitters.graph.kinds import why_no_lone_concatenate
from xla_emitters.graph.reduction_kinds import find_reductions
from xla_emitters.graph.refusals import has_code, refuse_unsupported
from xla_emitters.graph.scatters import arrays_in_place
from xla_emitters.graph.view import FusionView, is_scheduled, once_per_view
from xla_emitters.plugins import blamed, fault, is_outside, load, note, refuse_double, registered
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.rewrite.notes import decide, remark
from xla_emitters.support.late_dataclass import dataclass


@dataclass(eq=False)
class OfHero:
    """An emitter of this package, whose file is loaded by the first fusion that has its hero.

    name  of the emitter and of its file
    find  looks for the hero; a text says why there is none
    """

    name: str
    find: Callable[[FusionView], object]

    @cached_property
    def own(self) -> Emitter:
        """The emitter itself."""
        kind = "".join(word.capitalize() for word in self.name.split("_"))
        return getattr(import_module(f"xla_emitters.emitters.{self.name}"), f"{kind}Emitter")()

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None if it takes the fusion, else why not."""
        found = self.find(view)
        return found if isinstance(found, str) else self.own.applies(view, device)

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """As the emitter itself."""
        return self.own.partition(view, device)

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        """As the emitter itself."""
        return self.own.emit(view, device)


EMITTERS: tuple[Emitter, ...] = (
    OfHero("reduction", find_reductions),
    OfHero("transpose", find_transposes),
    OfHero("scatter", arrays_in_place),
    OfHero("concatenate", why_no_lone_concatenate),
    MemcpyEmitter(),
    OfHero("dynamic_update_slice", find_in_place_updates),
    LoopEmitter(),
)


HERO_RULES: dict[str, tuple[Emitter, ...]] = {
    "current": EMITTERS,
    "seed": (*EMITTERS[:2], OfHero("input_slices", lambda view: view), *EMITTERS[2:]),
}
"""Name of the rules -> the emitters in order of precedence. "current" is today's XLA; the seed document's list has one emitter more."""


def register_emitter(emitter: Emitter, *, before: str = "loop") -> None:
    """Registers an emitter from outside the package, under all rules.

    before   name of the emitter that it is placed before; emitters in front of that one have precedence over it
    raises   UsageError if it is not an emitter, if `before` does not exist, or if the new emitter's name is taken
    """
    given: Any = emitter
    if isinstance(given, type):
        raise UsageError(f"{given.__name__} is a class, not an emitter", stage="plugins", help=f"{given.__name__}()")
    if missing := [name for name in ("name", "applies", "partition", "emit") if not hasattr(given, name)]:
        raise UsageError(f"{type(given).__name__} has no {', no '.join(missing)}", stage="plugins")
    for rules, emitters in HERO_RULES.items():
        names = [known.name for known in emitters]
        if before not in names:
            raise UsageError(f"no emitter '{before}'", stage="plugins", help=f"there are: {', '.join(names)}")
        refuse_double("emitter", emitter.name, names)
        place = names.index(before)
        HERO_RULES[rules] = (*emitters[:place], emitter, *emitters[place:])
    note("emitter", emitter.name, emitter)


def emitter_for(view: FusionView, device: Device, rules: str = "current", *, own: bool = False) -> Emitter:
    """The first emitter that takes the fusion.

    rules    a key of HERO_RULES
    own      consider only this package's emitters
    raises   Unsupported with every emitter's reason; UsageError for unknown rules
    """
    load()
    if rules not in HERO_RULES:
        raise UsageError(f"unknown hero rules '{rules}'", help=f"one of: {', '.join(HERO_RULES)}")
    reasons = list[str]()
    for emitter in HERO_RULES[rules]:
        if own and is_outside(type(emitter)):
            continue
        with _blamed(emitter):
            reason = emitter.applies(view, device)
        if is_outside(type(emitter)) and not isinstance(reason, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            said = f"applies returned {type(reason).__name__}, not None or the reason why not"
            raise fault(type(emitter), f"emitter '{emitter.name}'", said)
        if reason is None:
            decide("emitter", f"{emitter.name} emitter", name=emitter.name, declined=reasons)
            return emitter.own if isinstance(emitter, OfHero) else emitter
        reasons.append(f"{emitter.name} emitter: {reason}")
    raise Unsupported(f"no emitter takes fusion %{view.name}", stage="emit", place=view.place, details=tuple(reasons))


def emit_fusion(
    view: FusionView, device: Device, rules: str = "current", choose: Callable[[TunableEmitter], Emitter] | None = None
) -> ModuleOp:
    """The kernel module of a fusion.

    rules    as in `emitter_for`
    choose   picks one of the candidates of an emitter that has several; None: XLA's choice
    raises   Unsupported, with its place: names the op that has no code, or lists the reasons of all emitters
    """
    refuse_without_code(view)
    if device.assumed:
        remark("target", device.assumed)
    emitter = emitter_for(view, device, rules)
    if choose is not None and isinstance(emitter, TunableEmitter):
        emitter = choose(emitter)
    with _blamed(emitter):
        module = emitter.emit(view, device)
    if is_outside(type(emitter)):
        _verify(emitter, module)
    elif registered():
        adopt_all(module)  # a plugin's code of one op may build xDSL's
    return module


def _blamed(emitter: Emitter) -> AbstractContextManager[None]:
    return blamed(type(emitter), f"emitter '{emitter.name}'")


def _verify(emitter: Emitter, module: Any) -> None:
    """raises PluginError unless `module` is a ModuleOp that verifies"""
    what = f"emitter '{emitter.name}'"
    if not isinstance(module, ModuleOp):
        raise fault(type(emitter), what, f"emit returned {type(module).__name__}, not a module")
    adopt_all(module)
    try:
        verify_ir(module)
        launch_of(module)
    except VerifyError as error:
        raise fault(type(emitter), what, f"its IR does not verify: {error.message}") from error


def partition_fusion(view: FusionView, device: Device, rules: str = "current") -> PartitionedComputation:
    """The partitioning by the emitter that takes the fusion. raises Unsupported as `emit_fusion`"""
    refuse_without_code(view)
    emitter = emitter_for(view, device, rules)
    with _blamed(emitter):
        return emitter.partition(view, device)


def opcodes_with_code() -> tuple[str, ...]:
    """The HLO opcodes with code, in alphabetical order. Some have code only for certain types and refuse the others by name."""
    return tuple(sorted(opcode for opcode, op in HLO_OPS.items() if has_code(op)))


@once_per_view
def refuse_without_code(view: FusionView) -> None:
    """raises Unsupported if an instruction has no code (one error for all such instructions), or the error of `refusals.py`.

    The kernel of a fusion with a schedule of programs is not made of its instructions' code.
    """
    refuse_unsupported(view)
    if is_scheduled(view):
        return
    called = (op for computation in view.called for op in computation.instructions)
    missing = [op for op in (*view.instructions, *called) if not has_code(type(op))]
    if not missing:
        return
    first, *others = missing
    raise Unsupported(
        f"no code for HLO op '{first.opcode}' (instruction %{first.instruction_name.data})",
        stage="emit",
        place=written_at(first),
        notes=tuple(
            (written_at(op), f"nor for '{op.opcode}' (instruction %{op.instruction_name.data})") for op in others
        ),
        help=f"there is code for: {', '.join(opcodes_with_code())}",
    )
