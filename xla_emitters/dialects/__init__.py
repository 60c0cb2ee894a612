"""The dialects, by owner: `hlo`, `xla_gpu` and its maps, and MLIR's own (`mlir`), which are xDSL's, completed.

`context.make_context()` registers all of them, `context.parse_ir` reads them, `printer.print_ir` writes them. xDSL's classes are patched
here, because this runs before any module of this package imports them, extends them, or makes a dialect of them.
"""

from xla_emitters.dialects import xdsl_patches

xdsl_patches.apply()
