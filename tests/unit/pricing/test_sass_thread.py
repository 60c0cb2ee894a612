"""The integer part of machine code, run for one thread: trip counts that arguments decide, against counts by hand and by Python."""

import pytest
from long_lists import but_long
from tools_here import SASS, here, needs
from unit.pricing.sass_listing import listing

import xla_emitters as xe
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pricing import sass_thread
from xla_emitters.pricing.price import machine_code_of
from xla_emitters.pricing.sass import executed
from xla_emitters.pricing.sass_thread import PARAMETERS, run_threads
from xla_emitters.program import LaunchDimensions

ONE = LaunchDimensions((1, 1, 1), (32, 1, 1))
DIVISION = """
    I2F.U32.RP R4, R6
    ISETP.NE.U32.AND P2, PT, R6, RZ, PT
    MUFU.RCP R4, R4
    IADD3 R2, R4, 0xffffffe, RZ
    F2I.FTZ.U32.TRUNC.NTZ R3, R2
    HFMA2.MMA R2, -RZ, RZ, 0, 0
    IADD3 R5, RZ, -R3, RZ
    IMAD R5, R5, R6, RZ
    IMAD.HI.U32 R0, R3, R5, R2
    IMAD.HI.U32 R0, R0, R7, RZ
    IADD3 R3, -R0, RZ, RZ
    IMAD R3, R6, R3, R7
    ISETP.GE.U32.AND P0, PT, R3, R6, PT
    @P0 IADD3 R3, R3, -R6, RZ
    @P0 IADD3 R0, R0, 0x1, RZ
    ISETP.GE.U32.AND P1, PT, R3, R6, PT
    @P1 IADD3 R0, R0, 0x1, RZ
    @!P2 LOP3.LUT R0, RZ, R6, RZ, 0x33, !PT
"""
"""R0 = R7 / R6, as ptxas writes it; 18 instructions."""
COUNTS_TO_R0 = """
    MOV R8, 0x0
    .L_x_0:
    VIADD R8, R8, 0x1
    ISETP.LT.U32.AND P3, PT, R8, R0, PT
    @P3 BRA `(.L_x_0)
    EXIT
"""
"""Two instructions, and three for each number from 1 to R0."""


def steps(text: str, *values: object, launch: LaunchDimensions = ONE, widths: tuple[int, ...] = ()) -> int:
    sass = listing(text)
    return run_threads(sass, "sm_90", launch, values, widths or (4,) * len(values)).executed.instructions


@pytest.mark.parametrize("trips", [1, 7, 1000])
def test_a_loop_to_an_argument(trips: int) -> None:
    assert steps("LDC R0, c[0x0][0x218]" + COUNTS_TO_R0, object(), trips, widths=(8, 4)) == 1 + 2 + 3 * trips


