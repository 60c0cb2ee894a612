"""StableHLO text to the `hlo` dialect, and back.

module = parse_stablehlo(text, "layer.mlir")        print_stablehlo(module)        is_stablehlo(text)

lexer       tokens, their positions, the cursor      syntax        pretty forms, as tables
types       tensor<4x?xf32>                          parser        the grammar: text to a tree
attributes  #stablehlo.gather<...>, dense<...>       tree          functions, ops, regions
locations   loc("jit(f)/add"(#loc3))                 computations  the tree to computations
rules, region_rules, chlo, formulas: what each op becomes
reader      text to a module                         printer       a module to text
"""

from xla_emitters.stablehlo_text.printer import print_stablehlo
from xla_emitters.stablehlo_text.reader import is_stablehlo, parse_stablehlo

__all__ = ["is_stablehlo", "parse_stablehlo", "print_stablehlo"]
