"""Arrays in files are checked by their headers: an array that does not fit is refused before its data is unpacked."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from xla_emitters.dtypes import dtype
from xla_emitters.errors import DataError
from xla_emitters.program import ArraySpec
from xla_emitters.runtime import npz
from xla_emitters.runtime.arrays import load_arrays, load_given

ZEROS = bytes(1 << 20)
THREE = ArraySpec("f32", (3,), (0,))


def header(descr: str, shape: Sequence[int], version: int = 1, fortran: bool = False) -> bytes:
    """A header as NumPy writes it, for any type and shape."""
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}\n".encode()
    return b"\x93NUMPY" + bytes((version, 0)) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


def archive(path: Path, members: Mapping[str, Sequence[bytes]], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """An `.npz` file of hand-written members, each in pieces, so that 64 MB of zeros cost little."""
    with zipfile.ZipFile(path, "w", compression, compresslevel=1) as file:
        for name, pieces in members.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as stream:
                for piece in pieces:
                    stream.write(piece)
    return path


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the pieces that are read of any member, as they are read."""
    sizes: list[int] = []
    read = zipfile.ZipExtFile.read

    def counted(stream: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        data = read(stream, n)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    return sizes


@pytest.mark.parametrize("spec", [THREE, ArraySpec("bf16", (3,), (0,))])
def test_arrays_of_the_other_byte_order(spec: ArraySpec, tmp_path: Path) -> None:
    """As files of a machine with that order hold them; a bit pattern too."""
    values = np.array([1.5, -2, 3], dtype(spec.dtype).numpy)
    bits = values.view(f"u{values.itemsize}")
    stored = values if spec is THREE else bits
    members = {"p0": stored.astype(stored.dtype.newbyteorder(">"))}
    np.savez(tmp_path / "in.npz", **members, **({} if spec is THREE else {"p0.dtype": np.array(spec.dtype)}))
    for (array,) in (load_arrays(tmp_path / "in.npz", "p", [spec]), load_given(tmp_path / "in.npz", "p", [0])):
        assert array.dtype == values.dtype
        assert np.array_equal(array.view(bits.dtype), bits)


@pytest.mark.parametrize(
    ("descr", "shape", "message"),
    [
        ("'<f8'", (1 << 23,), r"'p0' in .* is float64, but f32\[3\] is expected \(float32\)"),
        ("'<f4'", (1 << 24,), r"'p0' in .* has shape \[16777216\], but f32\[3\] is expected"),
        ("'|O'", (1 << 23,), "'p0' holds Python objects"),
        ("[('a', '<f4'), ('b', '<f4')]", (1 << 23,), r"'p0' in .* is \[\('a', '<f4'\), \('b', '<f4'\)\], but f32\[3\]"),
    ],
)
def test_64_mb_of_the_wrong_kind_are_not_unpacked(
    descr: str, shape: tuple[int, ...], message: str, tmp_path: Path, unpacked: list[int]
) -> None:
    path = archive(tmp_path / "in.npz", {"p0": [header(descr, shape), *[ZEROS] * 64]})
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    with pytest.raises(DataError, match=message):
        load_arrays(path, "p", [THREE])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(unpacked) < 200  # the header
    assert peak < 1 << 19


def test_all_headers_are_compared_before_any_data_is_read(tmp_path: Path, unpacked: list[int]) -> None:
    good, bad = [header("'<f4'", (1 << 18,)), ZEROS], [header("'<f4'", (4,)), bytes(16)]
    path = archive(tmp_path / "in.npz", {"p0": good, "p1": bad})
    with pytest.raises(DataError, match=r"'p1' in .* has shape \[4\], but f32\[3\] is expected"):
        load_arrays(path, "p", [ArraySpec("f32", (1 << 18,), (0,)), THREE])
    assert sum(unpacked) < 400


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("count", [10**12, 10**30])
def test_a_header_of_very_many_elements(version: int, count: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "in.npz", {"p0": [header("'<f4'", (count,), version), bytes(12)]})
    with pytest.raises(DataError, match=rf"'p0' in .* has shape \[{count}\], but f32\[3\] is expected"):
        load_arrays(path, "p", [THREE])


def test_more_elements_than_memory_holds(tmp_path: Path) -> None:
    """The parameter is as large as the header says: the sizes disagree, and nothing of that size is allocated."""
    path = archive(tmp_path / "in.npz", {"p0": [header("'<f4'", (10**15,)), bytes(12)]})
    with pytest.raises(DataError, match=r"header of 'p0' says .* 4000000000000000 bytes, but there are 12"):
        load_arrays(path, "p", [ArraySpec("f32", (10**15,), (0,))])


@pytest.mark.parametrize("size", [0, 11, 13, 4096])
def test_the_data_is_as_long_as_the_header_says(size: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "in.npz", {"p0": [header("'<f4'", (3,)), bytes(size)]})
    with pytest.raises(DataError, match=rf"header of 'p0' says float32\[3\], 12 bytes, but there are {size}$"):
        load_arrays(path, "p", [THREE])


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_directory_that_lies_about_the_size(compression: int, tmp_path: Path) -> None:
    """Header, parameter and the archive's directory agree on 4 MB, but 12 bytes are there."""
    said = 1 << 20
    begin = header("'<f4'", (said,))
    path = archive(tmp_path / "in.npz", {"p0": [begin, bytes(12)]}, compression)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    assert struct.unpack_from("<I", data, entry + 24) == (len(begin) + 12,)
    struct.pack_into("<I", data, entry + 24, len(begin) + 4 * said)
    path.write_bytes(data)
    with pytest.raises(DataError, match="the data of 'p0' cannot be read"):
        load_arrays(path, "p", [ArraySpec("f32", (said,), (0,))])


def test_damaged_data_is_found_by_its_checksum(tmp_path: Path) -> None:
    members = {"p0": [header("'<f4'", (5003,)), bytes(20000), b"abcdefghijkl"]}
    path = archive(tmp_path / "in.npz", members, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"abcdefghijkl", b"abcdefghijkL"))
    with pytest.raises(DataError, match=r"the data of 'p0' cannot be read .*CRC"):
        load_arrays(path, "p", [ArraySpec("f32", (5003,), (0,))])


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (b"", "it is cut short"),
        (header("'<f4'", (3,))[:40], "it is cut short"),
        (b"not an array" * 4, "it does not begin as an array does"),
        (header("'<f4'", (3,), version=4), "version 4.0 is not known"),
        (b"\x93NUMPY\x03\x00" + struct.pack("<I", 1 << 26), "it is 67108864 bytes long, the longest allowed is 10000"),
        (header("'<f4'", (-3, -1)), r"its shape is \[-3, -1\]"),
        (header("'no type'", (3,)), "descr"),
        (b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000, "."),
        (b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"-" * 9000, "."),
        (b"\x93NUMPY\x01\x00" + struct.pack("<H", 9) + b"{[1]: 2} ", "."),
    ],
)
def test_headers_that_cannot_be_read(begin: bytes, reason: str, tmp_path: Path, unpacked: list[int]) -> None:
    """A header that says it is 64 MB long is not unpacked to find that out."""
    members = [begin, *([ZEROS] * 64 if b"\x00\x00\x00\x04" in begin else [])]
    path = archive(tmp_path / "in.npz", {"p0": members})
    with pytest.raises(DataError, match=rf"the header of 'p0' cannot be read \(.*{reason}"):
        load_arrays(path, "p", [THREE])
    assert sum(unpacked) < 10_000


