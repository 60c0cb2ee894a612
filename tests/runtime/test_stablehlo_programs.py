"""Programs that JAX exported: read, verified, and evaluated by NumPy as JAX evaluates them."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.stablehlo_programs import CASES, CORPUS, inputs_of
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.runtime.reference import evaluate
from xla_emitters.stablehlo_text import parse_stablehlo


def read(name: str) -> ModuleOp:
    path = CORPUS / f"{name}.mlir"
    return parse_stablehlo(path.read_text(), path.name)


def entry_of(module: ModuleOp) -> ComputationOp:
    (entry,) = (op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)
    return entry


@pytest.mark.parametrize("name", CASES)
def test_the_program_is_a_valid_module(name: str) -> None:
    read(name).verify()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.is_evaluated])
def test_its_values_are_those_of_jax(name: str) -> None:
    entry, expected = entry_of(read(name)), np.load(CORPUS / f"{name}.npz")
    case = CASES[name]
    for number, sizes in enumerate(case.sizes):
        found = evaluate(entry, inputs_of(name, sizes))
        assert f"{number}/r{len(found)}" not in expected
        for i, array in enumerate(found):
            wanted = expected[f"{number}/r{i}"]
            assert array.shape == wanted.shape
            largest = float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted)))
            got = array.astype(wanted.dtype)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=case.tolerance * max(1.0, largest), err_msg=str(sizes))
