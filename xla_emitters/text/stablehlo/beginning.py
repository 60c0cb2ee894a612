"""The kind of a text, recognised by its beginning. Every command calls this for every input, so it does not load the reader.

    module @jit_f attributes {...} {      StableHLO
    HloModule jit_f, ...                  not StableHLO

A wrong guess is harmless: the reader that gets the text reports what it expected.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"(?:\s+|//[^\n]*)*")
_BEGINNINGS = re.compile(
    r'(?:"?builtin\.)?module\b|"?(?:func|builtin)\.func\b|#\w+\s*=|![\w.]+\s*=|"\w+\.\w+"\('
    r"|(?:func|\w+\.[\w.]+)\s+(?:\w+\s+){0,4}@|vhlo\.|llvm\.module_flags\b"
)


def is_stablehlo(text: str) -> bool:
    """Whether `text` begins like MLIR, and not like HLO text.

    >>> is_stablehlo("module @jit_f {"), is_stablehlo("HloModule jit_f")
    (True, False)
    """
    start = _COMMENT.match(text)
    assert start is not None
    return _BEGINNINGS.match(text, start.end()) is not None


_EXCHANGES = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|collective_broadcast|partition_id|replica_id)\b"
)


def may_exchange(text: str) -> bool:
    """Whether a program may need other devices: it names an op that does."""
    return is_stablehlo(text) and _EXCHANGES.search(text) is not None


_ENTRY = re.compile(r"\b(?:xla\.entry|nvvm\.kernel)\b")


def is_kernel_ir(text: str) -> bool:
    """Whether text of MLIR has a kernel's entry: that is IR of a stage, not a program.

    >>> is_kernel_ir("func.func @f() attributes {xla.entry} {"), is_kernel_ir("func.func @main() {")
    (True, False)
    """
    return is_stablehlo(text) and _ENTRY.search(text) is not None
