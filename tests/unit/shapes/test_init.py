"""The package as a whole: its public names, its examples, and what importing it does not bring in."""

import doctest
import importlib
import subprocess
import sys

import pytest

import xla_emitters.shapes

MODULES = ("bounds", "size", "text", "facts", "axes", "guards", "solve")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    failed, attempted = doctest.testmod(importlib.import_module(f"xla_emitters.shapes.{name}"))
    assert attempted > 0
    assert failed == 0


def test_public_names_exist():
    assert all(hasattr(xla_emitters.shapes, name) for name in xla_emitters.shapes.__all__)


def test_importing_brings_in_neither_numpy_nor_xdsl():
    code = "import sys, xla_emitters.shapes; print([m for m in ('numpy', 'xdsl') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
