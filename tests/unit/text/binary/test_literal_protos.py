"""Arguments in HLO snapshots: literals that XLA itself wrote, of every element type."""

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from xla_emitters.dtypes import dtype
from xla_emitters.errors import ParseError
from xla_emitters.support.decoding import BinaryKind, SavedModule, kind_of, saved_module
from xla_emitters.support.wire import message, messages
from xla_emitters.text.binary.literal_protos import arguments_of
from xla_emitters.text.binary.reading import read_binary
from xla_emitters.tools.main import main

hlo = pytest.importorskip("jaxlib._hlo", reason="the extra [xla] is not installed")

CONSTANTS = {
    "pred[3] constant({1,0,1})": [True, False, True],
    "s2[3] constant({1,-2,0})": [1, -2, 0],
    "s4[3] constant({1,-8,7})": [1, -8, 7],
    "u4[3] constant({1,2,15})": [1, 2, 15],
    "s8[2] constant({-1,2})": [-1, 2],
    "u8[2] constant({255,2})": [255, 2],
    "s16[2] constant({-300,2})": [-300, 2],
    "u16[2] constant({65535,2})": [65535, 2],
    "s32[2] constant({-1,2147483647})": [-1, 2147483647],
    "u32[2] constant({4294967295,0})": [4294967295, 0],
    "s64[2] constant({-9223372036854775808,2})": [-(2**63), 2],
    "u64[1] constant({18446744073709551615})": [2**64 - 1],
    "f16[2] constant({1.5,-2})": [1.5, -2],
    "bf16[2] constant({1.5,-2})": [1.5, -2],
    "f8e4m3fn[2] constant({1.5,-2})": [1.5, -2],
    "f8e5m2[2] constant({1.5,-2})": [1.5, -2],
    "f8e8m0fnu[2] constant({1,2})": [1, 2],
    "f4e2m1fn[3] constant({1,2,-3})": [1, 2, -3],
    "f32[] constant(2.5)": 2.5,
    "f64[2] constant({1e300,-0.5})": [1e300, -0.5],
    "c64[1] constant({(1,2)})": [1 + 2j],
    "c128[1] constant({(1,-2)})": [1 - 2j],
    "f32[0] constant({})": [],
    "f32[2,3]{0,1} constant({{1,2,3},{4,5,6}})": [[1, 2, 3], [4, 5, 6]],
    "s32[2,1,3]{1,0,2} constant({{{1,2,3}},{{4,5,6}}})": [[[1, 2, 3]], [[4, 5, 6]]],
}


def literal_of(constant: str) -> bytes:
    """XLA's LiteralProto of a constant: field 8 of its HloInstructionProto."""
    module = hlo.hlo_module_from_text(
        f"HloModule m\nENTRY e {{ ROOT c = {constant} }}"
    ).as_serialized_hlo_module_proto()
    (computation,) = messages(message(module)[3])
    (instruction,) = messages(message(computation)[2])
    return messages(message(instruction)[8])[0]


def field(number: int, data: bytes) -> bytes:
    size, length = len(data), b""
    while size >= 128:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def test_literals_of_all_types_and_layouts() -> None:
    found = arguments_of(SavedModule(b"", [[literal_of(text) for text in CONSTANTS]]), "x")
    for number, (text, right) in enumerate(CONSTANTS.items()):
        element, array = found[f"p{number}"]
        assert element == text.partition("[")[0]
        assert array.dtype == dtype(element).numpy
        np.testing.assert_array_equal(array.astype(np.asarray(right).dtype), np.asarray(right), text)


DUMPED = """
import sys
import jax, ml_dtypes, numpy as np
draw = np.random.default_rng(0)
types = [np.int8, np.int16, np.uint32, np.uint64, np.float16, np.float64, np.complex64, np.complex128]
types += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn, bool]
types += [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4]
arrays = [np.asarray(draw.integers(-2, 4, (3, 5))).astype(kind) for kind in types] + [np.float32(2.5), np.zeros((0, 3), np.float32)]
jax.config.update("jax_enable_x64", True)
jax.jit(lambda *arrays: [array.T for array in arrays])(*arrays)
np.savez(sys.argv[1], *[array.astype(np.complex128) for array in arrays])
"""


