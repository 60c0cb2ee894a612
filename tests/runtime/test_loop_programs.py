"""Programs of tests/corpus/loops: JAX's values by both branches of compilation, and how many bytes loops copy, by the log of dispatches."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from long_lists import but_long, every
from runtime.loop_programs import CASES, CORPUS
from runtime.programs_table import difference, programs
from runtime.stablehlo_programs import inputs_of

import xla_emitters as xe
from xla_emitters.errors import DataError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import CPU
from xla_emitters.text.stablehlo import parse_stablehlo

SIZES = {"b": 3, "s": 8}
ON_KERNELS = ("cache_of_two", "two_choices_deep", "scan_of_layers", "donated_to_a_loop")


@cache
def compiled(name: str) -> Program:
    return programs()[name].compiled()


def inputs(name: str) -> list[Any]:
    return inputs_of(name, SIZES, CASES[name])


def test_every_case_is_in_the_corpus() -> None:
    assert {path.stem for path in CORPUS.glob("*.mlir")} == {path.stem for path in CORPUS.glob("*.npz")} == set(CASES)


# Each of the others is a loop or a branch whose state is read, kept, returned or donated otherwise.
LONG_BY_LLVM = (
    *("cache_of_two", "cache_by_rows", "cache_by_index", "index_from_data", "scan_of_layers", "two_choices_deep"),
    *("chosen_beside_another_name", "donated_under_two_names", "updated_or_chosen", "reshaped_argument", "swapped"),
    *("constants_around", "updated_or_kept", "read_under_another_name", "carried_twice", "no_trips", "donated_moments"),
    *("old_value_returned", "donated_and_returned", "donated_to_a_loop"),
)


def assert_right(name: str, program: Program) -> None:
    """It has the values of JAX and leaves the arguments alone."""
    assert max(programs()[name].differences(program)) <= CASES[name].tolerance
    given = inputs(name)
    before = [np.array(array) for array in given]
    program.run(given)
    for array, held in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, held)


# Those that run as machine code below are in `make programs`.
@pytest.mark.parametrize("name", but_long(CASES, [name for name in CASES if name not in LONG_BY_LLVM[1:11:3]]))
def test_numpy_gives_the_values_of_jax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "numpy")
    assert_right(name, programs()[name].compiled())


@pytest.mark.parametrize("name", but_long(ON_KERNELS, ("cache_of_two", "scan_of_layers")))
def test_its_kernels_give_the_values_of_jax(name: str) -> None:
    with np.load(CORPUS / f"{name}.npz") as expected:
        for stage in ("loops", "llvm-dialect"):
            for i, array in enumerate(compiled(name).run(inputs(name), stage)):
                assert difference(array, expected[f"2/r{i}"]) <= CASES[name].tolerance


@pytest.mark.parametrize("name", but_long(CASES, LONG_BY_LLVM))
def test_machine_code_gives_the_values_of_jax(name: str) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    assert_right(name, compiled(name))
    assert compiled(name).compilation.cpu.name == "llvm"


# ---------------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize(
    "name",
    every(2, ["cache", "cache_by_index", "cache_by_rows", "updated_or_kept", "two_choices_deep", "loop_in_loop"]),
)
def test_a_loop_copies_its_state_once_before_it_and_never_in_it(name: str) -> None:
    """The caller's array is copied for the loop; a copy in each step would be one more for each."""
    log = compiled(name).dispatches(inputs(name))
    state = f"f32[{','.join(map(str, inputs(name)[0].shape))}]"
    assert sum(entry.call == "copy" and state in entry.arrays for entry in log) == 1


def test_the_bytes_copied_do_not_grow_with_the_number_of_steps() -> None:
    program, (x, _) = compiled("donated_to_a_loop"), inputs("donated_to_a_loop")
    for steps in (0, 1, 4):
        copies = {entry.call for entry in program.dispatches([x, np.int32(steps)])}
        assert "copy" not in copies


def test_an_update_writes_its_window_and_no_more() -> None:
    """A launch over the window: its grid has as many rows as the batch, not as many as the cache."""
    log = compiled("cache").dispatches(inputs("cache"))
    grids = {entry.grid[0] for entry in log if entry.call == "launch"}
    updates = [entry for entry in log if entry.call == "dynamic_update_slice"]
    assert grids <= {SIZES["b"]}
    assert len(updates) in (0, SIZES["s"])


