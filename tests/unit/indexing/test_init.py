"""The package as a whole: its public names, its examples, and what importing it does not bring in."""

import doctest
import importlib
import subprocess
import sys

import pytest

import xla_emitters.indexing

MODULES = ("interval", "expression", "simplify", "map", "text", "shapes")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    failed, attempted = doctest.testmod(importlib.import_module(f"xla_emitters.indexing.{name}"))
    assert attempted > 0
    assert failed == 0


def test_public_names():
    assert xla_emitters.indexing.__all__ == ["Expr", "ExprKind", "IndexingMap", "Interval", "Variable"]


def test_importing_brings_in_neither_numpy_nor_xdsl():
    code = "import sys, xla_emitters.indexing.shapes; print([m for m in ('numpy', 'xdsl') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
