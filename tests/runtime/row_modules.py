"""Modules of softmax, norms and gradients that the real XLA made (`benchmarks/row_modules`), at other sizes.

module_of("softmax_f32", 7, 33)        x = f32[7,33] where the file has f32[16384,2048]; numbers such as 1/2048 stay as they are
"""

import re
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.graph.control_computations import fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo

MODULES = Path(__file__).parents[2] / "benchmarks" / "row_modules"
SIZES = {
    "layer_norm": (16384, 4096),
    "layer_norm_gradient": (16384, 4096),
    "log_softmax": (4096, 8192),
    "rms_norm": (16384, 4096),
    "softmax_bf16": (32768, 2048),
    "softmax_f16": (65536, 1024),
    "softmax_f32": (16384, 2048),
    "softmax_gradient": (16384, 2048),
}
"""Rows and columns in the files."""


def text_of(name: str, rows: int, columns: int) -> str:
    """The module at these sizes."""
    old_rows, old_columns = SIZES[name]
    text = (MODULES / f"{name}.hlo").read_text()
    # Whole numbers in the brackets of a shape.
    shapes = re.compile(r"(?<=[a-z]\d\d)\[([\d,]+)\]")
    new = {str(old_rows): str(rows), str(old_columns): str(columns)}
    return shapes.sub(lambda found: f"[{','.join(new.get(size, size) for size in found[1].split(','))}]", text)


def module_of(name: str, rows: int, columns: int) -> ModuleOp:
    return parse_hlo(text_of(name, rows, columns), name)


def fusion_of(module: ModuleOp) -> FusionView:
    """The module's only fusion."""
    (fusion,) = fusions_run_by(entry_of(module))
    return view_of(fusion)