def test_the_name_of_a_type_is_short(tmp_path: Path, unpacked: list[int]) -> None:
    members = {"p0": [header("'<u2'", (3,)), bytes(6)], "p0.dtype": [header("'<U16777216'", ()), *[ZEROS] * 64]}
    path = archive(tmp_path / "in.npz", members)
    with pytest.raises(DataError, match=r"'p0\.dtype' in .* is <U16777216\[\], but the name of a type is expected"):
        load_arrays(path, "p", [ArraySpec("bf16", (3,), (0,))])
    assert sum(unpacked) < 400


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_version_and_order_is_read(
    version: tuple[int, int], order: str, compression: int, tmp_path: Path
) -> None:
    """As NumPy writes them."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    if order == "F":
        array = np.asfortranarray(array)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    path = archive(tmp_path / "in.npz", {"p0": [stream.getvalue()]}, compression)
    (found,) = load_arrays(path, "p", [ArraySpec("f32", (2, 3, 4), (2, 1, 0))])
    assert np.array_equal(found, np.arange(24).reshape(2, 3, 4))
    assert found.flags.f_contiguous == (order == "F")


def test_data_is_read_piece_by_piece(tmp_path: Path, unpacked: list[int]) -> None:
    count = 3 * npz.CHUNK // 4 + 5
    path = archive(
        tmp_path / "in.npz", {"p0": [header("'<f4'", (count,)), *[b"\x00\x00\x80\x3f" * 1024] * (count // 1024)]}
    )
    with pytest.raises(DataError, match="bytes, but there are"):
        load_arrays(path, "p", [ArraySpec("f32", (count,), (0,))])
    ones = np.ones(count, "<f4").tobytes()
    path = archive(tmp_path / "in.npz", {"p0": [header("'<f4'", (count,)), ones]})
    (found,) = load_arrays(path, "p", [ArraySpec("f32", (count,), (0,))])
    assert np.array_equal(found, np.ones(count))
    assert max(unpacked) == npz.CHUNK
