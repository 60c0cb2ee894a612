"""Constants by name: of the seed's digest, from a file that may be wrong in every way."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, i1, i32

from xla_emitters.dialects.disc_ral import constant_name
from xla_emitters.dynamic.host.disc_convert_const_to_ral import as_bytes, stored
from xla_emitters.errors import DataError
from xla_emitters.runtime.ral.constants_file import StoredConstants

SEED = "40F7E71261729523BBE798C4347EEA1B_i32_2"
I32 = np.dtype(np.int32)


def written(path: Path, **entries: np.ndarray) -> StoredConstants:
    np.savez(path / "c.npz", allow_pickle=True, **entries)
    return StoredConstants(path / "c.npz")


def test_the_name_of_the_seeds_constant() -> None:
    assert constant_name(np.array([0, 1], np.int32), i32) == SEED


def test_a_scalar_has_no_sizes_and_truth_values_are_bytes() -> None:
    assert constant_name(np.array(True), i1).endswith("_i8")
    assert constant_name(np.zeros((2, 3), np.float16), f16).endswith("_f16_2x3")
    assert constant_name(np.zeros(2, np.uint16), bf16).endswith("_f16_2")


def test_a_constant_is_read_back_and_kept(tmp_path: Path) -> None:
    constants = written(tmp_path, **{SEED: as_bytes(np.array([0, 1], np.int32))})
    found = constants.get(SEED, I32)
    (tmp_path / "c.npz").unlink()
    assert constants.get(SEED, I32) is found
    assert found.tolist() == [0, 1]
    assert not found.flags.writeable


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0, 5)])
def test_equal_elements_are_stored_once_and_repeated(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.full(shape, 7, np.int32)
    name = constant_name(array, i32)
    assert stored(array).size == min(1, array.size)
    np.testing.assert_array_equal(written(tmp_path, **{name: as_bytes(stored(array))}).get(name, I32), array)


def test_zeros_of_both_signs_are_not_equal() -> None:
    assert stored(np.array([0.0, -0.0], np.float32)).size == 2


WRONG: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "missing": ({"other": np.zeros(8, np.uint8)}, "no such entry"),
    "digest": ({SEED: np.zeros(8, np.uint8)}, "its data have the digest"),
    "length": ({SEED: np.zeros(7, np.uint8)}, "it has 7 bytes, not 8"),
    "type": ({SEED: np.array([0, 1], np.int32)}, "not bytes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_is_wrong_is_an_error_that_names_the_constant(tmp_path: Path, what: str) -> None:
    entries, message = WRONG[what]
    with pytest.raises(DataError, match=message) as caught:
        written(tmp_path, **entries).get(SEED, I32)
    assert SEED in str(caught.value)


def test_a_pickled_object_is_not_unpickled(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        written(tmp_path, **{SEED: np.array([object()], dtype=object)}).get(SEED, I32)


def test_a_file_that_is_not_there_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=SEED):
        StoredConstants(tmp_path / "none.npz").get(SEED, I32)
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(DataError):
        StoredConstants(tmp_path / "bad.npz").get(SEED, I32)
