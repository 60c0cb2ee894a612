"""The dialects, by owner: `hlo`, `xla_gpu` and its maps, and MLIR's own (`mlir`), which are xDSL's with what they lack.

`context.make_context()` knows all of them, `context.parse_ir` reads them, `printer.print_ir` writes them. xDSL's classes are patched here,
in the one place that is run before any module of this package imports them, extends them, or makes a dialect of them.
"""

from xla_emitters.dialects import xdsl_patches

xdsl_patches.apply()
