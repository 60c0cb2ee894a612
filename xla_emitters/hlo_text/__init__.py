"""HLO text <-> the `hlo` dialect.

module = parse_hlo(text, "gelu.hlo")        print_hlo(module)

lexer       tokens and their positions            shapes      f32[8,64]{1,0}
cursor      the next token; errors                literals    {{1, 2}, {nan, -inf}}
parser      the grammar                           attributes  dimensions={0,1}, window={size=2x2}: parsed and printed
printer     text that XLA reads
"""

from xla_emitters.hlo_text.parser import parse_hlo
from xla_emitters.hlo_text.printer import print_hlo

__all__ = ["parse_hlo", "print_hlo"]
