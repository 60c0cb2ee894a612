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

`HLO_OPS` finds the class of an opcode; `HLO` is the dialect. HLO text is read and written by `xla_emitters.text.hlo`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from xla_emitters.dialects.hlo import (
    called,
    collectives,
    computation,
    constant,
    contractions,
    control_ops,
    dynamic_routines,
    dynamic_shape_ops,
    dynamic_slices,
    elementwise,
    gather_scatter,
    placement,
    reductions,
    routines,
    shape_ops,
)
from xla_emitters.dialects.hlo.base import HloOp, opcode_of
from xla_emitters.dialects.hlo.types import AliasAttr, BufferType, LayoutAttr, OpaqueType, TokenType
from xla_emitters.dialects.hlo.windows import WindowAttr

FAMILIES: tuple[tuple[type[HloOp], ...], ...] = (
    computation.OPS,
    called.OPS,
    constant.OPS,
    elementwise.OPS,
    shape_ops.OPS,
    dynamic_slices.OPS,
    reductions.OPS,
    contractions.OPS,
    gather_scatter.OPS,
    control_ops.OPS,
    collectives.OPS,
    routines.OPS,
    dynamic_shape_ops.TEXT_OPS,
)

HLO_OPS: dict[str, type[HloOp]] = {opcode_of(op): op for family in FAMILIES for op in family}
"""The op class of each HLO opcode."""

PROGRAM_OPS: dict[str, type[HloOp]] = {
    opcode_of(op): op for op in (*dynamic_shape_ops.PROGRAM_OPS, *dynamic_routines.OPS, *placement.OPS)
}
"""The op classes without an opcode in HLO text, by the name that they would have."""

HLO = Dialect(
    "hlo",
    [computation.ComputationOp, computation.ReturnOp, *HLO_OPS.values(), *PROGRAM_OPS.values()],
    [AliasAttr, LayoutAttr, TokenType, OpaqueType, BufferType, WindowAttr],
)

__all__ = ["HLO", "HLO_OPS", "PROGRAM_OPS", "HloOp"]