@pytest.mark.parametrize("flag", ["", "--xla_dump_hlo_as_proto"], ids=["message", "delimited"])
def test_the_arguments_that_jax_gave(flag: str, tmp_path: Path) -> None:
    """Both forms in which XLA writes snapshots: with literals in the message, and with their bytes behind it."""
    pytest.importorskip("jax", reason="JAX is not installed")
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_unoptimized_snapshots {flag}"
    given = tmp_path / "given.npz"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", DUMPED, str(given)], env=environment, check=True, capture_output=True)
    (path,) = tmp_path.glob("*_lambda*.hlo_unoptimized_snapshot.pb")
    data = path.read_bytes()
    assert kind_of(data) is BinaryKind.SNAPSHOT
    saved = saved_module(data)
    assert saved.serialized == bool(flag)
    found = arguments_of(saved, "x")
    right = np.load(given)
    for number in range(len(right.files)):
        _, array = found[f"p{number}"]
        np.testing.assert_array_equal(array.astype(np.complex128), right[f"arr_{number}"], str(array.dtype))
    for size in range(0, len(data), 7):
        # A cut file is refused as a whole, never read in part.
        assert kind_of(data[:size]) in (None, BinaryKind.MODULE)


def test_the_parts_of_a_tuple_have_numbers() -> None:
    shape = b"\x10\x0d"  # element_type: TUPLE
    one, two = literal_of("s32[1] constant({7})"), literal_of("s32[1] constant({8})")
    pair = field(1, shape) + field(10, one) + field(10, two)
    found = arguments_of(SavedModule(b"", [[pair, one]]), "x")
    assert [found[f"p{number}"][1].item() for number in range(3)] == [7, 8, 7]
    part = b"\x10\x04\x1a\x01\x01"  # element_type: S32, dimensions: 1
    both = shape + field(4, part) + field(4, part)
    data = len(both).to_bytes(8, "little") + both + b"\x07\0\0\0\xfe\xff\xff\xff"
    found = arguments_of(SavedModule(b"", [[data]], True), "x")
    assert [found[f"p{number}"][1].item() for number in range(2)] == [7, -2]
    for bad in (data[:-1], data + b"\0", data[:9], b"", b"\xff" * 8 + data[8:], data.replace(b"\x10\x0d", b"\x10\x63")):
        with pytest.raises(ParseError, match="argument 0 of the snapshot x is damaged"):
            arguments_of(SavedModule(b"", [[bad]], True), "x")


def test_a_damaged_literal_is_named() -> None:
    good = literal_of("f32[3] constant({1,2,3})")
    for bad in (
        good[:-3],
        good.replace(b"\x1a\x01\x03", b"\x1a\x01\x04"),
        b"",
        b"\x0a\x02\x10\x63",
        b"\x0a\x02\x10\x0e",
    ):
        with pytest.raises(ParseError, match="argument 1 of the snapshot x is damaged"):
            arguments_of(SavedModule(b"", [[good, bad]]), "x")


def snapshot(*devices: list[bytes], unoptimized: bool = False) -> bytes:
    """An HloSnapshot of a module that subtracts its arguments; or an HloUnoptimizedSnapshot."""
    module = "HloModule m\nENTRY e {\n  a = f32[3] parameter(0)\n  b = f32[3] parameter(1)\n  ROOT s = f32[3] subtract(a, b)\n}\n"
    data = hlo.hlo_module_from_text(module).as_serialized_hlo_module_proto()
    if unoptimized:
        return field(1, data) + b"".join(
            field(2, b"".join(field(1, each) for each in arguments)) for arguments in devices
        )
    return field(1, field(1, data)) + b"".join(field(2, each) for each in chain(*devices)) + field(4, b"CUDA")


ARGUMENTS = [literal_of("f32[3] constant({5,7,9})"), literal_of("f32[3] constant({1,2,3})")]


@pytest.mark.parametrize("unoptimized", [False, True])
def test_run_and_check_take_a_snapshots_arguments(
    unoptimized: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "module_0001.m.0.hlo_snapshot", tmp_path / "out.npz"
    path.write_bytes(snapshot(ARGUMENTS, unoptimized=unoptimized))
    assert main(["run", str(path), "--outputs", str(out), "--platform", "cpu"]) == 0
    np.testing.assert_array_equal(np.load(out)["r0"], [4, 5, 6])
    assert main(["check", str(path), "--stages", "hlo,scf"]) == 0
    assert "3 of 3 elements" in capsys.readouterr().out
    given = tmp_path / "in.npz"
    np.savez(given, p0=np.zeros(3, np.float32), p1=np.ones(3, np.float32))
    assert main(["run", str(path), "--inputs", str(given), "--outputs", str(out), "--platform", "cpu"]) == 0
    np.testing.assert_array_equal(np.load(out)["r0"], [-1, -1, -1])


def test_arguments_of_several_devices() -> None:
    inputs = read_binary(snapshot(ARGUMENTS, ARGUMENTS[::-1], unoptimized=True), "x").inputs
    assert sorted(inputs) == ["p0@0", "p0@1", "p1@0", "p1@1"]
    np.testing.assert_array_equal(inputs["p1@1"][1], [5, 7, 9])


def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.hlo_snapshot"
    path.write_bytes(snapshot([ARGUMENTS[0]]))
    assert main(["run", str(path), "--platform", "cpu"]) == 1
    assert "p1" in capsys.readouterr().err
