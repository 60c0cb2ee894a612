"""What MLIR 22 has and emitter IR can hold is read as MLIR reads it, and printed so that MLIR reads the same.

`tests/corpus/mlir` holds a file per dialect, small modules written for MLIR's own grammar; `mlir-opt` is asked what each means.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.dialects.mlir_opt import SEPARATOR, assert_means_the_same, generic_text

FILES = sorted((Path(__file__).parents[2] / "corpus" / "mlir").glob("*.mlir"))


def test_the_files_are_there():
    assert len(FILES) == 15


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_custom_and_generic_form_mean_what_mlir_takes_them_to_mean(path: Path):
    sections = [section.strip() for section in path.read_text().split(SEPARATOR)]
    generic = generic_text(sections)
    assert_means_the_same(sections)
    assert_means_the_same(generic)
