"""Calls in LLVM IR: intrinsics, functions, inline assembly; values by hand from LLVM's and PTX's references, or NumPy."""

import numpy as np
import pytest
from unit.text.llvm_ir.one_function import executed

from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.explore.check.any_llvm_ir import LlvmIrKernel
from xla_emitters.explore.check.any_ptx import launch_of

INTEGERS = np.array([0, 1, -5, 2**31 - 1], np.int32)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("i32 @llvm.smax.i32(i32 %a0, i32 -1)", [0, 1, -1, 2**31 - 1]),
        ("i32 @llvm.umin.i32(i32 %a0, i32 7)", [0, 1, 7, 7]),
        ("i32 @llvm.abs.i32(i32 %a0, i1 true)", [0, 1, 5, 2**31 - 1]),
        ("i32 @llvm.ctlz.i32(i32 %a0, i1 false)", [32, 31, 0, 1]),
        ("i32 @llvm.cttz.i32(i32 %a0, i1 false)", [32, 0, 0, 0]),
        ("range(i32 0, 33) i32 @llvm.ctpop.i32(i32 %a0)", [0, 1, 31, 31]),
        ("i32 @llvm.bswap.i32(i32 %a0)", INTEGERS.byteswap().tolist()),
        ("i32 @llvm.fshl.i32(i32 %a0, i32 -1, i32 4)", [15, 31, -65, -1]),
        ("i32 @llvm.sadd.sat.i32(i32 %a0, i32 1)", [1, 2, -4, 2**31 - 1]),
        ("i32 @llvm.nvvm.mulhi.i(i32 %a0, i32 1073741824)", [0, 0, -2, 536870911]),
        ("i32 @llvm.nvvm.prmt(i32 %a0, i32 0, i32 291)", INTEGERS.byteswap().tolist()),  # 0x0123: the other order
    ],
)
def test_intrinsics_of_integers(call: str, wanted: list[int]) -> None:
    assert executed(f"%d = tail call {call} #1", INTEGERS, result=np.int32).tolist() == wanted


FLOATS = np.array([0.25, -2.5, 3.5, -0.0], np.float32)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("@llvm.fabs.f32(float %a0)", [0.25, 2.5, 3.5, 0.0]),
        ("@llvm.fma.f32(float %a0, float 2.0, float 1.0)", [1.5, -4.0, 8.0, 1.0]),
        ("@llvm.roundeven.f32(float %a0)", [0.0, -2.0, 4.0, -0.0]),
        ("@llvm.floor.f32(float %a0)", [0.0, -3.0, 3.0, -0.0]),
        ("@llvm.maximum.f32(float %a0, float 0.0)", [0.25, 0.0, 3.5, 0.0]),
        ("@llvm.copysign.f32(float %a0, float -1.0)", [-0.25, -2.5, -3.5, -0.0]),
        ("@llvm.minnum.f32(float %a0, float 1.0)", [0.25, -2.5, 1.0, -0.0]),
        ("@llvm.nvvm.fabs.f32(float %a0)", [0.25, 2.5, 3.5, 0.0]),
        ("@llvm.nvvm.saturate.f(float %a0)", [0.25, 0.0, 1.0, 0.0]),
        ("@llvm.nvvm.round.f(float %a0)", [0.0, -2.0, 4.0, -0.0]),
        ("@llvm.nvvm.ceil.ftz.f(float %a0)", [1.0, -2.0, 4.0, -0.0]),
        ("@llvm.nvvm.mul.rn.f(float %a0, float 4.0)", [1.0, -10.0, 14.0, -0.0]),
        ("@llvm.nvvm.fmax.nan.f(float %a0, float 0.5)", [0.5, 0.5, 3.5, 0.5]),
        ("@llvm.nvvm.ex2.approx.f(float %a0)", np.exp2(FLOATS.astype(np.float64)).astype(np.float32).tolist()),
        ("@llvm.nvvm.ex2.approx.ftz.f32(float 2.0)", [4.0] * 4),
        ("@llvm.nvvm.sqrt.rn.f(float 16.0)", [4.0] * 4),
        ("@llvm.nvvm.div.full(float 1.0, float 4.0)", [0.25] * 4),
        ("@llvm.nvvm.add.rm.f(float 1.0, float 0x3E00000000000000)", [1.0] * 4),
        ("@llvm.nvvm.add.rp.f(float 1.0, float 0x3E00000000000000)", [1.0 + 2.0**-23] * 4),
        ('asm "mul.rn.f32 $0, $1, $2;", "=f,f,f"(float %a0, float 2.0)', [0.5, -5.0, 7.0, -0.0]),
    ],
)
def test_intrinsics_of_floats(call: str, wanted: list[float]) -> None:
    found = executed(f"%d = tail call float {call}", FLOATS, result=np.float32)
    np.testing.assert_array_equal(found, np.array(wanted, np.float32))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(np.array(wanted)))


