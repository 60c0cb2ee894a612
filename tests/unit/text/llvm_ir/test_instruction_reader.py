"""Instructions of LLVM IR, read and executed: the values are NumPy's, or worked out by hand from the language reference."""

import numpy as np
import pytest
from unit.text.llvm_ir.one_function import BF16, executed

I32 = np.array([0, 1, -1, 7, -8, 2**31 - 1, -(2**31), 100], np.int32)
J32 = np.array([1, 2, 3, -7, 5, 9, 2, -100], np.int32)
F32 = np.array([0.0, -0.0, 1.5, -2.25, 3e38, 1e-40, np.inf, np.nan], np.float32)
G32 = np.array([1.0, 2.0, -0.5, 4.0, 3e38, 2.0, -np.inf, 1.0], np.float32)
U32, V32 = I32.view(np.uint32), J32.view(np.uint32)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("add", I32 + J32),
        ("add nuw nsw", I32 + J32),
        ("sub", I32 - J32),
        ("mul", I32 * J32),
        ("and", I32 & J32),
        ("or disjoint", I32 | J32),
        ("xor", I32 ^ J32),
        ("udiv", (U32 // V32).view(np.int32)),
        ("urem", (U32 % V32).view(np.int32)),
        ("sdiv", np.trunc(I32 / J32.astype(np.float64)).astype(np.int64).astype(np.int32)),
        ("srem", np.fmod(I32, J32)),
    ],
)
def test_integers(words: str, wanted: np.ndarray) -> None:
    assert executed(f"%d = {words} i32 %a0, %a1", I32, J32, result=np.int32).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("extend", "shift", "of"), [("zext", "lshr", np.uint64), ("sext", "ashr", np.int64)], ids=["unsigned", "signed"]
)
def test_the_upper_half_of_a_product_of_128_bits(extend: str, shift: str, of: type) -> None:
    """What LLVM makes of `mulhi` for 64 bits."""
    given = [np.array([2**63 - 1, 12345678901234567, 3], of), np.array([2**62 + 5, 2**55, 7], of)]
    if of is np.int64:
        given[1] = -given[1]
    body = f"""%x = {extend} i64 %a0 to i128
%y = {extend} i64 %a1 to i128
%product = mul i128 %x, %y
%high = {shift} i128 %product, 64
%d = trunc i128 %high to i64"""
    wanted = [int(x) * int(y) >> 64 for x, y in zip(*given, strict=True)]
    assert executed(body, *given, result=of).tolist() == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("shl nsw", [8, 16, -16]), ("lshr exact", [0, 1, 0x3FFFFFFF]), ("ashr", [0, 1, -1])],
)
def test_shifts(words: str, wanted: list[int]) -> None:
    given = np.array([2, 4, -4], np.int32)
    assert executed(f"%d = {words} i32 %a0, 2", given, result=np.int32).tolist() == wanted


@pytest.mark.parametrize(
    ("words", "function"),
    [
        ("fadd", np.add),
        ("fsub nnan nsz", np.subtract),
        ("fmul contract reassoc", np.multiply),
        ("fdiv fast", np.divide),
        ("frem", np.fmod),
    ],
)
@np.errstate(all="ignore")
def test_floats(words: str, function: np.ufunc) -> None:
    found = executed(f"%d = {words} float %a0, %a1", F32, G32, result=np.float32)
    np.testing.assert_array_equal(found, function(F32, G32))


@np.errstate(all="ignore")
def test_narrow_floats_round_once() -> None:
    one, other = np.array([1.0, 256.0, 3.0], BF16), np.array([2**-8, 1.0, 2**-7], BF16)
    found = executed("%d = fadd bfloat %a0, %a1", one, other, result=BF16)
    # 1 + 2^-8 and 256 + 1 are ties: to the even digit. 3 + 2^-7 is a tie as well.
    assert found.astype(np.float64).tolist() == [1.0, 256.0, 3.0]


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        ("eq", I32 == J32),
        ("ne", I32 != J32),
        ("slt", I32 < J32),
        ("samesign sge", I32 >= J32),
        ("ult", U32 < V32),
        ("uge", U32 >= V32),
    ],
)
def test_comparisons_of_integers(predicate: str, wanted: np.ndarray) -> None:
    body = f"%c = icmp {predicate} i32 %a0, %a1\n%d = zext i1 %c to i32"
    assert executed(body, I32, J32, result=np.int32).tolist() == wanted.astype(int).tolist()


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        ("oeq", F32 == G32),
        ("une", F32 != G32),
        ("olt", F32 < G32),
        ("uge", ~(F32 < G32)),
        ("ord", ~np.isnan(F32)),
        ("uno", np.isnan(F32)),
        ("true", np.full(8, True)),
        ("false", np.full(8, False)),
    ],
)
def test_comparisons_of_floats(predicate: str, wanted: np.ndarray) -> None:
    body = f"%c = fcmp nsz {predicate} float %a0, %a1\n%d = zext i1 %c to i32"
    assert executed(body, F32, G32, result=np.int32).tolist() == wanted.astype(int).tolist()


