"""Programs of tests/corpus/stablehlo on buffers: compiled once, run at all their sizes, with the bits of the reference."""

from functools import cache

import numpy as np
import pytest
from long_lists import but_long, every
from runtime.stablehlo_programs import CASES, CORPUS, inputs_of, simplified

from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, Unsupported
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import ON_KERNELS, PROGRAM_STAGES
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.settings import Settings
from xla_emitters.text.stablehlo import parse_stablehlo

LONG = (
    *("layer", "random", "double", "composites", "strided", "special_functions", "layer_static", "layer_generic"),
    *("gather_rows", "integers", "positions", "kernel_of_unknown_size", "masked_softmax", "gradient", "convolution"),
)
"""Programs whose ops others have too: those of these that take arrays of unknown sizes are in `make programs` with all others."""


# The reference's bits are NumPy's, op by op: machine code sums in another order (`test_cpu_programs` compares it with JAX's values, within
# bounds).
BY_NUMPY = CompileOptions(verify=True, settings=Settings(cpu="numpy"))


@cache
def compiled(name: str) -> Program:
    return compile_program(simplified(name), BY_NUMPY)


def assert_same(found: list[Array], wanted: list[Array]) -> None:
    assert [array.shape for array in found] == [array.shape for array in wanted]
    assert all(same_bits(one, other) for one, other in zip(found, wanted, strict=True))


EVALUATED = [name for name, case in CASES.items() if case.is_evaluated]
SHORT = [name for name in EVALUATED if name not in LONG][::4]


@pytest.mark.parametrize("name", but_long(EVALUATED, [name for name in EVALUATED if name not in SHORT]))
def test_every_size_gives_the_bits_of_the_reference(name: str) -> None:
    program = compiled(name)
    for sizes in CASES[name].sizes:
        inputs = inputs_of(name, sizes)
        assert_same(program.run(inputs), program.run(inputs, stage="stablehlo"))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.is_evaluated])
def test_what_the_reference_does_not_evaluate_gives_the_values_of_jax(name: str) -> None:
    program, expected = compiled(name), np.load(CORPUS / f"{name}.npz")
    for number, sizes in enumerate(CASES[name].sizes):
        for i, array in enumerate(program.run(inputs_of(name, sizes))):
            wanted = expected[f"{number}/r{i}"]
            np.testing.assert_allclose(array.astype(wanted.dtype), wanted, rtol=1e-5, atol=1e-5)


STAGES = [stage for stage in PROGRAM_STAGES[1:] if stage not in ON_KERNELS]


@pytest.mark.parametrize("name", every(2, ["loop", "layer", "branches", "padded", "sorted"]))
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_gives_the_same_bits(name: str, stage: str) -> None:
    program = compiled(name)
    inputs = inputs_of(name, CASES[name].sizes[-1])
    assert_same(program.run(inputs, stage=stage), program.run(inputs))


def test_an_op_without_a_value_is_named_and_leaves_no_buffer() -> None:
    text = (CORPUS / "routines.mlir").read_text().replace("lapack_spotrf_ffi", "lapack_spbtrf_ffi")
    program = compile_program(parse_stablehlo(text, "routines.mlir"), BY_NUMPY)
    with pytest.raises(Unsupported, match="lapack_spbtrf_ffi"):
        program.run(inputs_of("routines", CASES["routines"].sizes[0]))


@pytest.mark.parametrize("name", every(3, ["update_slice", "layer", "gather_rows", "windows", "padded", "outer"]))
def test_shapes_of_any_kind_are_refused_or_give_the_bits_of_the_reference(name: str) -> None:
    program, rng = compiled(name), np.random.default_rng(0)
    for _ in range(12):
        sizes = CASES[name].sizes[int(rng.integers(len(CASES[name].sizes)))]
        inputs = [np.asarray(array) for array in inputs_of(name, sizes)]
        number = int(rng.choice([i for i, array in enumerate(inputs) if array.ndim]))
        shape = list(inputs[number].shape)
        axis = int(rng.integers(len(shape)))
        shape[axis] = int(rng.choice([0, 1, 2, shape[axis] + 1, 2 * shape[axis]]))
        inputs[number] = np.resize(inputs[number], shape).astype(inputs[number].dtype)
        try:
            found = program.run(inputs)
        except DataError:
            continue
        assert_same(found, program.run(inputs, stage="stablehlo"))
