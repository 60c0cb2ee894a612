"""Computations as HLO text: the form in which a program carries a sort's comparator, and what ends a loop; and their value on arrays.

    print_alone(@less)                     HloModule less  ENTRY %less { ... }       with all computations that it calls: see `text/hlo`
    on_elements(text, [a, b])              for each element of a and b, the root's value
    outlasts(Recurrence(...), [i, n], 9)   whether a loop in this state runs more than nine times

A library function that calls a computation (`library.call(..., on_elements=on_elements)`) gives it this text and arrays of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr

from xla_emitters.dialects.hlo import called
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import InternalError
from xla_emitters.program.steps import Recurrence


def on_elements(text: str, arrays: Sequence[Array]) -> Array:
    """The root of the text's entry, for each element of arrays of one shape. raises InternalError for a root that is a tuple."""
    from xla_emitters.runtime.reference.reference import (
        call_beside,  # imported here: most programs have no such computation
    )

    entry = _entry_of(text)
    with np.errstate(all="ignore"):
        found = called.on_elements(entry, SymbolRefAttr(entry.sym_name), call_beside(entry))(arrays)
    if len(found) != 1:
        raise InternalError(f"'{entry.sym_name.data}' returns {len(found)} values", stage="reference")
    return np.asarray(found[0])


@lru_cache(maxsize=64)
def _entry_of(text: str) -> ComputationOp:
    from xla_emitters.text.hlo.hlo_parser import parse_hlo

    module = parse_hlo(text, "<computation>")
    return next(op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)


def outlasts(ends: Recurrence, state: Sequence[Array], most: int) -> bool:
    """Whether a loop in this state, whose arrays are flat, runs more than `most` times; False too where that takes long to know."""
    from xla_emitters.graph.loop_recurrences import LoopEnd  # imported here: most loops end

    entry = _entry_of(ends.text)
    arrays = [
        np.asarray(array).view(element_of(parameter.result).numpy).reshape(dims_of(parameter.result))
        for array, parameter in zip(state, entry.parameters, strict=True)
    ]
    return LoopEnd.of(entry).outlasts(arrays, most)
