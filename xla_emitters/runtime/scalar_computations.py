"""Computations of scalars as HLO text: the form in which a configuration carries a sort's comparator, and its value on arrays.

    print_alone(@less)                     HloModule less  ENTRY %less { ... }       with all computations that it calls: see `text/hlo`
    on_elements(text, [a, b])              for each element of a and b, the root's value

A library function that calls a computation (`library.call(..., on_elements=on_elements)`) gives it this text and arrays of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr

from xla_emitters.dialects.hlo import called
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import InternalError


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
    from xla_emitters.text.hlo.parser import parse_hlo

    module = parse_hlo(text, "<computation>")
    return next(op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)
