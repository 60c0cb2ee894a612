"""Which kind of text a file holds, from how it begins: every verb asks, of every input, so nothing of the reader is loaded for it.

    module @jit_f attributes {...} {      StableHLO
    HloModule jit_f, ...                  not

A wrong guess is harmless: the reader that then gets the text says what it expected.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"(?:\s+|//[^\n]*)*")
_BEGINNINGS = re.compile(r'(?:"?builtin\.)?module\b|"?func\.func\b|#\w+\s*=|![\w.]+\s*=|"\w+\.\w+"\(')


def is_stablehlo(text: str) -> bool:
    """Whether `text` begins as MLIR does, and not as HLO text.

    >>> is_stablehlo("module @jit_f {"), is_stablehlo("HloModule jit_f")
    (True, False)
    """
    start = _COMMENT.match(text)
    assert start is not None
    return _BEGINNINGS.match(text, start.end()) is not None