@pytest.mark.parametrize(
    ("body", "given", "result", "wanted"),
    [
        ("%d = trunc nuw i32 %a0 to i8", np.array([300, -1], np.int32), np.int8, [44, -1]),
        ("%d = sext i8 %a0 to i32", np.array([200, 5], np.uint8), np.int32, [-56, 5]),
        ("%d = zext nneg i8 %a0 to i32", np.array([200, 5], np.uint8), np.int32, [200, 5]),
        ("%d = fptosi float %a0 to i32", np.array([-2.9, 2.9], np.float32), np.int32, [-2, 2]),
        ("%d = fptoui float %a0 to i32", np.array([3e9, 0.5], np.float32), np.uint32, [3000000000, 0]),
        ("%d = sitofp i32 %a0 to float", np.array([-3, 16777217], np.int32), np.float32, [-3.0, 16777216.0]),
        ("%d = uitofp nneg i32 %a0 to double", np.array([-1, 2], np.int32), np.float64, [4294967295.0, 2.0]),
        ("%d = fptrunc double %a0 to float", np.array([0.1, 1e300]), np.float32, [np.float32(0.1), np.inf]),
        ("%d = fpext half %a0 to float", np.array([0.5, 65504], np.float16), np.float32, [0.5, 65504.0]),
        ("%d = bitcast float %a0 to i32", np.array([1.0, -0.0], np.float32), np.int32, [0x3F800000, -(2**31)]),
        ("%d = fneg float %a0", np.array([1.0, -2.0], np.float32), np.float32, [-1.0, 2.0]),
        ("%d = freeze i32 %a0", np.array([5, 6], np.int32), np.int32, [5, 6]),
    ],
)
@np.errstate(all="ignore")
def test_conversions(body: str, given: np.ndarray, result: type, wanted: list[float]) -> None:
    assert executed(body, given, result=result).tolist() == wanted


VECTORS = """%v = insertelement <4 x i32> poison, i32 %a0, i64 0
%w = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> zeroinitializer
%x = add <4 x i32> %w, <i32 1, i32 2, i32 3, i32 4>
%y = shufflevector <4 x i32> %x, <4 x i32> <i32 9, i32 8, i32 7, i32 6>, <4 x i32> <i32 3, i32 5, i32 poison, i32 0>
%s = mul <4 x i32> %y, splat (i32 10)
"""


@pytest.mark.parametrize(("lane", "wanted"), [(0, [40, 50]), (1, [80, 80]), (3, [10, 20])])
def test_vectors(lane: int, wanted: list[int]) -> None:
    """a0 + 4, 8, nothing, a0 + 1: times 10."""
    body = f"{VECTORS}%d = extractelement <4 x i32> %s, i64 {lane}"
    assert executed(body, np.array([0, 1], np.int32), result=np.int32).tolist() == wanted


def test_truth_values_are_packed_with_the_first_in_the_lowest_bit() -> None:
    """Lanes of 3, 5: 3 and 5 are at least 1, 2, 3 ... in the places 0 to 2, and 0 to 4. The other eight compare with 9 and more."""
    numbers = ", ".join(f"i32 {number}" for number in (*range(1, 9), *(9,) * 7, 1))
    body = f"""%v = insertelement <16 x i32> poison, i32 %a0, i64 0
%w = shufflevector <16 x i32> %v, <16 x i32> poison, <16 x i32> zeroinitializer
%c = icmp sge <16 x i32> %w, <{numbers}>
%b = bitcast <16 x i1> %c to <2 x i8>
%x = bitcast <2 x i8> %b to <4 x i4>
%y = bitcast <4 x i4> %x to i16
%d = zext i16 %y to i32"""
    assert executed(body, np.array([3, 5], np.int32), result=np.int32).tolist() == [0x8007, 0x801F]


def test_structs() -> None:
    body = """%s = insertvalue { i32, [2 x i32] } poison, i32 %a0, 0
%t = insertvalue { i32, [2 x i32] } %s, i32 7, 1, 1
%x = extractvalue { i32, [2 x i32] } %t, 0
%y = extractvalue { i32, [2 x i32] } %t, 1, 1
%d = add i32 %x, %y"""
    assert executed(body, np.array([1, 2], np.int32), result=np.int32).tolist() == [8, 9]


