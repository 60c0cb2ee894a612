"""Prints a computation as a separate module: the form in which a program stores the comparator of a sort."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr

from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, find_computation
from xla_emitters.text.hlo.printer import print_hlo


def print_alone(computation: ComputationOp) -> str:
    """A module with the computation as its entry, after the computations that it calls."""
    callees = list(dict.fromkeys(_called_by(computation)))
    entry = computation.clone()
    entry.set_entry()
    module = ModuleOp([*(callee.clone() for callee in reversed(callees)), entry], sym_name=StringAttr("computation"))
    return print_hlo(module)


def _called_by(computation: ComputationOp) -> Iterator[ComputationOp]:
    for op in computation.instructions:
        for callee in op.callees() if isinstance(op, CallingOp) else ():
            found = find_computation(computation, callee.symbol)
            yield found
            yield from _called_by(found)
