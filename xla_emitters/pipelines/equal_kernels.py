"""Kernels of a module that differ in names and locations only: the passes run for the first of them.

    add_fusion.1   emitted, all passes                       @add_fusion_1
    add_fusion.2   emitted; equal to the one above      ->   a copy of its result: @add_fusion_2, with this fusion's locations

Emission is what reads a fusion; the passes after it see the emitted module alone. So two kernels whose emitted modules are equal
(`rewrite/equal_code`) have equal code, but for names. Kernels are not shared, as in programs (disc-merge-equal-kernels): each has its own
entry, so that a module's code is what it is without this. A layer that a model repeats takes the passes once.

Not taken for equal: a kernel whose names sort differently (the inliner visits functions by name), or whose code has new symbols made of
these names; one whose locations are not the other's with other instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import FusedLoc, LocationAttr, ModuleOp
from xdsl.ir import Attribute

from xla_emitters.dialects.locations import fuse_all, parts_of, place_text
from xla_emitters.dialects.quick_op import walk
from xla_emitters.rewrite.equal_code import Code, code_of
from xla_emitters.rewrite.merge import rename_symbols, symbols_of
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.trace import Remark, Step


@dataclass(frozen=True)
class _Emitted:
    """A module as it was emitted: its code, the symbols that it defines, and the location of each op, in the order of a walk."""

    code: Code
    symbols: tuple[str, ...]
    locations: tuple[LocationAttr, ...]

    @staticmethod
    def of(module: ModuleOp) -> _Emitted:
        names = tuple(name for name, _ in symbols_of(module))
        numbers = {name: number for number, name in enumerate(names)}
        return _Emitted(code_of(module, numbers), names, tuple(op.location for op in walk(module)))


@dataclass(frozen=True)
class _Finished:
    """What the passes made of a module, and the steps of its trace that they left."""

    emitted: _Emitted
    module: ModuleOp
    steps: tuple[Step, ...]


class EqualKernels:
    """The kernels of a module that are finished, by their code."""

    def __init__(self) -> None:
        self._finished = dict[Code, _Finished]()

    def finish(self, module: ModuleOp, run: Callable[[], None], steps: list[Step]) -> ModuleOp:
        """An emitted kernel after all passes: `module` itself, or a copy of an equal one.

        run    runs the passes on `module`
        steps  those of its trace, to which the passes, or the equal kernel's, are added
        """
        emitted, start = _Emitted.of(module), len(steps)
        found = self._finished.get(emitted.code)
        if found is not None and (renaming := _Renaming.between(found, emitted)) is not None:
            steps += map(renaming.step, found.steps)
            return renaming.copy(found.module)
        run()
        self._finished.setdefault(emitted.code, _Finished(emitted, module, tuple(steps[start:])))
        return module


@dataclass(frozen=True)
class _Renaming:
    """From one kernel to an equal one: the names of symbols, and the parts of locations."""

    symbols: Mapping[str, str]
    locations: Mapping[Attribute, Attribute]
    places: Mapping[str, str]

    @staticmethod
    def between(old: _Finished, new: _Emitted) -> _Renaming | None:
        """None where the other's code, with other names, may not be what the passes make of this one."""
        symbols = dict(zip(old.emitted.symbols, new.symbols, strict=True))
        made = {name for name, _ in symbols_of(old.module)} - symbols.keys()
        if _ranks(symbols) != _ranks(symbols.values()) or any(
            name in {*symbols.values()} or any(part in name for part in symbols) for name in made
        ):
            return None
        locations = dict[Attribute, Attribute]()
        for before, after in zip(old.emitted.locations, new.locations, strict=True):
            parts = parts_of(before), parts_of(after)
            if len(parts[0]) != len(parts[1]):
                return None
            for mine, theirs in zip(*parts, strict=True):
                if locations.setdefault(mine, theirs) != theirs:
                    return None
        return _Renaming(symbols, locations, {place_text(old): place_text(new) for old, new in locations.items()})

    def copy(self, module: ModuleOp) -> ModuleOp:
        made, known = module.clone(), dict[int, LocationAttr]()
        for op in walk(made):
            rename_symbols(op, self.symbols)
            if id(op.location) not in known:
                known[id(op.location)] = self._location(op.location)
            op.location = known[id(op.location)]
        return made

    def _location(self, location: LocationAttr) -> LocationAttr:
        if not isinstance(location, FusedLoc):
            found: Any = self.locations.get(location, location)
            return found
        parts: Sequence[Any] = [self.locations.get(part, part) for part in parts_of(location)]
        return fuse_all(parts)

    def step(self, step: Step) -> Step:
        """The step as it is for the equal kernel, which it took no time."""
        return replace(step, seconds=0.0, remarks=tuple(map(self._remark, step.remarks)))

    def _remark(self, remark: Remark) -> Remark:
        places = [self.places.get(place, place) for place in remark.place.split(", ")]
        text = re.sub(r"@([\w.$-]+)", lambda found: f"@{self.symbols.get(found[1], found[1])}", remark.text)
        return replace(remark, text=text, place=", ".join(places))


def _ranks(names: Mapping[str, Any] | Any) -> list[int]:
    """The place of each name in their alphabetical order."""
    order = {name: rank for rank, name in enumerate(sorted(names))}
    return [order[name] for name in names]
