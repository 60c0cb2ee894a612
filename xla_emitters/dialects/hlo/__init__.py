"""HLO as IR: one op class per opcode, HLO's own names, layouts as a tensor encoding.

    base            HloOp: what every instruction has        types         arrays, tuples, layouts, and their spelling
    computation     computations, parameters, tuples, calls  constant      literals and iota
    elementwise     one row per op: rule, meaning, code      shape_ops     ops that move elements
    reductions      reduce, reduce-window                    contractions  dot, convolution
    gather_scatter  windows with starts known at run time    windows       sliding windows
    called          map, and computations called per element
    rule_ops        ops without code of their own, in        control_ops   order, effects, control flow
                    three families                           collectives   several devices
                                                             routines      sort, FFT, linear algebra ...
    library_calls   which library function an op is          custom_calls  targets of XLA:GPU and JAX, and their
    comparators     what a sort's comparator compares        backend_configs
    dynamic_shape_ops  sizes that are values                 sized         an op at the sizes of its operands' values
    dynamic_routines   static ops at numbers that are values dynamic_slices  windows at starts known at run time
    shape_rule    the kinds of numbers of shape rules
    placement       host and device                          implicit_broadcast  of frontends that leave it to the compiler

`HLO_OPS` finds the class of an opcode; `HLO`, in `dialect`, is the dialect. HLO text is read and written by `xla_emitters.text.hlo`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from xla_emitters.dialects.hlo.base import HloOp, opcode_of


class OpClasses(Mapping[str, type[HloOp]]):
    """The op class of each opcode. A family's file is loaded when an opcode is in none of the families before it.

    families  (file, name of the tuple of op classes in it), those that most modules use first
    """

    def __init__(self, *families: tuple[str, str]) -> None:
        self._waiting = list(reversed(families))
        self._loaded: dict[str, type[HloOp]] = {}

    def __getitem__(self, opcode: str) -> type[HloOp]:
        while opcode not in self._loaded:
            if not self._waiting:
                raise KeyError(opcode)
            self._load()
        return self._loaded[opcode]

    def __iter__(self) -> Iterator[str]:
        while self._waiting:
            self._load()
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _load(self) -> None:
        file, ops = self._waiting[-1]
        family: Sequence[type[HloOp]] = getattr(import_module(f"xla_emitters.dialects.hlo.{file}"), ops)
        # Another thread may have loaded it meanwhile: then this changes nothing.
        self._loaded.update((opcode_of(op), op) for op in family)
        if self._waiting and self._waiting[-1] == (file, ops):
            self._waiting.pop()


_OF_HLO = (
    ("computation", "OPS"),
    ("constant", "OPS"),
    ("elementwise", "OPS"),
    ("shape_ops", "OPS"),
    ("reductions", "OPS"),
    ("dynamic_slices", "OPS"),
    ("contractions", "OPS"),
    ("gather_scatter", "OPS"),
    ("called", "OPS"),
    ("control_ops", "OPS"),
    ("routines", "OPS"),
    ("collectives", "OPS"),
    ("dynamic_shape_ops", "TEXT_OPS"),
)
_OF_PROGRAMS = (("dynamic_shape_ops", "PROGRAM_OPS"), ("dynamic_routines", "OPS"), ("placement", "OPS"))

HLO_OPS: Mapping[str, type[HloOp]] = OpClasses(*_OF_HLO)
"""The op class of each HLO opcode."""

PROGRAM_OPS: Mapping[str, type[HloOp]] = OpClasses(*_OF_PROGRAMS)
"""The op classes without an opcode in HLO text, by the name that they would have."""

ALL_OPS: Mapping[str, type[HloOp]] = OpClasses(
    *_OF_HLO[:5], _OF_HLO[-1], _OF_PROGRAMS[0], *_OF_HLO[5:-1], *_OF_PROGRAMS[1:]
)
"""Both; first the families that most programs of unknown size use."""

__all__ = ["ALL_OPS", "HLO_OPS", "PROGRAM_OPS", "HloOp"]
