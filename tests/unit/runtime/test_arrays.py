"""Arrays at the boundary: bit patterns, `.npz` files, and errors for arrays that do not fit."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dtypes import DTYPES, dtype
from xla_emitters.errors import DataError
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import (
    checked,
    differing,
    host_array,
    load_arrays,
    random_array,
    random_arrays,
    same_bits,
    save_arrays,
)

# What nothing computes with: no arithmetic in ml_dtypes' int1, and zero is no f8e8m0fnu.
DRAWN = [row.name for row in DTYPES]


def spec(name: str, shape: tuple[int, ...], layout: tuple[int, ...] | None = None) -> ArraySpec:
    return ArraySpec(name, shape, tuple(reversed(range(len(shape)))) if layout is None else layout)


@pytest.mark.parametrize("name", DRAWN)
def test_arrays_survive_a_file(name: str, tmp_path: Path) -> None:
    """Every type, bit by bit; a type that NumPy lacks is a bit pattern beside its name in HLO's spelling."""
    specs = (spec(name, (3, 5)), spec(name, ()), spec(name, (0, 2)))
    arrays = random_arrays(specs, seed=3)
    path = tmp_path / "arrays.npz"
    save_arrays(path, "p", arrays, specs)
    for array, back in zip(arrays, load_arrays(path, "p", specs), strict=True):
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()
    with np.load(path, allow_pickle=False) as archive:
        native = f"{name}0" if "p0.dtype" not in archive.files else None
        assert (native is None) == (dtype(name).numpy.isbuiltin != 1)
        if native is None:
            assert str(archive["p0.dtype"]) == name
            assert archive["p0"].dtype == np.dtype(f"u{dtype(name).bytes}")
        else:
            assert archive["p0"].dtype == dtype(name).numpy
        assert archive["p0"].tobytes() == arrays[0].tobytes()


def written(path: Path, **entries: np.ndarray) -> Path:
    np.savez(path, **entries)
    return path


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"p1": np.zeros(3, np.float32)}, "has no 'p0' for f32\\[3\\]; it has: p1"),
        ({"p0": np.zeros(3, np.float64)}, "'p0' in .* is float64, but f32\\[3\\] is expected"),
        ({"p0": np.zeros((3, 1), np.float32)}, "'p0' in .* has shape \\[3, 1\\], but f32\\[3\\] is expected"),
        ({"p0": np.zeros(3, np.uint32), "p0.dtype": np.array("s32")}, "'p0' in .* is s32, but f32\\[3\\] is expected"),
        (
            {"p0": np.zeros(3, np.uint8), "p0.dtype": np.array("f32")},
            "holds uint8, but the bit pattern of f32 is uint32",
        ),
    ],
)
def test_what_does_not_fit_is_refused(entries: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as raised:
        load_arrays(written(tmp_path / "in.npz", **entries), "p", (spec("f32", (3,)),))
    assert raised.value.exit_code == 1


def test_the_way_out_for_types_that_numpy_lacks(tmp_path: Path) -> None:
    """`np.savez` of bfloat16 stores bytes of no type. What the message proposes is read."""
    x = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    with pytest.raises(DataError, match=r"is \|V2: .* bf16\[2\] is expected") as raised:
        load_arrays(written(tmp_path / "in.npz", p0=x), "p", (spec("bf16", (2,)),))
    assert raised.value.help == 'np.savez(path, **{"p0": x.view("u2"), "p0.dtype": "bf16"})'
    np.savez(tmp_path / "in.npz", **{"p0": x.view("u2"), "p0.dtype": "bf16"})
    assert load_arrays(tmp_path / "in.npz", "p", (spec("bf16", (2,)),))[0].tolist() == [1.5, -2.0]


def test_files_that_hold_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    with pytest.raises(FileNotFoundError):
        load_arrays(path, "p", (spec("f32", (3,)),))
    for content in (b"", b"PK\x03\x04 no zip", b"text\n"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"is not an \.npz file"):
            load_arrays(path, "p", (spec("f32", (3,)),))
    np.save(tmp_path / "one.npy", np.zeros(3, np.float32))
    with pytest.raises(DataError, match="is a single array"):
        load_arrays(tmp_path / "one.npy", "p", (spec("f32", (3,)),))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    """A file that would run code when unpickled is refused unread."""

    class Explosive:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (Path(tmp_path / "exploded"),))

    path = tmp_path / "in.npz"
    np.savez(path, p0=np.array([Explosive()], dtype=object))
    with pytest.raises(DataError, match="plain arrays"):
        load_arrays(path, "p", (spec("f32", (1,)),))
    assert not (tmp_path / "exploded").exists()


def test_checked_names_what_it_was_given() -> None:
    array = np.zeros((2, 2), np.float32)
    assert checked(array, spec("f32", (2, 2)), "parameter 0") is array
    with pytest.raises(DataError, match=r"parameter 1 is float32, but bf16\[2,2\] is expected \(bfloat16\)"):
        checked(array, spec("bf16", (2, 2)), "parameter 1")


def test_bits_are_compared_and_any_nan_is_any_nan() -> None:
    quiet, other = np.array([0x7FC00000, 0x7F800001], np.uint32).view(np.float32)
    one, two = np.array([quiet, 0.0, 1.0], np.float32), np.array([other, -0.0, 1.0], np.float32)
    assert differing(one, two).tolist() == [False, True, False]
    assert not same_bits(one, two)
    assert same_bits(one, one.copy())
    half = np.array([np.nan, 1], ml_dtypes.bfloat16)
    assert differing(half, np.array([-np.nan, 2], ml_dtypes.bfloat16)).tolist() == [False, True]
    assert differing(np.array([1 + 2j]), np.array([1 - 2j])).tolist() == [True]
    assert differing(np.array(1.0), np.array(2.0)).tolist() is True


def test_each_parameter_has_its_own_stream() -> None:
    """Another parameter in front changes nothing but the number."""
    what = spec("f32", (4,))
    both = random_arrays((what, what), seed=5)
    assert not np.array_equal(both[0], both[1])
    assert np.array_equal(both[1], random_array(what, 5, 1))


class OnlyDlpack:
    """An array of a library that NumPy does not know."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **given: Any) -> Any:
        return self._array.__dlpack__(**given)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize(
    "given",
    [
        np.array([[1, 2], [3, 4]], ">f4"),
        np.array([[1, 3], [2, 4]], "<f4").T,
        np.array([[1, 2], [3, 4]], np.float32).view(np.memmap),
        OnlyDlpack(np.array([[1, 2], [3, 4]], np.float32)),
    ],
)
def test_an_argument_is_an_array_whatever_library_and_byte_order_it_has(given: Any) -> None:
    found = checked(host_array(given, "f32", "x"), spec("f32", (2, 2)), "x")
    assert type(found) is np.ndarray
    assert found.dtype.isnative
    assert found.tolist() == [[1, 2], [3, 4]]


def test_the_mask_of_an_array_is_not_lost() -> None:
    """JAX refuses masked arrays too."""
    with pytest.raises(DataError, match=r"x is a masked array.*\n *help: array.filled") as raised:
        host_array(np.ma.masked_less(np.array([1, -2], np.float32), 0), "f32", "x")
    assert raised.value.exit_code == 1
