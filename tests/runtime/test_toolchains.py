"""PTX by mlir-opt and by llvmlite is the same text; `make toolchains` compares the whole corpus."""

import pytest
from long_lists import but_long
from runtime.corpus import CORPUS, files
from runtime.toolchains import VERDICTS, compare, instructions, ptx_by
from tools_here import needs

from xla_emitters.lowering.toolchain.tools import PtxWay

SAMPLE = (
    ("concatenate/", "sm_75"),
    ("dynamic_update_slice/", "sm_90"),
    ("loop/act_gelu_f32", "sm_75"),
    ("loop/act_gelu_bfloat16", "sm_100"),
    ("loop/unary_sin_complex128", "sm_90"),
    ("loop/cumsum_int32", "sm_90"),
    # Branches within branches: the order in which blocks are entered.
    ("loop/concat_8", "sm_90"),
    ("reduction/", "sm_80"),
    ("reduction/red_col", "sm_90"),
    ("scatter/", "sm_90"),
    ("scatter/scatter_min", "sm_75"),
    # Loops that LLVM is asked to unroll; a part of one.
    ("transpose/tr_2d_bfloat16", "sm_90"),
    ("transpose/block_grad_bfloat16", "sm_90"),
    ("transpose/tr_2d_int4", "sm_90"),
    ("transpose/tr_multi_out", "sm_100"),
)


@needs("mlir-opt", "llvmlite", "libdevice")
@pytest.mark.parametrize(("beginning", "target"), but_long(SAMPLE, SAMPLE[1::2]))
def test_the_ways_give_the_same_text(beginning: str, target: str) -> None:
    name = next(iter(files(beginning)))
    mlir, llvm = ptx_by(CORPUS / name, PtxWay.MLIR_OPT, PtxWay.LLVMLITE, target=target)
    assert f".target {target}" in llvm
    assert compare(mlir, llvm) == VERDICTS[0]


TEXT = """
.reg .b32 %r<4>;
	mov.u32 	%r1, %tid.x; // comment
	@%p1 bra 	$L__BB0_2;
$L__BB0_2:
	add.f32 	%f1, %f2, %f3;
	ret;
"""


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (("// comment", ""), 0),
        (("%r1", "%r3"), 1),
        (("L__BB0_2", "L__BB0_9"), 1),
        (("%f2, %f3", "%f3, %f2"), 1),
        (("%f2, %f3", "%f3, %f3"), 2),
        (("add.f32", "sub.f32"), 3),
        (("\tret;", "\tret;\n\tret;"), 3),
    ],
)
def test_what_counts_as_the_same(change: tuple[str, str], verdict: int) -> None:
    assert compare(TEXT, TEXT.replace(*change)) == VERDICTS[verdict]


def test_instructions_are_counted() -> None:
    assert instructions(TEXT) == ["mov.u32", "bra", "add.f32", "ret"]
