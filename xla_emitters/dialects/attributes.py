"""Attributes that are made often, made once: equal ones are one object.

    integer(4, i32)      IntegerAttr(4, i32), which xDSL makes anew each time, with an IntAttr, and checks against its constraints

Attributes are immutable. Use it where numbers are made by the thousand; `IntegerAttr(...)` is as good elsewhere.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType


@lru_cache(65_536)
def integer(value: int, kind: IntegerType | IndexType | int, truncate_bits: bool = False) -> IntegerAttr[Any]:
    """`IntegerAttr(value, kind)`. raises xDSL's VerifyException if the number does not fit, unless `truncate_bits`"""
    return IntegerAttr(int(value), integer_type(kind) if isinstance(kind, int) else kind, truncate_bits=truncate_bits)


@lru_cache(256)
def integer_type(width: int) -> IntegerType:
    """`IntegerType(width)`."""
    return IntegerType(width)
