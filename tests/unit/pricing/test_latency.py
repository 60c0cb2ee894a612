"""The time of one warp in a listing, with simple latencies: cycles and loads in flight worked out by hand."""

from unit.pricing.sass_listing import listing

from xla_emitters.pricing.latency import Latencies, walk
from xla_emitters.pricing.sass import parse

LATENCIES = Latencies(memory=500, shared=30, fp64=16, dependent=4)


def walked(text: str) -> tuple[float, int]:
    found = walk(parse(listing(text)), LATENCIES)
    return found.cycles, found.bytes_in_flight


def test_independent_loads_are_under_way_together() -> None:
    """Two loads at cycles 0 and 1, the sum when the second is there at 501, the store 4 later, the end one after it."""
    assert walked("""
        LDG.E R4, desc[UR4][R2.64]
        LDG.E R5, desc[UR4][R2.64+0x4]
        FADD R6, R4, R5
        STG.E desc[UR4][R2.64], R6
        EXIT
    """) == (507, 8)


def test_a_load_that_waits_for_another_is_alone() -> None:
    assert walked("""
        LDG.E R4, desc[UR4][R2.64]
        LDG.E.128 R8, desc[UR4][R4.64]
        STG.E desc[UR4][R2.64], R11
        EXIT
    """) == (1002, 16)


def test_a_chain_waits_and_independent_instructions_do_not() -> None:
    assert walked("FADD R1, R0, R0\nFADD R2, R1, R1\nFADD R3, R2, R2\nEXIT")[0] == 10
    assert walked("FADD R1, R0, R0\nFADD R2, R0, R0\nFADD R3, R0, R0\nEXIT")[0] == 4


def test_predicates_and_second_results_are_waited_for() -> None:
    assert walked("ISETP.GE.AND P0, PT, R4, R5, PT\n@P0 FADD R1, R0, R0\nEXIT")[0] == 6
    assert walked("SHFL.DOWN PT, R5, R4, 0x10, 0x1f\nFADD R6, R5, R5\nEXIT")[0] == 26
    assert walked("IADD3 R4, P0, R2, R3, RZ\nIADD3.X R5, R6, R7, RZ, P0, !PT\nEXIT")[0] == 6


def test_each_trip_of_a_loop_takes_its_time() -> None:
    """Ten trips of a load and an addition to its value: about 504 cycles each."""
    cycles, in_flight = walked("""
        MOV R9, RZ
        .L_x_1:
        LDG.E R4, desc[UR4][R2.64]
        FADD R6, R4, R6
        VIADD R9, R9, 0x1
        ISETP.NE.AND P0, PT, R9, 0xa, PT
        @P0 BRA `(.L_x_1)
        STG.E desc[UR4][R2.64], R6
        EXIT
    """)
    assert 10 * 500 < cycles < 10 * 515
    assert in_flight == 4
