"""Arguments in HLO snapshots: literals that XLA itself wrote, of every element type."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from xla_emitters.binary.literals import arguments_of
from xla_emitters.binary.reading import read_binary
from xla_emitters.dtypes import dtype
from xla_emitters.errors import ParseError
from xla_emitters.texts.wire import message, messages
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
    found = arguments_of([[literal_of(text) for text in CONSTANTS]], "x")
    for number, (text, right) in enumerate(CONSTANTS.items()):
        element, array = found[f"p{number}"]
        assert element == text.partition("[")[0]
        assert array.dtype == dtype(element).numpy
        np.testing.assert_array_equal(array.astype(np.asarray(right).dtype), np.asarray(right), text)


def test_the_parts_of_a_tuple_have_numbers() -> None:
    shape = b"\x10\x0d"  # element_type: TUPLE
    one, two = literal_of("s32[1] constant({7})"), literal_of("s32[1] constant({8})")
    pair = field(1, shape) + field(10, one) + field(10, two)
    found = arguments_of([[pair, one]], "x")
    assert [found[f"p{number}"][1].item() for number in range(3)] == [7, 8, 7]


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
            arguments_of([[good, bad]], "x")


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
    assert inputs is not None
    assert sorted(inputs) == ["p0@0", "p0@1", "p1@0", "p1@1"]
    np.testing.assert_array_equal(inputs["p1@1"][1], [5, 7, 9])


def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.hlo_snapshot"
    path.write_bytes(snapshot([ARGUMENTS[0]]))
    assert main(["run", str(path), "--platform", "cpu"]) == 1
    assert "p1" in capsys.readouterr().err
