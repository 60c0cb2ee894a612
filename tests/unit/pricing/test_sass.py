"""Machine code as a thread executes it: listings in nvdisasm's form, counted by hand; and a kernel that ptxas made."""

from collections import Counter

import pytest
from tools_here import SASS, here, needs
from unit.pricing.sass_listing import listing

from xla_emitters.lowering.toolchain.machine_code import assemble, disassemble
from xla_emitters.pricing.issue import by_class, operations
from xla_emitters.pricing.sass import Executed, executed, kernels_of, parse


def counted(text: str) -> Executed:
    return executed(listing(text))


def test_straight_line_counts_once_without_what_computes_nothing() -> None:
    found = counted("""
        ACQBULK
        LDC R1, c[0x0][0x28]
        @!P0 LDG.E.64.CONSTANT R2, desc[UR4][R2.64]
        LDG.E.U16.CONSTANT R4, desc[UR4][R6.64]
        STG.E.128 desc[UR4][R8.64], R12
        RED.E.ADD.F32.FTZ.RN.STRONG.SYS desc[UR4][R8.64], R12
        STS [R9], R2
        STL.64 [R1], R2
        EXIT
        .L_x_0:
        BRA `(.L_x_0)
        NOP
    """)
    assert found.instructions == 8
    assert (found.loads, found.stores, found.atomics) == (Counter({8: 1, 2: 1}), Counter({16: 1}), Counter({4: 1}))
    assert (found.shared, found.local) == (Counter({4: 1}), Counter({8: 1}))
    assert found.unknown_loops == 0


def test_conversions_and_constants_are_no_operations() -> None:
    """ptxas converts f16 to f32 by adding -0, in either order, and writes constants as 0 * 0 + two halves; the others compute."""
    found = counted("""
        HADD2.F32 R2, -RZ, R2.H0_H0
        HADD2.F32 R3, R3.H1_H1, -RZ.H0_H0
        HFMA2.MMA R4, -RZ, RZ, 1.875, 0
        HFMA2 R5, -RZ, RZ, 0, 9.5367431640625e-07
        HADD2 R6, R2, R3
        HFMA2 R7, R2, R3, -RZ
        EXIT
    """)
    assert by_class(found.opcodes) == {"f16": 2, "convert": 2, "control": 1, "other": 2}
    assert operations(found.opcodes) == 2 + 4


@pytest.mark.parametrize(
    ("start", "step", "compare", "guard", "trips"),
    [
        ("MOV R4, 0x0", "VIADD R4, R4, 0x1", "ISETP.NE.AND P0, PT, R4, 0x10, PT", "@P0", 16),
        ("CS2R R4, SRZ", "IADD3 R4, R4, 0x4, RZ", "ISETP.GE.AND P0, PT, R4, 0x18, PT", "@!P0", 6),
        ("IMAD.MOV.U32 R4, RZ, RZ, -0x8", "IADD3 R4, P5, R4, 0x1, RZ", "ISETP.NE.U32.AND P0, PT, R4, RZ, PT", "@P0", 8),
        # 0x0010 as the low half of two f16, read 16; counting down.
        (
            "HFMA2.MMA R4, -RZ, RZ, 0, 9.5367431640625e-07",
            "VIADD R4, R4, -0x5",
            "ISETP.GT.AND P0, PT, R4, RZ, PT",
            "@P0",
            4,
        ),
        ("UMOV R4, 0x3", "UIADD3 R4, R4, 0x1, URZ", "ISETP.LT.U32.AND P0, PT, R4, 0x8, PT", "@P0", 5),
        # Where a bound, or the start, is not a constant, the loop counts once.
        ("LDG.E R4, desc[UR4][R2.64]", "VIADD R4, R4, 0x1", "ISETP.NE.AND P0, PT, R4, 0x10, PT", "@P0", None),
        ("MOV R4, 0x0", "VIADD R4, R4, 0x1", "ISETP.NE.AND P0, PT, R4, R9, PT", "@P0", None),
        ("MOV R4, 0x0", "IMAD R4, R4, R5, R4", "ISETP.NE.AND P0, PT, R4, 0x10, PT", "@P0", None),
    ],
)
def test_trips_of_a_counted_loop(start: str, step: str, compare: str, guard: str, trips: int | None) -> None:
    found = counted(f"""
        LDC R1, c[0x0][0x28]
        {start}
        .L_x_1:
        LDG.E.CONSTANT R6, desc[UR4][R6.64]
        {step}
        {compare}
        {guard} BRA `(.L_x_1)
        EXIT
    """)
    assert found.loads[4] == (trips or 1) + ("LDG" in start)
    assert found.instructions == 3 + 4 * (trips or 1)
    assert found.unknown_loops == (trips is None)


def test_a_compare_before_the_step_sees_the_value_before_it() -> None:
    found = counted("""
        MOV R4, 0x0
        .L_x_1:
        ISETP.NE.AND P0, PT, R4, 0x10, PT
        VIADD R4, R4, 0x1
        @P0 BRA `(.L_x_1)
        EXIT
    """)
    assert found.instructions == 1 + 3 * 17 + 1


@pytest.mark.parametrize(
    ("before", "after", "guard", "trips"),
    [
        ("UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x80, 0x0", "UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x40, 0x0", "@P0", 2),
        ("UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x40, 0x0", "UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x80, 0x0", "@!P0", 2),
        # Never left, and no constant before.
        ("UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x80, 0x0", "UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x80, 0x0", "@P0", None),
        ("UISETP.NE.AND UP0, UPT, UR4, 0x0, UPT", "UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x40, 0x0", "@P0", None),
    ],
)
def test_trips_that_a_predicate_tells(before: str, after: str, guard: str, trips: int | None) -> None:
    found = counted(f"""
        {before}
        .L_x_1:
        PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0
        {after}
        {guard} BRA `(.L_x_1)
        EXIT
    """)
    assert found.instructions == 2 + 3 * (trips or 1)
    assert found.unknown_loops == (trips is None)


