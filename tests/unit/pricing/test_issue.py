"""Classes of instructions, operations and pipes; the figures are the programming guide's table, worked out by hand."""

import pytest

from xla_emitters.device import device
from xla_emitters.pricing.issue import CLASSES, by_class, issue_cycles, operations


@pytest.mark.tiny
def test_no_opcode_is_in_two_classes() -> None:
    opcodes = [opcode for row in CLASSES for opcode in row.opcodes.split()]
    assert len(opcodes) == len(set(opcodes))


def test_instructions_by_class() -> None:
    counts = {
        "LDG.E.128.CONSTANT": 1,
        "FADD": 4,
        "FSETP.GE.AND": 2,
        "IMAD.WIDE.U32": 3,
        "ULDC.64": 2,
        "SHFL.DOWN": 5,
        "EXIT": 1,
    }
    found = by_class(counts)
    assert found == {"f32": 6, "integer": 3, "global": 1, "exchange": 5, "control": 1, "other": 2}
    assert list(found) == ["f32", "integer", "global", "exchange", "control", "other"]


def test_a_fused_operation_is_two_and_a_packed_one_twice_as_many() -> None:
    assert (
        operations(
            {"FADD": 1, "FFMA": 1, "DFMA": 1, "HADD2.BF16_V2": 1, "HFMA2.MMA.BF16_V2": 1, "MUFU.EX2": 1, "IADD3": 9}
        )
        == 12
    )


@pytest.mark.parametrize(
    ("chip", "f32", "f64"),
    # Lanes a clock: f32 64, 64, 128, 128; f64 2, 32, 2, 64. A warp has 32.
    [("t4", 0.5, 16.0), ("a100", 0.5, 1.0), ("a6000", 0.25, 16.0), ("h200", 0.25, 0.5)],
)
def test_cycles_of_a_warp(chip: str, f32: float, f64: float) -> None:
    unit = device(chip).multiprocessor
    assert issue_cycles({"FFMA": 1}, unit) == {"schedulers": 0.25, "fp32": f32}
    assert issue_cycles({"DADD": 1}, unit)["fp64"] == f64
    assert issue_cycles({"MUFU.RCP": 3, "I2F.S32": 1}, unit)["special"] == 8.0


def test_multiplications_of_integers_do_not_wait_for_additions() -> None:
    """64 lanes add, 64 others multiply: threefry's rounds, half of whose additions ptxas writes as IMAD.IADD, take 1.7 times less."""
    unit = device("h200").multiprocessor
    assert issue_cycles({"IADD3": 4, "IMAD.IADD": 4}, unit) == {"schedulers": 2, "alu": 2, "heavy": 2, "fp32": 1}
    assert issue_cycles({"FFMA": 4, "IMAD": 4}, unit)["fp32"] == 2
