"""Programs of tests/corpus/programs: a cheap sample at six shapes each, compiled once, against JAX's values. `make programs` runs all."""

import pytest
from runtime.dynamic_programs import CASES, CORPUS
from runtime.programs_table import difference, in_float64, layer_rows, programs, row
from runtime.stablehlo_programs import inputs_of

SAMPLE = ["concatenated", "rope", "until_large", "convnet", "maybe_empty", "histogram"]


def test_every_case_is_in_the_corpus() -> None:
    assert {path.stem for path in CORPUS.glob("*.mlir")} == {path.stem for path in CORPUS.glob("*.npz")} == set(CASES)
    assert all(len(case.sizes) == 6 for case in CASES.values())
    assert len(programs()) >= 60


@pytest.mark.parametrize("name", SAMPLE)
def test_one_compilation_gives_the_values_of_jax_at_six_shapes(name: str) -> None:
    ok, line = row(programs()[name])
    assert ok, line


def test_the_layer_is_right_at_any_shape_with_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.programs_table.LAYER", ((1, 1), (1, 7), (3, 33)))
    ok, lines = layer_rows(with_jax=False)
    assert ok, lines


def test_the_formula_in_float64_is_the_layer() -> None:
    """The expected values of the layer's table, against JAX's."""
    import numpy as np
    from runtime.stablehlo_programs import CORPUS as OTHERS

    with np.load(OTHERS / "layer.npz") as expected:
        inputs = inputs_of("layer", {"b": 2, "s": 5})
        assert difference(in_float64(*inputs), expected["1/r0"]) < 2e-6
