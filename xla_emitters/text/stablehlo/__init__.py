"""StableHLO text to the `hlo` dialect, and back.

module = parse_stablehlo(text, "layer.mlir")        print_stablehlo(module)        is_stablehlo(text)

lexer       tokens, their positions, the cursor      syntax        pretty forms, as tables
types       tensor<4x?xf32>                          parser        the grammar: text to a tree
attributes  #stablehlo.gather<...>, dense<...>       tree          functions, ops, regions
locations   loc("jit(f)/add"(#loc3))                 computations  the tree to computations
op_table    ops that are one row for both directions
rules, region_rules, mlir_rules, chlo, checks, formulas: the conversion of the other ops
reader      text to a module                         printer       a module to text
beginning   which kind of text it is
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_emitters.text.stablehlo.beginning import is_kernel_ir as is_kernel_ir
    from xla_emitters.text.stablehlo.beginning import is_stablehlo as is_stablehlo
    from xla_emitters.text.stablehlo.beginning import may_exchange as may_exchange
    from xla_emitters.text.stablehlo.for_devices import module_for_devices as module_for_devices
    from xla_emitters.text.stablehlo.printer import print_stablehlo as print_stablehlo
    from xla_emitters.text.stablehlo.reader import parse_stablehlo as parse_stablehlo

_HOMES = {
    "is_kernel_ir": "beginning",
    "is_stablehlo": "beginning",
    "may_exchange": "beginning",
    "module_for_devices": "for_devices",
    "parse_stablehlo": "reader",
    "print_stablehlo": "printer",
}
__all__ = [
    "is_kernel_ir",
    "is_stablehlo",
    "may_exchange",
    "module_for_devices",
    "parse_stablehlo",
    "print_stablehlo",
]


def __getattr__(name: str) -> Any:
    # Every command checks the kind of its text; the reader is loaded only for StableHLO.
    if name in _HOMES:
        return getattr(import_module(f"xla_emitters.text.stablehlo.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'xla_emitters.text.stablehlo' has no attribute '{name}'")
