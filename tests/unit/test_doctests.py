"""The examples in docstrings have the results that they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import xla_emitters

PACKAGE = Path(xla_emitters.__file__).parent
EXAMPLES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if "\n    >>> " in path.read_text())
NEEDS = {
    "explore/from_jax/jax_jit.py": "jax",
    "explore/from_jax/jax_program.py": "jax",
    "explore/from_torch/torch_program.py": "torch",
}
"""Files whose examples need an extra -> a module of it."""


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 40


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_examples_run(path: Path) -> None:
    if (extra := NEEDS.get(path.as_posix())) is not None:
        pytest.importorskip(extra, reason=f"the extra [{extra}] is not installed")
    name = ".".join(("xla_emitters", *path.with_suffix("").parts)).removesuffix(".__init__")
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0