@pytest.mark.parametrize(
    ("body", "given", "result", "wanted"),
    [
        ("%d = call i32 @llvm.nvvm.f2i.rn(float %a0)", np.array([2.5, -1.6], np.float32), np.int32, [2, -2]),
        ("%d = call i32 @llvm.nvvm.d2i.rz(double %a0)", np.array([2.5, -1.6]), np.int32, [2, -1]),
        ("%d = call float @llvm.nvvm.ui2f.rz(i32 %a0)", np.array([-1], np.int32), np.float32, [4294967040.0]),
        ("%d = call i32 @llvm.nvvm.d2i.hi(double %a0)", np.array([1.0, -2.0]), np.int32, [0x3FF00000, -(2**30)]),
        ("%d = call i32 @llvm.nvvm.d2i.lo(double %a0)", np.array([1.0 + 2.0**-52]), np.int32, [1]),
        ("%d = call double @llvm.nvvm.lohi.i2d(i32 0, i32 %a0)", np.array([0x40000000], np.int32), np.float64, [2.0]),
        ("%d = call i16 @llvm.nvvm.f2h.rn(float %a0)", np.array([1.0], np.float32), np.uint16, [0x3C00]),
        (
            "%d = call i16 @llvm.nvvm.ff.to.e4m3x2.rn(float %a0, float 1.0)",
            np.array([2.0], np.float32),
            np.uint16,
            [0x4038],
        ),
    ],
)
def test_conversions(body: str, given: np.ndarray, result: type, wanted: list[float]) -> None:
    assert executed(body, given, result=result).tolist() == wanted


def test_inline_assembly_with_a_carry_and_several_results() -> None:
    """The 64 bits of a product and a sum: a0 * 5 + 7 for a0 of 32 bits."""
    code = r"{\0A\09mad.lo.cc.u32   $0, $2, $3, $4;\0A\09madc.hi.u32     $1, $2, $3,  0;\0A\09}"
    body = f"""%pair = tail call {{ i32, i32 }} asm "{code}", "=r,=r,r,r,r"(i32 %a0, i32 5, i32 7)
%low = extractvalue {{ i32, i32 }} %pair, 0
%high = extractvalue {{ i32, i32 }} %pair, 1
%l = zext i32 %low to i64
%h = zext i32 %high to i64
%s = shl i64 %h, 32
%d = or i64 %l, %s"""
    given = np.array([1, 2**32 - 1, 2**31], np.uint32)
    assert executed(body, given, result=np.uint64).tolist() == [int(each) * 5 + 7 for each in given]


def test_inline_assembly_of_several_results_is_executed_once() -> None:
    """An atomic sum beside another result: 4 lanes add 3 to what is at their place."""
    given = np.array([1, 2, 3, 4], np.int32)
    body = """%pair = tail call { i32, i32 } asm sideeffect "atom.global.add.u32 $0, [$2], $3; mov.u32 $1, 7;", "=r,=r,l,n"(ptr %q0, i32 3)
%old = extractvalue { i32, i32 } %pair, 0
%seven = extractvalue { i32, i32 } %pair, 1
%new = load i32, ptr %q0, align 4
%s = mul i32 %seven, %old
%d = add i32 %s, %new"""
    assert executed(body, given, result=np.int32).tolist() == [7 * old + old + 3 for old in (1, 2, 3, 4)]


def test_exchanges_in_a_warp() -> None:
    body = """%pair = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %a0, i32 1, i32 31)
%next = extractvalue { i32, i1 } %pair, 0
%there = extractvalue { i32, i1 } %pair, 1
%any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %there)
%all = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %there)
%least = call i32 @llvm.nvvm.redux.sync.min(i32 %a0, i32 -1)
%few = select i1 %all, i32 1000, i32 %least
%d = select i1 %any, i32 %next, i32 %few
call void @llvm.nvvm.bar.warp.sync(i32 -1)
call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"""
    given = np.arange(32, dtype=np.int32)
    assert executed(body, given, result=np.int32).tolist() == [*range(1, 32), 31]


HELPER = """define internal float @helper(float %x, i1 zeroext %twice) {
  br i1 %twice, label %2, label %1
1:
  ret float %x
2:
  %y = fadd float %x, %x
  ret float %y
}
declare float @elsewhere(float)
"""


