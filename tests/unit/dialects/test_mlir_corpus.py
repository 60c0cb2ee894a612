"""What MLIR 22 has and emitter IR can hold is read as MLIR reads it, and printed so that MLIR reads the same.

`tests/corpus/mlir` holds a file per dialect, small modules written for MLIR's own grammar; `mlir-opt` is asked what each means.
"""

from pathlib import Path

from unit.dialects.mlir_opt import SEPARATOR, assert_generic_form_is_read, assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir.index import INDEX

FILES = sorted((Path(__file__).parents[2] / "corpus" / "mlir").glob("*.mlir"))


def test_the_files_are_there():
    assert len(FILES) == 15


def test_every_op_of_index_is_in_its_file():
    """xDSL has no such dialect."""
    (path,) = (path for path in FILES if path.stem == "index")
    found = {op.name for section in path.read_text().split(SEPARATOR) for op in parse_ir(section).walk()}
    assert {op.name for op in INDEX.operations} <= found


def test_custom_and_generic_form_mean_what_mlir_takes_them_to_mean():
    """All files at once: `mlir-opt` takes longer to start than to read any of them."""
    sections = [section.strip() for path in FILES for section in path.read_text().split(SEPARATOR)]
    assert_means_the_same(sections)
    assert_generic_form_is_read(sections)