def test_a_compare_is_found_behind_copies_of_its_predicate() -> None:
    found = counted("""
        UMOV UR4, 0x0
        .L_x_1:
        UIADD3 UR4, UR4, 0x4, URZ
        UISETP.GE.U32.AND UP3, UPT, UR4, 0x3c, UPT
        PLOP3.LUT P0, PT, PT, PT, UP3, 0x80, 0x0
        @!P0 BRA `(.L_x_1)
        EXIT
    """)
    assert found.instructions == 1 + 4 * 15 + 1


def test_loops_in_loops_multiply_and_both_ways_of_a_branch_count() -> None:
    found = counted("""
        MOV R4, 0x0
        .L_x_1:
        MOV R5, 0x0
        .L_x_2:
        @P1 BRA `(.L_x_3)
        FADD R6, R6, R7
        .L_x_3:
        VIADD R5, R5, 0x1
        ISETP.NE.AND P0, PT, R5, 0x3, PT
        @P0 BRA `(.L_x_2)
        VIADD R4, R4, 0x1
        ISETP.NE.AND P0, PT, R4, 0x4, PT
        @P0 BRA `(.L_x_1)
        EXIT
    """)
    assert found.instructions == 1 + 4 * (1 + 3 * 5 + 3) + 1


def test_a_branch_back_to_what_does_not_lead_to_it_is_no_loop() -> None:
    """ptxas puts seldom taken code behind the end, from where it jumps back."""
    found = counted("""
        @P0 BRA `(.L_x_9)
        FADD R6, R6, R7
        .L_x_1:
        FADD R6, R6, R7
        EXIT
        .L_x_9:
        FMUL R6, R6, R7
        BRA `(.L_x_1)
    """)
    assert (found.instructions, found.unknown_loops) == (6, 0)


def test_a_subroutine_counts_once_a_call() -> None:
    text = listing("""
        CALL.REL.NOINC `($fusion$slow)
        FADD R6, R6, R7
        CALL.REL.NOINC `($fusion$slow)
        EXIT
        $fusion$slow:
        FMUL R6, R6, R7
        RET.REL.NODEC R8 `(fusion)
    """)
    assert [function.name for function in parse(text)] == [".text.fusion", "$fusion$slow"]
    assert executed(text).instructions == 4 + 2 * 2


LOOP = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry f(.param .u64 p)
{
  .reg .pred %q; .reg .b32 %i; .reg .f32 %x, %s; .reg .b64 %a;
  ld.param.u64 %a, [p];
  cvta.to.global.u64 %a, %a;
  mov.u32 %i, 0;
  mov.f32 %s, 0f00000000;
  $L:
  .pragma "nounroll";
  ld.global.volatile.f32 %x, [%a];
  add.f32 %s, %s, %x;
  add.s32 %i, %i, 1;
  setp.ne.s32 %q, %i, 1000;
  @%q bra $L;
  st.global.f32 [%a], %s;
  ret;
}
"""


@needs(*SASS)
def test_a_loop_that_ptxas_made() -> None:
    """A thousand loads, however ptxas lays out the loop."""
    found = executed(disassemble(assemble(LOOP, "sm_90", here()).cubin, here()))
    assert (found.loads, found.stores, found.unknown_loops) == (Counter({4: 1000}), Counter({4: 1}), 0)


def test_a_loop_that_is_left_by_a_call() -> None:
    """ptxas's form for sm_80: the call's target is a label of the same function, so that it is the branch out of the loop."""
    text = listing("""
        MOV R4, RZ
        .L_x_10:
        LDG.E.CONSTANT R6, desc[UR4][R6.64]
        IADD3 R4, R4, 0x1, RZ
        ISETP.NE.AND P0, PT, R4, 0x8, PT
        @!P0 CALL.REL.NOINC `(.L_x_9)
        BRA `(.L_x_10)
        .L_x_9:
        EXIT
    """)
    found = executed(text)
    assert found == executed(text.replace("CALL.REL.NOINC", "BRA"))
    assert found.loads[4] > 1


def test_a_loop_whose_condition_is_a_uniform_predicate() -> None:
    """sm_100's form: the predicate is the branch's operand. UP0 is true before the loop and false after a trip: two trips."""
    found = counted("""
        UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x80, 0x8
        .L_x_0:
        LDG.E R4, desc[UR4][R2.64]
        UPLOP3.LUT UP1, UPT, UPT, UPT, UP0, 0x80, 0x8
        UPLOP3.LUT UP0, UPT, UPT, UPT, UPT, 0x40, 0x4
        BRA.U UP1, `(.L_x_0)
        EXIT
    """)
    assert (found.loads, found.unknown_loops) == (Counter({4: 2}), 0)


def test_each_kernel_of_a_text_has_its_subroutines() -> None:
    parts = [
        f'\t.section\t.text.{name},"ax",@progbits\n{listing(text, name)}'
        for name, text in (("a", "EXIT"), ("b", "NOP"))
    ]
    found = kernels_of("\n".join(parts))
    assert list(found) == ["a", "b"]
    assert [executed(text).instructions for text in found.values()] == [1, 0]
