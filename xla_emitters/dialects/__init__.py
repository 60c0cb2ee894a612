"""The dialects: `xla_gpu` and its maps, `nvvm`, and xDSL's `llvm`, `gpu`, `vector`, `arith` with what they lack.

`context.make_context()` knows all of them, `context.parse_ir` reads them, `printer.print_ir` writes them.
"""

# First, before any dialect of xDSL's that has many formats is loaded.
from xla_emitters.dialects.xdsl_patches import lazy_formats as lazy_formats
