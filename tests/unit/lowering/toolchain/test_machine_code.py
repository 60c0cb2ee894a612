"""Reading the output of ptxas and nvdisasm: resources of each kernel, and counts of instructions."""

import pytest
from sass_counts import count_instructions
from tools_here import here, needs

from xla_emitters.errors import ToolError
from xla_emitters.lowering.toolchain import machine_code
from xla_emitters.lowering.toolchain.machine_code import assemble


def test_nop_is_not_counted() -> None:
    """Padding is left out; a predicate in front does not hide an instruction."""
    sass = """
\t.section\t.text.f,"ax",@progbits
.text.f:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 EXIT ;
        /*0020*/              @!P1 BRA `(.L_x_0) ;
        /*0030*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0040*/                   NOP ;
        /*0050*/                   NOP;
"""
    assert count_instructions(sass, "f") == 4


def test_resources_are_read() -> None:
    """Spills of both kinds add up, and shared memory is found."""
    said = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 4224 bytes smem
"""
    (found,) = machine_code._resources(said, ["k", "other"])
    assert (found.registers, found.spill_bytes, found.shared_bytes) == (40, 20, 4224)


@needs("ptxas")
def test_ptxas_refuses() -> None:
    with pytest.raises(ToolError, match=r"ptxas failed \(exit 255\).*Missing \.version directive"):
        assemble("nonsense", "sm_90", here())