@pytest.mark.parametrize(("a", "b"), [(4096, 32), (1000, 7), (77, 78), (2**31 - 1, 2**20 + 3), (65535, 255)])
def test_the_division_of_two_arguments(a: int, b: int) -> None:
    code = "LDC R7, c[0x0][0x210]\nLDC R6, c[0x0][0x214]" + DIVISION + COUNTS_TO_R0
    assert steps(code, a, b) == 20 + 2 + 3 * max(1, a // b)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("MOV R1, 0x5\nLEA R0, R1, 0x3, 0x2", 23),
        ("MOV R1, 0xc\nSHF.R.U32.HI R0, RZ, 0x2, R1", 3),
        ("MOV R1, 0x3\nSHF.L.U32 R0, R1, 0x4, RZ", 48),
        ("MOV R1, 0x2f\nLOP3.LUT R0, R1, 0xfffffffc, RZ, 0xc0, !PT", 44),
        ("MOV R1, 0x17\nMOV R2, 0x1\nPRMT R0, R1, 0x6540, R2", 0x117),
        ("MOV R1, 0x1234\nPRMT R0, R1, 0x7771, RZ", 0x12),
        ("MOV R1, 0x9\nVIADDMNMX R0, R1, 0xfffffffc, RZ, !PT", 5),
        ("MOV R1, 0x9\nVIMNMX R0, R1, 0x4, PT", 4),
        ("MOV R1, 0x9\nISETP.GT.AND P1, PT, R1, 0x4, PT\nSEL R0, R1, 0x2, P1", 9),
        ("MOV R1, 0x3\nIMAD.SHL.U32 R0, R1, 0x8, RZ", 24),
        ("UMOV UR4, 0x7\nR2UR UR5, R1\nIADD3 R0, UR4, 0x1, RZ", 8),
        # What lanes exchange is unknown, and a predicate is as it was after a branch that was not taken.
        ("MOV R0, 0x5\nSHFL.IDX PT, R0, R1, RZ, 0x1f", 1),
        (
            "UISETP.NE.AND UP0, UPT, URZ, 0x0, UPT\nBRA.U UP0, `(.L_x_0)\nUSEL UR4, URZ, 0x7, UP0\nIADD3 R0, UR4, RZ, RZ",
            7,
        ),
        ("MOV R1, 0x1b\nPLOP3.LUT P1, PT, PT, PT, PT, 0x80, 0x0\n@P1 IADD3 R0, R1, -0x7, RZ", 20),
    ],
)
def test_integer_instructions(code: str, wanted: int) -> None:
    assert steps(code + COUNTS_TO_R0) == len(code.splitlines()) + 2 + 3 * wanted


def test_a_branch_on_data_is_not_taken_and_a_subroutine_returns() -> None:
    code = """
        LDG.E R1, desc[UR4][R2.64]
        FSETP.GT.AND P0, PT, R1, 1, PT
        @P0 BRA `(.L_x_1)
        IADD3 R5, R5, 0x1, RZ
        .L_x_1:
        EXIT
    """
    assert steps(code) == 5


def test_each_warp_counts_and_the_block_in_the_middle() -> None:
    """Of two warps the second skips two instructions, in block 1 of 3."""
    code = """
        S2R R1, SR_TID.X
        S2R R2, SR_CTAID.X
        ISETP.NE.AND P0, PT, R2, 0x1, PT
        @P0 EXIT
        ISETP.GE.U32.AND P1, PT, R1, 0x20, PT
        @P1 EXIT
        MOV R3, 0x1
        MOV R4, 0x1
        EXIT
    """
    run = run_threads(listing(code), "sm_90", LaunchDimensions((3, 1, 1), (64, 1, 1)), (), ())
    assert run.warp_instructions == 9 + 6


def test_an_endless_loop_and_an_unknown_architecture_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass_thread, "MOST_STEPS", 1 << 12)
    with pytest.raises(Unsupported, match="does not end"):
        steps(".L_x_0:\nIADD3 R1, R1, 0x1, RZ\nBRA `(.L_x_0)\nEXIT")
    with pytest.raises(Unsupported, match="sm_60"):
        run_threads(listing("EXIT"), "sm_60", ONE, (), ())


@needs(*SASS)
@pytest.mark.parametrize("architecture", but_long(["sm_80", "sm_90", "sm_100"], ["sm_90"]))
def test_of_a_kernel_whose_sizes_are_known_both_counts_agree(architecture: str) -> None:
    """But for both sides of a branch, of which a thread takes one: the start of each row writes its sum."""
    text = """HloModule m
    add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }
    ENTRY e { x = f32[64,4096] parameter(0)
      z = f32[] constant(0)
      ROOT y = f32[64] reduce(x, z), dimensions={1}, to_apply=add }"""
    program = xe.compile(text, target=architecture)
    (kernel,) = program.kernels
    code = machine_code_of(program.code, architecture, here())
    launch = kernel.launch
    run = run_threads(code.sass[kernel.name], architecture, launch, (object(),) * 2, (8, 8))
    wanted = executed(code.sass[kernel.name])
    assert run.executed.loads == wanted.loads
    assert 0.9 * wanted.instructions <= run.executed.instructions <= wanted.instructions
    assert architecture in PARAMETERS
    assert assemble(program.code, architecture, here()).entries[0].name == kernel.name
