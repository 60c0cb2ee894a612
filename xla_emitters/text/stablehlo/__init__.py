"""StableHLO text to the `hlo` dialect, and back.

module = parse_stablehlo(text, "layer.mlir")        print_stablehlo(module)        is_stablehlo(text)

stablehlo_lexer      tokens, their positions, the cursor      syntax_tables      pretty forms, as tables
stablehlo_types      tensor<4x?xf32>                          stablehlo_parser   the grammar: text to a tree
attribute_values     #stablehlo.gather<...>, dense<...>       tree               functions, ops, regions
stablehlo_locations  loc("jit(f)/add"(#loc3))                 computations       the tree to computations
op_table             ops that are one row for both directions
rules, region_rules, mlir_rules, chlo, formulas: the conversion of the other ops
reader               text to a module                         stablehlo_printer  a module to text

Which kind of text it is, is recognised here by its beginning. Every command does that for every input, so it does not load the reader.

    module @jit_f attributes {...} {      StableHLO
    HloModule jit_f, ...                  not StableHLO

A wrong guess is harmless: the reader that gets the text reports what it expected.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_emitters.text.stablehlo.reader import parse_stablehlo as parse_stablehlo
    from xla_emitters.text.stablehlo.stablehlo_printer import print_stablehlo as print_stablehlo

_HOMES = {"parse_stablehlo": "reader", "print_stablehlo": "stablehlo_printer"}
__all__ = ["is_kernel_ir", "is_stablehlo", "module_for_devices", "parse_stablehlo", "print_stablehlo"]


def __getattr__(name: str) -> Any:
    # Every command checks the kind of its text; the reader is loaded only for StableHLO.
    if name in _HOMES:
        return getattr(import_module(f"xla_emitters.text.stablehlo.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'xla_emitters.text.stablehlo' has no attribute '{name}'")


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


_ENTRY = re.compile(r"\b(?:xla\.entry|nvvm\.kernel)\b")


def is_kernel_ir(text: str) -> bool:
    """Whether text of MLIR has a kernel's entry: that is IR of a stage, not a program.

    >>> is_kernel_ir("func.func @f() attributes {xla.entry} {"), is_kernel_ir("func.func @main() {")
    (True, False)
    """
    return is_stablehlo(text) and _ENTRY.search(text) is not None


def module_for_devices(text: str, file: str, entry: str = "") -> str | None:
    """The HLO text of a program for several devices; None for any other. raises as `for_devices.module_for_devices`"""
    if not is_stablehlo(text) or _EXCHANGES.search(text) is None:
        return None
    from xla_emitters.text.stablehlo import for_devices  # imported here: few programs need other devices

    return for_devices.module_for_devices(text, file, entry)