def test_a_choice() -> None:
    body = "%c = icmp sgt i32 %a0, 0\n%d = select i1 %c, i32 %a0, i32 -5"
    assert executed(body, np.array([3, -3], np.int32), result=np.int32).tolist() == [3, -5]


SUM = """br label %head
head:
  %n = phi i32 [ 0, %entry ], [ %m, %body ]
  %t = phi i32 [ 0, %entry ], [ %u, %body ]
  %c = icmp slt i32 %n, %a0
  br i1 %c, label %body, label %out, !prof !{!"branch_weights", i32 1, i32 2}
body:
  %u = add i32 %t, %n
  %m = add i32 %n, 1
  br label %head, !llvm.loop !9
out:
  %d = phi i32 [ %t, %head ]"""


def test_a_loop_whose_values_are_used_before_the_text_defines_them() -> None:
    assert executed(SUM, np.array([0, 1, 5], np.int32), result=np.int32).tolist() == [0, 0, 10]


SWITCH = """switch i32 %a0, label %other [
    i32 1, label %one
    i32 -2, label %one
    i32 3, label %join
  ]
one:
  br label %join
other:
  br label %join
lost:
  %z = add i32 %z, 1
  br label %join
join:
  %d = phi i32 [ 10, %one ], [ 20, %other ], [ 30, %entry ], [ %z, %lost ]"""


def test_a_switch_and_a_block_that_nothing_reaches() -> None:
    assert executed(SWITCH, np.array([1, -2, 3, 4], np.int32), result=np.int32).tolist() == [10, 10, 30, 20]


def test_swapped_phis_are_assigned_together() -> None:
    body = """br label %head
head:
  %x = phi i32 [ 1, %entry ], [ %y, %head ]
  %y = phi i32 [ 2, %entry ], [ %x, %head ]
  %n = phi i32 [ 0, %entry ], [ %m, %head ]
  %m = add i32 %n, 1
  %c = icmp slt i32 %m, %a0
  br i1 %c, label %head, label %out
out:
  %d = add i32 %x, 0"""
    assert executed(body, np.array([1, 2, 3], np.int32), result=np.int32).tolist() == [1, 2, 1]


def test_memory_of_the_thread_and_addresses() -> None:
    body = """%m = alloca [4 x i32], align 16
  %e = getelementptr inbounds [4 x i32], ptr %m, i64 0, i32 %a0
  store i32 11, ptr %m, align 16
  %f = getelementptr i8, ptr %m, i64 4
  store <2 x i32> <i32 22, i32 33>, ptr %f, align 4
  %d = load i32, ptr %e, align 4"""
    assert executed(body, np.array([0, 1, 2], np.int32), result=np.int32).tolist() == [11, 22, 33]


def test_fields_of_structs_are_at_their_alignment() -> None:
    body = """%m = alloca { i8, i32, i16 }, align 8
  %f = getelementptr { i8, i32, i16 }, ptr %m, i32 0, i32 1
  %p = ptrtoint ptr %f to i64
  %q = ptrtoint ptr %m to i64
  %x = sub i64 %p, %q
  %g = getelementptr { i8, i32, i16 }, ptr %m, i32 1
  %h = ptrtoint ptr %g to i64
  %y = sub i64 %h, %q
  %z = mul i64 %y, 100
  %w = add i64 %x, %z
  %d = trunc i64 %w to i32"""
    assert executed(body, np.array([0], np.int32), result=np.int32).tolist() == [1204]


def test_atomic_updates() -> None:
    body = """%old = atomicrmw add ptr %p0, i32 1 syncscope("device") monotonic, align 4
  %o = atomicrmw umax ptr %p0, i32 -1 acq_rel, align 4
  %pair = cmpxchg weak ptr %p0, i32 -1, i32 5 seq_cst monotonic, align 4
  fence syncscope("block") release
  %ok = extractvalue { i32, i1 } %pair, 1
  %d = zext i1 %ok to i32"""
    assert executed(body, np.array([3], np.int32), result=np.int32).tolist() == [1]


def test_atomic_loads_and_stores() -> None:
    body = """%x = load atomic i32, ptr %p0 syncscope("device") acquire, align 4
  store atomic volatile i32 9, ptr %p0 release, align 4
  %y = load volatile i32, ptr %p0, align 4
  %d = add i32 %x, %y"""
    assert executed(body, np.array([3], np.int32), result=np.int32).tolist() == [12]
