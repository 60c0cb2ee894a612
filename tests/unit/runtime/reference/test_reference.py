"""The NumPy reference: instruction by instruction, each in its own type, and the bounds that go with it."""

import ml_dtypes
import numpy as np
import pytest
from runtime.small_programs import GELU, PROGRAMS

from xla_emitters.errors import NumbersDiffer
from xla_emitters.explore.check.verdict import Reference, reference_for
from xla_emitters.graph.control_computations import called_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import random_arrays, same_bits
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds

BF16 = ml_dtypes.bfloat16


@pytest.mark.tiny
def test_gelu_as_written_by_hand() -> None:
    """Nine instructions, each rounded to bf16; the constants are those of the text, rounded once."""
    x = np.linspace(-4, 4, 5 * 64 * 128).reshape(5, 64, 128).astype(BF16)
    half, one, k2, k3 = (np.array(number, BF16) for number in (0.5, 1, 0.79785, 0.044708))
    square = x * x
    cube = square * x
    inner = (x + cube * k3) * k2
    tanh = np.tanh(inner.astype(np.float64)).astype(BF16)
    wanted = x * ((tanh + one) * half)
    (got,) = evaluate(entry_of(read_module(GELU)), [x])
    assert got.dtype == BF16
    assert same_bits(got, wanted)


def test_a_tuple_gives_an_array_per_leaf() -> None:
    x = np.arange(512, dtype=np.float32).reshape(8, 64) / 64
    first, second = evaluate(entry_of(read_module(PROGRAMS["two_results"])), [x])
    assert (first.shape, second.shape) == ((8, 64), (512,))
    assert np.array_equal(second.reshape(8, 64), -first)


def test_conversions_wrap_and_compare_selects() -> None:
    x = np.arange(1003).astype(np.int8)
    (got,) = evaluate(entry_of(read_module(PROGRAMS["bytes"])), [x])
    assert np.array_equal(got, ((~x).astype(np.int32) + 7).astype(np.int8))
    a, b = np.random.default_rng(0).standard_normal((41, 1000), np.float32), np.linspace(-1, 1, 1000, dtype=np.float32)
    (got,) = evaluate(entry_of(read_module(PROGRAMS["ragged"])), [a, b])
    product = a * b
    assert np.array_equal(got, np.where(product - a < a, product - a, product))


def test_exact_chains_have_points_for_bounds() -> None:
    """+ - * select and conversions are exact: one admissible value each."""
    x = np.arange(1003).astype(np.int8)
    computation = entry_of(read_module(PROGRAMS["bytes"]))
    (bounds,) = evaluate_bounds(computation, [x])
    assert np.array_equal(bounds.low, bounds.high)
    assert np.array_equal(bounds.low, evaluate(computation, [x])[0])


def test_one_ulp_of_tanh_carried_to_the_end() -> None:
    """Every bf16 next to tanh's value gives, through the rest of GELU, a result within the bounds; something else does not."""
    x = np.linspace(-4, 4, 5 * 64 * 128).reshape(5, 64, 128).astype(BF16)
    half, one, k2, k3 = (np.array(number, BF16) for number in (0.5, 1, 0.79785, 0.044708))
    tanh = np.tanh(((x + x * x * x * k3) * k2).astype(np.float64)).astype(BF16)
    (bounds,) = evaluate_bounds(entry_of(read_module(GELU)), [x])
    for direction in (-np.inf, np.inf):
        near = np.nextafter(tanh, np.array(direction, BF16))
        assert bounds.admits(x * ((near + one) * half)).all()
    far = np.nextafter(np.nextafter(np.nextafter(tanh, np.array(1, BF16)), np.array(1, BF16)), np.array(1, BF16))
    assert not bounds.admits(x * ((far + one) * half)).all()


def test_a_fusion_alone() -> None:
    module = read_module(GELU)
    x = np.ones((5, 64, 128), BF16)
    assert same_bits(*evaluate(called_by(module, "fusion"), [x]), *evaluate(entry_of(module), [x]))


def reference(values: np.ndarray, **tolerances: float) -> Reference:
    """The reference of `-x` on f32."""
    text = "ENTRY e {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n"
    return reference_for(read_module(text), [-values], **tolerances)


VALUES = np.array([1, 2, 3, np.nan], np.float32)


def test_verdicts() -> None:
    """The same bits (any NaN is any NaN); else how many differ, where, and what was wanted."""
    assert reference(VALUES).compare([VALUES.copy()]).summary == (
        "4 of 4 elements bit-identical to the NumPy reference"
    )
    wrong = np.array([1, 2.5, 3, 0], np.float32)
    verdict = reference(VALUES).compare([wrong])
    assert not verdict.ok
    assert verdict.summary == "differs from the NumPy reference: r0: 2 of 4 elements"
    assert verdict.details == ("r0: 2 of 4 elements", "r0[1] is 2.5, wanted 2.0", "r0[3] is 0.0, wanted nan")
    with pytest.raises(NumbersDiffer) as raised:
        verdict.raise_if_different()
    assert raised.value.exit_code == 3


def test_only_what_was_computed_is_compared() -> None:
    wrong = np.array([1, 2.5, 3, 0], np.float32)
    written = np.array([True, False, True, False])
    verdict = reference(VALUES).compare([wrong], [written])
    assert verdict.ok
    assert verdict.summary.startswith("2 of 2 elements bit-identical")


def test_tolerances_by_the_user() -> None:
    off = np.array([1.009, 2, 3, np.nan], np.float32)
    assert not reference(VALUES).compare([off]).ok
    assert reference(VALUES, atol=0.01).compare([off]).ok
    assert not reference(VALUES, rtol=0.001).compare([off]).ok
    verdict = reference(VALUES, rtol=0.01).compare([off])
    assert (
        verdict.summary
        == "4 of 4 elements (3 bit-identical, all within the given tolerance) equal to the NumPy reference"
    )


def test_inputs_stay_as_they_are() -> None:
    (x,) = random_arrays((ArraySpec("bf16", (5, 64, 128), (2, 1, 0)),), 0)
    before = x.copy()
    evaluate_bounds(entry_of(read_module(GELU)), [x])
    assert same_bits(x, before)
