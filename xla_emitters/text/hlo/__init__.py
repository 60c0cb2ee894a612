"""HLO text <-> the `hlo` dialect.

module = parse_hlo(text, "gelu.hlo")        print_hlo(module)

hlo_lexer       tokens and their positions        shapes          f32[8,64]{1,0}
hlo_parser      the grammar                       hlo_literals    {{1, 2}, {nan, -inf}}
hlo_printer     text that XLA reads               attribute_text  dimensions={0,1}, window={size=2x2}: parsed and printed
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_emitters.text.hlo.hlo_parser import parse_hlo as parse_hlo
    from xla_emitters.text.hlo.hlo_printer import print_hlo as print_hlo

_HOMES = {"parse_hlo": "hlo_parser", "print_hlo": "hlo_printer"}
__all__ = ["parse_hlo", "print_hlo"]


def __getattr__(name: str) -> Any:
    # A program in StableHLO has tables of HLO's header, and neither its parser nor its printer.
    if name in _HOMES:
        return getattr(import_module(f"xla_emitters.text.hlo.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'xla_emitters.text.hlo' has no attribute '{name}'")
