"""Programs that JAX exported: read, verified, and evaluated by NumPy as JAX evaluates them."""

import numpy as np
import pytest
from long_lists import but_long
from runtime.stablehlo_programs import CASES, CORPUS, inputs_of
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.errors import DataError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo


def read(name: str) -> ModuleOp:
    path = CORPUS / f"{name}.mlir"
    return parse_stablehlo(path.read_text(), path.name)


def test_the_programs_are_valid_modules() -> None:
    for name in CASES:
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


# Each op of a long one is in another; JAX reads all.
LONG = (
    "random",
    "composites",
    "special_functions",
    "layer",
    "layer_generic",
    "double",
    "gather_rows",
    "masked_softmax",
)
SHORT = [name for name in CASES if name not in LONG][::2]


@pytest.mark.parametrize("name", but_long(CASES, [name for name in CASES if name not in SHORT]))
def test_what_is_printed_is_read_as_the_same_program(name: str) -> None:
    """JAX reads, refines and runs it in `stablehlo_programs.py --run`."""
    module = read(name)
    text = print_stablehlo(module)
    again = parse_stablehlo(text, "printed")
    assert print_stablehlo(again) == text
    if not CASES[name].is_evaluated:
        return
    inputs = inputs_of(name, CASES[name].sizes[-1])
    for one, other in zip(evaluate(entry_of(module), inputs), evaluate(entry_of(again), inputs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_violated_assertion_speaks_jaxs_words() -> None:
    x, rows = np.zeros((1, 4), np.float32), np.zeros(4, np.int32)
    with pytest.raises(DataError, match=r"Expected value >= 1 for dimension variable 'b'.* 'b' = 0 from specification"):
        evaluate(entry_of(read("gather_rows")), [x, rows])
