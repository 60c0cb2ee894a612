"""The package as a whole: its public names, and what importing it must not import."""

import subprocess
import sys

import xla_emitters.indexing


def test_public_names():
    assert xla_emitters.indexing.__all__ == ["Expr", "ExprKind", "IndexingMap", "Interval", "Variable"]


def test_importing_brings_in_neither_numpy_nor_xdsl():
    code = "import sys, xla_emitters.indexing.shapes; print([m for m in ('numpy', 'xdsl') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