def test_an_old_value_that_is_used_later_is_not_overwritten() -> None:
    """What the loop adds up is the state before each update."""
    x = inputs("old_value_carried")[0]
    a, total = x.copy(), np.zeros_like(x)
    for i in range(x.shape[1]):
        total += a
        a[:, i] = a[:, 0] * 2 + 1
    got = compiled("old_value_carried")(x)
    np.testing.assert_allclose(got[0], a, rtol=1e-6)
    np.testing.assert_allclose(got[1], total, rtol=1e-6)


@pytest.mark.parametrize(
    "name", but_long(["cache", "scan_of_layers", "loop_in_loop", "index_from_data"], ["scan_of_layers", "loop_in_loop"])
)
def test_a_loop_that_counts_copies_nothing_to_the_host(name: str) -> None:
    """Neither its counter, nor the index of an update or a slice, which in the last program is computed from data."""
    assert "d2h" not in {entry.call for entry in compiled(name).dispatches(inputs(name))}


def test_a_predicate_that_data_decide_is_all_that_a_loop_copies_to_the_host() -> None:
    """One truth value before each iteration and after the last."""
    log = compiled("ends_early").dispatches(inputs("ends_early"))
    trips, _ = compiled("ends_early")(*inputs("ends_early"))
    assert trips > 1
    assert [entry.arrays[0] for entry in log if entry.call == "d2h"] == ["pred[]"] * (trips + 1)


def test_what_every_iteration_reads_is_copied_before_the_loop() -> None:
    """The number of trips, an argument, is copied once; a sum on which a branch depends is copied in each iteration with that branch."""
    x, _ = inputs("two_choices_deep")
    for trips in (0, 1, 6):
        log = compiled("two_choices_deep").dispatches([x, np.int32(trips)])
        to_host = [entry.arrays[0] for entry in log if entry.call == "d2h"]
        assert to_host == ["s32[]", *["pred[]"] * -(-trips // 2)]


SEED = """module @m { func.func public @main(%x: tensor<?x4xf32> {jax.buffer_donor = true}, %i: tensor<i32>) -> tensor<?x4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %u = stablehlo.constant dense<7.0> : tensor<2x4xf32>
  %y = stablehlo.dynamic_update_slice %x, %u, %i, %c : (tensor<?x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32> } }"""


@pytest.mark.parametrize("way", ["numpy", "llvm"])
def test_an_update_that_is_larger_than_its_array_is_refused_before_it_is_written(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "llvm":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    monkeypatch.setenv(CPU, way)
    program = compile_program(parse_stablehlo(SEED, "<test>"), CompileOptions(record="none"))
    x = np.zeros((3, 4), np.float32)
    np.testing.assert_array_equal(program(x, 99, donate=True)[:, 0], [0, 7, 7])
    np.testing.assert_array_equal(x[:, 0], [0, 7, 7])
    for rows in (0, 1):
        with pytest.raises(DataError, match="the range from 0 to 2 is not inside an axis of size"):
            program(np.zeros((rows, 4), np.float32), 0, donate=True)


# -------------------------------------------------------------------------------------------------------------- donation


def test_a_donated_argument_is_updated_in_place_where_the_caller_says_so() -> None:
    program, (kept, x, i) = compiled("donated_step"), inputs("donated_step")
    wanted = program(kept, x, i)
    got = program(kept, x, i, donate=True)
    assert np.shares_memory(got[0], kept)
    assert not np.shares_memory(wanted[0], kept)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert program.compilation.donated == program.compilation.overwritten == (0,)


@pytest.mark.parametrize("spoil", ["read-only", "strided"])
def test_what_cannot_be_donated_is_copied(spoil: str) -> None:
    program = compiled("donated_to_a_loop")
    whole = np.arange(48, dtype=np.float32).reshape(6, 8)
    x = whole[::2] if spoil == "strided" else whole
    wanted = program(x.copy(), np.int32(4))
    x.flags.writeable = spoil != "read-only"
    before = whole.copy()
    np.testing.assert_array_equal(program(x, np.int32(4), donate=True), wanted)
    np.testing.assert_array_equal(whole, before)


def test_one_array_may_be_donated_twice() -> None:
    x = np.ones((2, 3), np.float32)
    for donate in (False, True):
        p, m = compiled("donated_moments")(x, x, donate=donate)
        np.testing.assert_array_equal(p, np.zeros((2, 3)))
        np.testing.assert_array_equal(m, np.ones((2, 3)))


def test_the_report_says_what_becomes_of_donated_arguments() -> None:
    for name, fate in (("moments", "freed after its last use"), ("step", "written into, or returned")):
        said = xe.compile(CORPUS / f"donated_{name}.mlir").explain()
        assert f"donated arguments\n  argument 0 (p0): {fate}\n" in said
    assert "donated" not in xe.compile(CORPUS / "swapped.mlir").explain()
