"""HLO text <-> the `hlo` dialect.

module = parse_hlo(text, "gelu.hlo")        print_hlo(module)

lexer       tokens and their positions            shapes      f32[8,64]{1,0}
cursor      the next token; errors                literals    {{1, 2}, {nan, -inf}}
parser      the grammar                           attributes  dimensions={0,1}, window={size=2x2}: parsed and printed
printer     text that XLA reads
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_emitters.text.hlo.parser import parse_hlo as parse_hlo
    from xla_emitters.text.hlo.printer import print_hlo as print_hlo

_HOMES = {"parse_hlo": "parser", "print_hlo": "printer"}
__all__ = ["parse_hlo", "print_hlo"]


def __getattr__(name: str) -> Any:
    # A program in StableHLO has tables of HLO's header, and neither its parser nor its printer.
    if name in _HOMES:
        return getattr(import_module(f"xla_emitters.text.hlo.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'xla_emitters.text.hlo' has no attribute '{name}'")