def test_functions() -> None:
    body = """%c = fcmp ogt float %a0, 0.0
%d = call float @helper(float noundef %a0, i1 zeroext %c) #3"""
    assert executed(body, FLOATS, result=np.float32, more=HELPER).tolist() == [0.5, -2.5, 7.0, -0.0]


def test_functions_are_called_by_their_address() -> None:
    """Of two functions, as the number is above zero or not: each lane calls its own."""
    more = HELPER + "define internal float @other(float %x, i1 %twice) {\n  ret float 9.0\n}\n"
    body = """%c = fcmp ogt float %a0, 0.0
%f = select i1 %c, ptr @helper, ptr @other
%d = call float %f(float noundef %a0, i1 zeroext %c) #3"""
    assert executed(body, FLOATS, result=np.float32, more=more).tolist() == [0.5, 9.0, 7.0, 9.0]
    with pytest.raises(ExecutionError, match=r"calls address 0x[0-9a-f]+, where no function begins"):
        executed("%d = call float %p0(float %a0)", FLOATS, result=np.float32)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%d = call float @elsewhere(float %a0)", "'elsewhere', which is declared, not defined"),
        ("%d = call float @nowhere(float %a0)", "'nowhere', which is not declared"),
        ("%d = call float @llvm.mystery.f32(float %a0)", "the intrinsic 'llvm.mystery.f32'"),
        ("%d = call float @llvm.nvvm.mystery.f(float %a0)", "mystery"),
        ("%d = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %a0)", "the PTX 'shfl.sync.down.b32;'"),
        ("call void @llvm.nvvm.mystery(float %a0)\n%d = fadd float %a0, %a0", "mystery"),
        (
            "%f = select i1 true, ptr @elsewhere, ptr %p0\n%d = fadd float %a0, %a0",
            "the address of 'elsewhere', which is declared",
        ),
        ('%d = call float asm "bra there;", "=f,f"(float %a0)', "the PTX 'bra there;'"),
        ('%d = call float asm "mov.f32 $0, $7;", "=f,f"(float %a0)', "such operands"),
        ('%d = call float asm "mov.f32 $0, $1;", "=x,f"(float %a0)', "constraints"),
        ("%d = va_arg ptr %p0, float", "instruction 'va_arg'"),
        ("%d = invoke float @helper(float 1.0, i1 true)", "instruction 'invoke'"),
    ],
)
def test_what_is_refused_by_name(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message) as caught:
        executed(body, FLOATS, result=np.float32, more=HELPER)
    assert caught.value.place.text == body.partition("\n")[0]


@pytest.mark.parametrize("name", ["bitreverse", "bswap"])
def test_bits_of_more_than_64_are_not_permuted(name: str) -> None:
    body = f"""%x = zext i32 %a0 to i128
%y = call i128 @llvm.{name}.i128(i128 %x)
%d = trunc i128 %y to i32"""
    with pytest.raises(Unsupported, match="a permutation of the bits of i128"):
        executed(body, INTEGERS, result=np.int32)


SUM = """@tile = private addrspace(3) global [64 x i32] undef, align 16
define ptx_kernel void @k(ptr %x) #0 {
  %i = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !range !1
  %p = getelementptr i32, ptr %x, i32 %i
  %a = load i32, ptr %p, align 4
  %s = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i32 %i
  store i32 %a, ptr addrspace(3) %s, align 4
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %j = xor i32 %i, 63
  %q = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i32 %j
  %b = load i32, ptr %q, align 4
  %c = tail call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %b, i32 1, i32 31)
  store i32 %c, ptr %p, align 4
  ret void
}
attributes #0 = { nounwind "nvvm.reqntid"="64,1,1" }
!1 = !{i32 0, i32 64}
"""


def test_shared_memory_barriers_and_exchanges() -> None:
    given = np.arange(64, dtype=np.int32) * 3
    after = LlvmIrKernel.read(SUM, "k.ll").run([given], launch_of("1x64")[0])[0]
    turned = given[::-1].reshape(2, 32)
    assert after.reshape(2, 32).tolist() == np.concatenate([turned[:, 1:], turned[:, -1:]], axis=1).tolist()


def test_a_fault_is_named_at_its_line() -> None:
    kernel = LlvmIrKernel.read(
        SUM.replace("  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n", ""), "k.ll"
    )
    verdict = kernel.check([np.arange(64, dtype=np.int32)], launch_of("1x64")[0])
    assert not verdict.ok
    assert "k.ll:" in "\n".join(verdict.details)
    with pytest.raises(ExecutionError, match="index 63") as caught:
        LlvmIrKernel.read(SUM, "k.ll").run([np.arange(63, dtype=np.int32)], launch_of("1x64")[0])
    assert caught.value.place.line == 5
