"""Control flow, memory and functions of PTX, by what kernels compute."""

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, executed, kernel_text

from xla_emitters.errors import DataError, ExecutionError, ParseError, Unsupported, XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of

I32, U32, F32 = np.int32, np.uint32, np.float32
LANES = np.arange(64, dtype=U32)


def lanes(body: str) -> np.ndarray:
    """What 64 threads compute; %a0 is the thread's number."""
    return executed(body, LANES, result=U32)


def run(text: str, launch: str, *arrays: np.ndarray) -> dict[int, np.ndarray]:
    shape, shared, _ = launch_of(launch)
    return PtxKernel.read(HEAD + text, "k.ptx").run(arrays, shape, shared_bytes=shared)


def test_a_loop_carries_registers() -> None:
    """The sum of the numbers below the thread's, by a loop with a different number of rounds in each thread."""
    body = """
    mov.u32 %d, 0; mov.u32 %t1, 0;
    HEAD: setp.ge.u32 %p1, %t1, %a0; @%p1 bra DONE;
    add.u32 %d, %d, %t1; add.u32 %t1, %t1, 1; bra.uni HEAD;
    DONE:
    """
    np.testing.assert_array_equal(lanes(body), LANES * (LANES - 1) // 2)


def test_guards_become_selections_and_branches() -> None:
    body = "setp.lt.u32 %p1, %a0, 10; mov.u32 %d, 7; @%p1 mov.u32 %d, 9; @!%p1 add.u32 %d, %d, 1;"
    np.testing.assert_array_equal(lanes(body), np.where(LANES < 10, 9, 8))
    body = "setp.lt.u32 %p1, %a0, 10; mov.u32 %d, 5; @!%p1 bra NEXT; @%p1 ld.global.b32 %d, [%at0]; NEXT:"
    np.testing.assert_array_equal(lanes(body), np.where(LANES < 10, LANES, 5))


def test_a_switch_by_a_list_of_labels() -> None:
    body = """
    and.b32 %t1, %a0, 3; mov.u32 %d, 0;
    TABLE: .branchtargets A, B, C, A;
    brx.idx %t1, TABLE;
    A: add.u32 %d, %d, 100; B: add.u32 %d, %d, 10; C: add.u32 %d, %d, 1;
    """
    np.testing.assert_array_equal(lanes(body), np.array([111, 11, 1, 111])[LANES & 3])


def test_blocks_have_lists_of_labels_of_their_own() -> None:
    """Two blocks, the second one in another block, have the same names for labels and for the list of them."""
    switch = (
        "TABLE: .branchtargets A, B; brx.idx %t1, TABLE; A: add.u32 %d, %d, {}; bra.uni C; B: add.u32 %d, %d, {}; C:"
    )
    body = f"and.b32 %t1, %a0, 1; mov.u32 %d, 0; {{ {switch.format(1, 2)} }} {{ {{ {switch.format(10, 20)} }} }}"
    np.testing.assert_array_equal(lanes(body), np.where(LANES & 1, 22, 11))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        *(("3+4*2", 11), ("(3+4)*2", 14), ("1<<4", 16), ("(1<<5)-1", 31), ("-(3)", -3), ("~1 & 0xFF", 0xFE)),
        *(("2*-3", -6), ("7/2", 3), ("-7/2", -3), ("7 % 4", 3), ("-7 % 4", -3), ("WARP_SZ-1", 31), ("10-3-2", 5)),
        *(("0x10|3^1&5", 18), ("(.s64) 5", 5), ("1<<2<<1", 8), ("256>>3", 32), ("0xFFFFFFFFU", -1)),
        *((wrong, None) for wrong in ("!0", "1/0", "1<<64", "1.5+1", "s+s", "(1", "1+")),
    ],
)
def test_constant_expressions(expression: str, value: int | None) -> None:
    """PTX ISA 8.8, 4.5.5 "Constant expressions", by C's rules; those with a truth value are not read."""
    if value is None:
        with pytest.raises(ParseError) as caught:
            lanes(f"mov.u32 %d, {expression};")
        assert caught.value.place is not None
    else:
        np.testing.assert_array_equal(lanes(f"mov.u32 %d, {expression};"), np.full(64, value).astype(U32))


def test_sizes_and_offsets_are_constant_expressions() -> None:
    body = """
      .shared .align 4 .b8 s[(2+1)*4]; setp.eq.u32 %p1, %a0, 0; mov.u32 %t1, s; @%p1 st.shared.u32 [%t1+4*2], 7; bar.sync 0;
      ld.shared.u32 %d, [s+(4<<1)];
    """
    np.testing.assert_array_equal(lanes(body), np.full(64, 7))
    with pytest.raises(ExecutionError, match="index 3 of @s, which has 3"):
        lanes(body.replace("4*2", "4*3"))


def test_an_attribute_may_have_numbers() -> None:
    text = """.global .attribute(.managed) .u32 a = 3; .global .attribute(.unified(19, 95)) .u32 b = 4;
    .visible .func .attribute(.unified(1, 2)) f() { ret; }
    .visible .entry k(.param .u64 p) { .reg .b64 %rd1; .reg .b32 %r<3>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [a];
      ld.global.u32 %r2, [b]; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; ret; }"""
    assert run(text, "1x1", np.zeros(1, U32))[0] == [7]


def test_functions_are_called_with_scalars_and_arrays() -> None:
    text = """
    .func (.param .b32 out) scaled(.param .b32 x, .param .align 8 .b8 pair[8]) {
      .reg .b32 %r<5>;
      ld.param.b32 %r1, [x]; ld.param.b32 %r2, [pair]; ld.param.b32 %r3, [pair+4];
      mad.lo.s32 %r4, %r1, %r2, %r3; st.param.b32 [out], %r4; ret;
    }
    .visible .entry k(.param .u64 p) {
      .reg .b32 %r<5>; .reg .b64 %rd<3>;
      ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
      { .param .b32 param0; .param .align 8 .b8 param1[8]; .param .b32 retval0;
        st.param.b32 [param0], %r1; st.param.b32 [param1], 3; st.param.b32 [param1+4], 5;
        call.uni (retval0), scaled, (param0, param1);
        ld.param.b32 %r2, [retval0]; }
      st.global.b32 [%rd2], %r2; ret;
    }
    """
    np.testing.assert_array_equal(run(text, "1x32", np.zeros(32, I32))[0], np.arange(32) * 3 + 5)


def test_a_scalar_in_param_keeps_what_is_stored_in_it() -> None:
    """Bytes of it too; its address is no number."""
    text = """
    .visible .entry k(.param .u64 .ptr .align 4 p, .param .b64 n) {
      .reg .b32 %r<4>; .reg .b64 %rd<3>; .param .b32 kept;
      mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; mad.wide.u32 %rd2, %r1, 4, %rd1;
      st.param.b32 [kept], %r1; ld.param.b32 %r2, [n+4]; ld.param.b32 %r3, [kept]; add.s32 %r2, %r2, %r3;
      st.global.b32 [%rd2], %r2; ret;
    }
    """
    after = run(text, "1x32", np.zeros(32, U32), np.array(7 << 32 | 5))
    np.testing.assert_array_equal(after[0], LANES[:32] + 7)
    with pytest.raises(Unsupported, match=r"k\.ptx:9:34: .*the address of the parameter 'n' is not supported"):
        run(text.replace("ret;", "mov.b64 %rd1, n; ret;"), "1x32", np.zeros(32, U32), np.array(5))


def test_shared_memory_by_32_bit_addresses_and_generic_ones() -> None:
    """Each thread reads its neighbour's number: dynamic shared memory, written by a 32-bit address, read by a generic one."""
    text = """
    .extern .shared .align 16 .b8 tile[];
    .visible .entry k(.param .u64 p) {
      .reg .b32 %r<9>; .reg .b64 %rd<9>;
      ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
      mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1;
      bar.sync 0;
      xor.b32 %r5, %r3, 4; mov.u64 %rd3, tile; cvta.shared.u64 %rd4, %rd3; cvt.u64.u32 %rd5, %r5; add.u64 %rd6, %rd4, %rd5;
      ld.u32 %r6, [%rd6]; st.global.u32 [%rd2], %r6; ret;
    }
    """
    np.testing.assert_array_equal(run(text, "1x64+256", np.zeros(64, I32))[0], np.arange(64) ^ 1)
    with pytest.raises(ExecutionError, match=r"k\.ptx:9:70: error: .* writes index 32 of @tile"):
        run(text, "1x64+128", np.zeros(64, I32))


def test_local_constant_and_global_variables() -> None:
    text = """
    .const .align 4 .b32 table[4] = {10, 20, 30, 40};
    .global .align 4 .f32 half = 0f3F000000;
    .visible .entry k(.param .u64 p) {
      .local .align 8 .b8 own[16];
      .reg .b64 %SP, %SPL; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<9>;
      mov.u64 %SPL, own; cvta.local.u64 %SP, %SPL;
      ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
      and.b32 %r2, %r1, 3; shl.b32 %r3, %r2, 2; mov.u64 %rd3, table; cvt.u64.u32 %rd4, %r3; add.u64 %rd5, %rd3, %rd4;
      ld.const.b32 %r4, [%rd5]; st.local.b32 [%SPL+8], %r4; add.u64 %rd6, %SP, 8; ld.b32 %r5, [%rd6];
      cvt.rn.f32.u32 %f1, %r5; ld.global.f32 %f2, [half]; mul.f32 %f3, %f1, %f2; st.global.f32 [%rd2], %f3; ret;
    }
    """
    np.testing.assert_array_equal(run(text, "1x8", np.zeros(8, F32))[0], np.array([5, 10, 15, 20] * 2))


def test_parameters_by_value() -> None:
    text = """
    .visible .entry k(.param .u64 p, .param .f32 x, .param .u64 n, .param .align 8 .b8 pair[16], .param .u8 b) {
      .reg .b32 %r<9>; .reg .b16 %h<3>; .reg .f32 %f<4>; .reg .b64 %rd<9>;
      ld.param.u64 %rd1, [p]; ld.param.f32 %f1, [x]; ld.param.u64 %rd2, [n]; ld.param.v2.u64 {%rd3, %rd4}, [pair]; ld.param.u8 %h1, [b];
      cvt.rn.f32.u64 %f2, %rd2; add.f32 %f1, %f1, %f2; cvt.rn.f32.u64 %f2, %rd4; add.f32 %f1, %f1, %f2;
      cvt.rn.f32.u16 %f2, %h1; add.f32 %f1, %f1, %f2; st.global.f32 [%rd1], %f1; ret;
    }
    """
    given = (
        np.zeros(1, F32),
        np.array(0.5, F32),
        np.array(3, np.int64),
        np.array([7, 20], np.uint64),
        np.array(100, np.uint8),
    )
    assert run(text, "1x1", *given)[0] == 123.5


def test_atomic_updates() -> None:
    text = """
    .visible .entry k(.param .u64 p, .param .u64 q) {
      .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %rd<9>;
      ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;
      red.global.add.f32 [%rd1], %f1; atom.global.max.u32 %r2, [%rd2], %r1; red.global.add.u32 [%rd2+4], 2;
      atom.global.inc.u32 %r3, [%rd2+8], 9; atom.global.cas.b32 %r4, [%rd2+12], 0, 55; red.global.or.b32 [%rd2+16], %r1; ret;
    }
    """
    after = run(text, "1x32", np.zeros(1, F32), np.zeros(5, U32))
    assert after[0] == 496
    np.testing.assert_array_equal(after[1], [31, 64, 32 % 10, 55, 31])


def test_exchanges_in_a_warp() -> None:
    np.testing.assert_array_equal(lanes("shfl.sync.bfly.b32 %d, %a0, 5, 31, -1;"), LANES ^ 5)
    got = lanes("shfl.sync.down.b32 %t1|%p1, %a0, 4, 31, -1; selp.b32 %d, %t1, 999, %p1;")
    np.testing.assert_array_equal(got, np.where(LANES % 32 < 28, LANES + 4, 999))
    even = int("01" * 16, 2)
    body = "and.b32 %t1, %a0, 1; setp.eq.u32 %p1, %t1, 0; vote.sync.ballot.b32 %d, %p1, -1;"
    np.testing.assert_array_equal(lanes(body), np.full(64, even))
    np.testing.assert_array_equal(lanes("redux.sync.add.s32 %d, %a0, -1;"), np.repeat([496, 1520], 32))
    body = "and.b32 %t1, %a0, 3; match.any.sync.b32 %d, %t1, -1;"
    np.testing.assert_array_equal(lanes(body), [0x11111111 << (lane & 3) for lane in range(64)])
    body = "elect.sync %t1|%p1, -1; selp.b32 %d, 1, 0, %p1;"
    np.testing.assert_array_equal(lanes(body), LANES % 32 == 0)
    body = "setp.lt.u32 %p1, %a0, 40; bar.red.popc.u32 %d, 0, %p1;"
    np.testing.assert_array_equal(lanes(body), np.full(64, 40))
    body = "mov.u32 %d, 0; setp.lt.u32 %p1, %a0, 3; @%p1 activemask.b32 %d;"
    np.testing.assert_array_equal(lanes(body), np.where(LANES < 3, 7, 0))


def test_special_registers() -> None:
    np.testing.assert_array_equal(lanes("mov.u32 %d, %laneid;"), LANES % 32)
    np.testing.assert_array_equal(lanes("mov.u32 %d, %ntid.x;"), np.full(64, 64))
    np.testing.assert_array_equal(lanes("mov.u32 %d, %lanemask_lt;"), [(1 << lane % 32) - 1 for lane in range(64)])


def test_reserved_shared_memory() -> None:
    """Cooperative groups meet there, without having written it: two warps set a bit each in memory that is 0."""
    body = """.reg .u32 %start, %bit; .reg .u64 %at, %end; mov.u32 %start, %reserved_smem_offset_1; cvt.u64.u32 %at, %start;
      mov.u32 %bit, %reserved_smem_offset_end; sub.u32 %start, %bit, %start; cvta.shared.u64 %at, %at;
      shr.u32 %bit, %a0, 5; add.u32 %bit, %bit, 1; red.or.release.cta.b32 [%at], %bit; bar.sync 0; ld.acquire.cta.b32 %d, [%at];
      mad.lo.u32 %d, %start, 1000, %d;"""
    np.testing.assert_array_equal(lanes(body), [512_003] * 64)
    kernel = PtxKernel.read(kernel_text(body, [LANES.dtype], np.dtype(U32)), "k.ptx")
    verdict = kernel.check([LANES, np.zeros(64, U32)], launch_of("1x64")[0])
    assert verdict.ok, verdict.summary
    with pytest.raises(ExecutionError, match=r"index 256 of @%reserved_smem, which has 256 of 4 bytes each"):
        lanes("mov.u32 %t0, %reserved_smem_offset_end; ld.shared.u32 %d, [%t0];")


FAULTS = {
    "frob.b32 %d, %a0;": "one.ptx:15:1: error: [ptx] instruction 'frob.b32' is not supported",
    "add.u32.fast %d, %a0, %a0;": "'.fast' of 'add.u32.fast' is not supported",
    "mov.u32 %d, %nothing;": "error: [ptx.parse] '%nothing' is not declared",
    "bra NOWHERE;": "error: [ptx] label 'NOWHERE' is not defined",
    "mov.u32 %d, nothing;": "error: [ptx] 'nothing' is not declared",
    "add.u32 %d, %a0;": "'add.u32' takes 3 operands, not 2",
    "add.u64 %d, %a0, %a0;": "'add.u64' writes '%d', a register of .b32, as .u64",
    "add.f32 %d, %a0, 1;": "'add.f32' needs a float such as 0f3F800000",
    "add.s32 %d, %a0, 0f3F800000;": "'add.s32' needs an integer",
    "mov.u32 %d, 18446744073709551616;": "the number does not fit into 64 bits",
    "add.s32 _, %a0, 1;": "'add.s32' writes a register here",
    "add.s32 %d, %tid.x, 1;": "'%tid.x' is read by 'mov' alone",
    "shl.b32 %d, %a0, %w1;": "'shl.b32' reads '%w1', a register of .b64, as .u32",
    "popc.b64 %w1, %w1;": "'popc.b64' writes '%w1', a register of .b64, as .u32",
    "add.s8 %d, %a0, %a0;": "'.s8' of 'add.s8' is not supported",
    "add.rn.rz.f32 %d, %a0, %a0;": "'add.rn.rz.f32' has several roundings",
    "add.rz.s32 %d, %a0, %a0;": "'.rz' of 'add.rz.s32' is not of type .s32",
    "add.sat.u32 %d, %a0, %a0;": "'.sat' of 'add.sat.u32' is not of type .u32",
    "add.cc.f32 %d, %a0, %a0;": "'.cc' of 'add.cc.f32' is not of type .f32",
    "rcp.approx.f64 %w1, %w1;": "'rcp.approx.f64' needs .ftz",
    "sqrt.approx.f64 %w1, %w1;": "'.approx' of 'sqrt.approx.f64' is not of type .f64",
    "div.full.f64 %w1, %w1, %w1;": "'.f64' of 'div.full.f64' is not supported",
    "mul.rz.f16 %d, %a0, %a0;": "'.rz' of 'mul.rz.f16' is not of type .f16",
    "add.ftz.bf16x2 %d, %a0, %a0;": "'.ftz' of 'add.ftz.bf16x2' is not of type .bf16x2",
    "ex2.approx.bf16 %d, %a0;": "'ex2.approx.bf16' needs .ftz",
    "fma.rn.relu.f32 %d, %a0, %a0, %a0;": "'.relu' of 'fma.rn.relu.f32' is not of type .f32",
    "min.relu.u32 %d, %a0, %a0;": "'.relu' of 'min.relu.u32' is not of type .u32",
    "max.NaN.f64 %w1, %w1, %w1;": "'.NaN' of 'max.NaN.f64' is not of type .f64",
    "mad.lo.sat.s32 %d, %a0, %a0, %a0;": "'.sat' of 'mad.lo.sat.s32' is not supported",
    "sub.u16x2 %d, %a0, %a0;": "'.u16x2' of 'sub.u16x2' is not supported",
    "setp.eq.ftz.s32 %p1, %a0, %a0;": "'.ftz' of 'setp.eq.ftz.s32' is not of type .s32",
    "slct.ftz.f32.s32 %d, %a0, %a0, %a0;": "'.ftz' of 'slct.ftz.f32.s32' is not of type .s32",
    "tanh.approx.ftz.f32 %d, %a0;": "'.ftz' of 'tanh.approx.ftz.f32' is not supported",
    "fma.f32 %d, %a0, %a0, %a0;": "'fma.f32' needs one of .rn, .rz, .rm, .rp",
    "ex2.f32 %d, %a0;": "'ex2.f32' needs one of .approx",
    "shf.l.b32 %d, %a0, %a0, 3;": "'shf.l.b32' needs one of .clamp, .wrap",
    "mov.b64 %w1, {%d, %at1};": "'mov.b64' reads '%at1', a register of .b64, as .b32",
    "ld.global.f16 %d, [%at0];": "'.f16' of 'ld.global.f16' is not supported",
    ".reg .b32 %d; .reg .b32 %d;": "register '%d' is declared twice",
    ".reg .b32 %z<3>; .reg .b64 %z<2>;": "registers '%z' are declared twice",
    ".reg .b32 %z<4294967296>;": "the number of registers must be 0 to 4294967295",
    ".reg .b32 %z<-1>;": "the number of registers must be 0 to 4294967295",
    ".reg .b32.b64 %z;": "'.b64' is no type of a register",
    "shl.b32 %d, %a0, 08;": "an octal number has no 8 and no 9",
    "add.f32 %d, %a0, 1e400;": "the number does not fit into 64 bits",
    "ld.global.v2.b32 {%d, %w1}, [%at0];": "'ld.global.v2.b32' has registers of several widths",
    "st.global.nc.b32 [%at0], %d;": "a store has no '.nc'",
    "ld.shared.nc.b32 %d, [%at0];": "'.nc' is of .global",
    "cvt.f32.b8 %d, %a0;": "'.b8' of 'cvt.f32.b8' is not supported",
    "ld.global.shared.b32 %d, [%at0];": "'ld.global.shared.b32' has several state spaces",
    "ld.global.b32 %d, [%at0+4294967296];": "the offset 4294967296 does not fit into 32 bits",
    "cvta.to.global.u64 %w1, %d;": "'cvta.to.global.u64' reads '%d', a register of .b32, as .u64",
    "A: A: ret;": "label 'A' is defined twice",
    "setp.gt.b32 %p1, %a0, %a0;": "bits are not compared by 'gt'",
    "call frob, (%a0);": "function 'frob' is not declared",
    "@%a0 bra A; A:": "'%a0' is no predicate",
    "add.u32 %d, %a0, %a0": "expected ',' or ';' after the operand",
    'mov.u32 %d, "x': "this string is not closed",
}


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        *(("exp.approx.f32", "ex2"), ("barr.sync", "barrier"), ("bar2.sync", "bar"), ("mulhi.u32", "mul.hi")),
        *(("popcount.b32", "popc"), ("griddepcontrol.waits", "griddepcontrol.wait")),
        ("cp.async.wait_al", "cp.async.wait_all"),
        # Instructions of the ISA that are not read, and a name that is like none.
        *((name, "") for name in "tex.2d.v4.f32.s32 tld4.r.2d suld.b.1d sured.b.add txq.width.b32".split()),
        *((name, "") for name in "tcgen05.alloc istypep.texref suq.width.b32 cp.x frob".split()),
    ],
)
def test_only_a_misspelt_mnemonic_has_a_suggestion(name: str, likely: str) -> None:
    with pytest.raises(XlaEmittersError) as caught:
        lanes(f"{name} %d, %a0;")
    assert caught.value.message.endswith(f"; did you mean '{likely}'?" if likely else f"'{name}' is not supported")


def test_an_instruction_that_is_not_read_is_refused_before_its_operands() -> None:
    with pytest.raises(Unsupported, match=r"instruction 'tex\.2d\.v4\.f32\.s32' is not supported"):
        lanes("tex.2d.v4.f32.s32 {%d, _, _, _}, [%at0, %at1, {%d}];")


@pytest.mark.parametrize("body", FAULTS)
def test_errors_have_places(body: str) -> None:
    with pytest.raises(XlaEmittersError) as caught:
        lanes(body)
    assert FAULTS[body] in str(caught.value)
    assert caught.value.place.line == 15 + (body[-1] == "0")
    assert isinstance(caught.value, ParseError | Unsupported)


def test_a_loop_without_end_ends() -> None:
    with pytest.raises(ExecutionError, match="never ends"):
        lanes("mov.u32 %d, 0; L: bra L;")


def test_launches_and_arguments_are_checked() -> None:
    text = ".visible .entry k(.param .u64 .ptr .align 16 p, .param .u32 n) .reqntid 32, 1, 1 { ret; }"
    array, number = np.zeros(4, I32), np.array(1, I32)
    run(text, "1x32", array, number)
    for launch, given, message in (
        ("1x64", (array, number), "must have 32x1x1 threads"),
        ("1x32", (array,), "takes 2 arguments"),
        ("1x32", (number, number), "a pointer: give an array with dimensions"),
        ("1x32", (array, array), "a number of 4 bytes"),
    ):
        with pytest.raises(DataError, match=message):
            run(text, launch, *given)


def test_faults_are_named_at_their_line() -> None:
    text = """
    .visible .entry k(.param .u64 p) {
      .reg .b32 %r<3>; .reg .b64 %rd<3>;
      ld.param.u64 %rd1, [p];
      mov.u32 %r1, %tid.x;
      st.global.u32 [%rd1], %r1; ret; }
    """
    kernel = PtxKernel.read(HEAD + text, "k.ptx")
    launch, *_ = launch_of("1x2")
    verdict = kernel.check([np.zeros(1, I32)], launch)
    assert not verdict.ok
    assert "a race" in verdict.summary
    assert verdict.details[0].startswith("k.ptx:9:7: error:")
    assert "st.global.u32 [%rd1], %r1" in verdict.details[1]


INITIAL = """.global .f32 x[3] = {{{}, 0.1, 0fC0000000}}; .global .f64 y[2] = {{0.1, 0f3F800000}};
    .visible .entry k(.param .u64 p) {{ .reg .b64 %p, %w; .reg .f32 %f; ld.param.u64 %p, [p];
    ld.global.f32 %f, [x]; st.global.f32 [%p], %f; ld.global.f32 %f, [x+4]; st.global.f32 [%p+4], %f;
    ld.global.b64 %w, [y]; st.global.b64 [%p+8], %w; ld.global.b64 %w, [y+8]; st.global.b64 [%p+16], %w; ret; }}"""


def test_initial_values_that_are_written_as_decimals() -> None:
    """They are rounded to an f32 where one is, as ptxas does; the bits of an f32 in an f64 stay bits. An integer is no float."""
    found = run(INITIAL.format("1.5"), "1x1", np.zeros(3))[0]
    assert found[:1].view(F32).tolist() == [1.5, F32(0.1)]
    assert found[1] == 0.1
    assert found.view(np.uint64)[2] == 0x3F800000
    with pytest.raises(ParseError, match=r"'x' of \.f32 is initialised with an integer"):
        run(INITIAL.format("1"), "1x1", np.zeros(3))


def test_blocks_may_declare_one_name_each_in_its_own_way() -> None:
    """As nvcc and LLVM declare the parameters of each call."""
    text = """
    .func (.param .b32 out) twice(.param .b32 a, .param .b32 b) {
      .reg .b32 %r<4>; ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; mad.lo.s32 %r3, %r1, 2, %r2; st.param.b32 [out], %r3; ret;
    }
    .func (.param .b32 out) summed(.param .b32 a, .param .align 8 .b8 b[16]) {
      .reg .b32 %r<5>; ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; ld.param.b32 %r3, [b+8];
      add.s32 %r4, %r1, %r2; add.s32 %r4, %r4, %r3; st.param.b32 [out], %r4; ret;
    }
    .visible .entry k(.param .u64 p) {
      .reg .b32 %r<9>; .reg .b64 %rd<9>;
      ld.param.u64 %rd1, [p]; mov.b32 %r1, 7; mov.b64 %rd2, 40;
      { .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 param1; st.param.b32 [param1], 5;
        .param .b32 retval0; call (retval0), twice, (param0, param1); ld.param.b32 %r2, [retval0]; }
      { .param .b32 param0; st.param.b32 [param0], %r2;
        .param .align 8 .b8 param1[16]; st.param.b32 [param1], 100; st.param.b64 [param1+8], %rd2;
        .param .b32 retval0; call (retval0), summed, (param0, param1); ld.param.b32 %r3, [retval0]; }
      st.global.b32 [%rd1], %r3; ret;
    }"""
    np.testing.assert_array_equal(run(text, "1x1", np.zeros(1, U32))[0], [19 + 100 + 40])


def test_a_location_of_inlined_code_ends_at_its_line() -> None:
    """As `nvcc -lineinfo` writes them; the next instruction is not a part of it."""
    body = """
    .loc 1 5 3
    mov.u32 %t1, 2;
    .loc 1 7 13, function_name $L__info_string0, inlined_at 1 5 3
    mov.u32 %t2, 3;
    .loc 1 7 13, function_name $L__info_string0+8, inlined_at 1 5 3
    .loc 1 8 1
    mad.lo.u32 %d, %a0, %t1, %t2;
    """
    np.testing.assert_array_equal(lanes(body), 2 * LANES + 3)
    with pytest.raises(ParseError, match=r"expected 'inlined_at' or 'function_name'"):
        lanes(".loc 1 5 3, mov.u32 %t1, 2;")


def test_registers_that_are_vectors() -> None:
    """PTX ISA, 6.4.2: parts are named `.x .y .z .w` or `.r .g .b .a`, and a vector is an operand of `mov`, loads and stores."""
    body = """
    .reg .v4 .b32 V; .reg .v2 .b32 W; .shared .align 16 .b32 s[256];
    mov.v4.u32 V, {%a0, 1, 20, 300}; mov.u32 %t1, s; mad.lo.u32 %t1, %a0, 16, %t1; st.shared.v4.b32 [%t1], V;
    mov.v2.b32 W, {V.g, V.x}; ld.shared.v4.b32 V, [%t1];
    add.u32 V.w, V.w, V.b; add.u32 V.w, V.w, W.x; add.u32 V.w, V.w, W.y; mov.b32 %d, V.a;
    """
    np.testing.assert_array_equal(lanes(body), LANES + 321)


def test_functions_of_old_texts_have_registers_as_parameters() -> None:
    text = """
    .func (.reg .u32 out) f(.reg .u32 a, .reg .u32 b);
    .func (.reg .u32 out) f(.reg .u32 a, .reg .u32 b) {
      .reg .pred %p; setp.gt.u32 %p, a, 9; mov.u32 out, b; @%p bra L; add.u32 out, out, a; L: ret; }
    .visible .entry k(.param .u64 p) {
      .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
      call (%r2), f, (%r1, 5); call.uni (%r2), f, (%r2, %r1); st.global.u32 [%rd2], %r2; ret; }"""
    first = np.where(LANES > 9, 5, LANES + 5)
    np.testing.assert_array_equal(run(text, "1x64", np.zeros(64, U32))[0], np.where(first > 9, LANES, first + LANES))


def test_a_called_function_ends_the_thread() -> None:
    """PTX ISA, "exit": the thread ends; what its caller would have done is not done. As in Kokkos' abort."""
    text = """
    .func abort() .noreturn { exit; }
    .func (.reg .u32 low, .reg .pred is_odd) halved(.reg .u32 x) {
      .reg .pred %p; .reg .u32 %r1;
      setp.gt.u32 %p, x, 40; @%p call abort;
      and.b32 %r1, x, 1; setp.eq.u32 is_odd, %r1, 1; setp.eq.u32 %p, x, 7; @%p exit; shr.u32 low, x, 1; ret; }
    .visible .entry k(.param .u64 p) {
      .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p;
      ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], 100;
      call (%r2, %p), halved, (%r1); @%p add.u32 %r2, %r2, 1000; st.global.u32 [%rd2], %r2; ret; }"""
    wanted = np.where((LANES > 40) | (LANES == 7), 100, LANES // 2 + 1000 * (LANES & 1))
    np.testing.assert_array_equal(run(text, "1x64", np.zeros(64, U32))[0], wanted)


def test_several_registers_of_vectors() -> None:
    body = """.reg .v2 .b16 V<2>; mov.b32 V0, 0x00050003; mov.v2.b16 V1, V0; cvt.u32.u16 %t1, V1.y; cvt.u32.u16 %d, V0.x;
    mad.lo.u32 %d, %t1, 10, %d;"""
    np.testing.assert_array_equal(lanes(body), LANES * 0 + 53)


def test_the_address_of_a_function_s_parameter_is_local() -> None:
    """As LLVM reads a struct by value at a number that is computed: PTX ISA, 7.1. `exit` behind `trap` is not reached."""
    text = """
    .func (.param .b32 out) part(.param .align 16 .b8 s[16], .param .b32 n) {
      .reg .b64 %rd<6>; .reg .b32 %r<5>; .reg .pred %p;
      mov.b64 %rd1, s; cvta.local.u64 %rd2, %rd1; ld.param.b32 %r1, [n]; mul.wide.u32 %rd3, %r1, 4;
      setp.gt.u32 %p, %r1, 3; @%p bra BAD;
      add.s64 %rd4, %rd2, %rd3; ld.b32 %r2, [%rd4]; add.s64 %rd5, %rd1, %rd3; ld.local.b32 %r3, [%rd5];
      st.b32 [%rd4], 0; ld.param.b32 %r4, [s+4]; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.param.b32 [out], %r2; ret;
      BAD: trap; exit; }
    .visible .entry k(.param .u64 p) {
      .reg .b64 %rd<3>; .reg .b32 %r<5>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
      and.b32 %r2, %r1, 3;
      { .param .align 16 .b8 s[16]; st.param.v4.b32 [s], {10, 200, 3000, %r1}; .param .b32 n; st.param.b32 [n], %r2;
        .param .b32 out; call (out), part, (s, n); ld.param.b32 %r3, [out]; }
      st.global.u32 [%rd2], %r3; ret; }"""
    number = LANES & 3
    wanted = 2 * np.choose(number, [10, 200, 3000, LANES]) + np.where(number == 1, 0, 200)
    np.testing.assert_array_equal(run(text, "1x64", np.zeros(64, U32))[0], wanted)


def test_registers_that_the_driver_sets() -> None:
    np.testing.assert_array_equal(lanes("mov.u64 %w1, %current_graph_exec; cvt.u32.u64 %d, %w1;"), LANES * 0)
    body = "mov.u64 %w1, %gridid; cvt.u32.u64 %d, %w1; mov.u32 %t1, %envreg3; add.u32 %d, %d, %t1; mov.u32 %t1, %pm0; add.u32 %d, %d, %t1;"
    np.testing.assert_array_equal(lanes(body), LANES * 0)
    text = """.visible .entry k(.param .u64 p) { .reg .b64 %rd1; .reg .b32 %r<3>; .reg .pred %p<3>; ld.param.u64 %rd1, [p];
      mov.u32 %r1, %dynamic_smem_size; isspacep.const %p1, %rd1; isspacep.global %p2, %rd1; @%p1 mov.u32 %r1, 0; @!%p2 mov.u32 %r1, 0;
      st.global.u32 [%rd1], %r1; ret; }"""
    assert run(text, "1x1+384", np.zeros(1, U32))[0] == [384]


def test_atomic_updates_of_128_bits() -> None:
    """Each of 32 threads expects what the one before it leaves; half of them would be right in one word alone."""
    text = """
    .visible .entry k(.param .u64 p, .param .u64 q) {
      .reg .b64 %rd<12>; .reg .b32 %r<3>; .reg .b128 %q<6>; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x;
      cvt.u64.u32 %rd3, %r1; add.u64 %rd4, %rd3, 1; mov.b64 %rd5, -1; mov.b128 %q1, {%rd5, %rd3}; mov.b128 %q2, {%rd5, %rd4};
      atom.global.cas.b128 %q3, [%rd1], %q1, %q2; atom.global.exch.b128 %q4, [%rd1+16], %q2;
      mov.b128 {%rd6, %rd7}, %q3; mov.b128 {%rd8, %rd9}, %q4; mad.wide.u32 %rd10, %r1, 16, %rd2;
      st.global.v2.u64 [%rd10], {%rd7, %rd9}; ret; }"""
    start = np.array([2**64 - 1, 0, 5, 6], np.uint64)
    after = run(text, "1x32", start, np.zeros(64, np.uint64))
    assert after[0].tolist() == [2**64 - 1, 32, 2**64 - 1, 32]
    assert after[1].reshape(32, 2).tolist() == [[n, n or 6] for n in range(32)]
    unlike = run(text, "1x32", np.array([7, 0, 5, 6], np.uint64), np.zeros(64, np.uint64))
    assert unlike[0].tolist() == [7, 0, 2**64 - 1, 32]


def test_tensor_maps_that_triton_adds_are_hidden_parameters() -> None:
    text = ".entry k(.param .u64 p0, .hidden .param .align 64 .b8 p1[128]) { .reg .b64 %a; .reg .b32 %v;"
    text += "ld.param.u64 %a, [p0]; ld.param.u32 %v, [p1+124]; st.global.u32 [%a], %v; ret; }"
    assert run(text, "1x1", np.zeros(1, U32), np.arange(32, dtype=U32))[0].tolist() == [31]


def test_declarations_of_functions_without_semicolon() -> None:
    """As nvcc wrote them up to CUDA 3; ptxas takes them in every version."""
    text = """
    .visible .func (.param .b32 r) f(.param .b32 x)
    .file 1 "a.cu"
    .visible .func (.param .b32 r) other(.param .b32 x)
    .visible .entry k(.param .u64 p0) {
      .reg .b64 %a; .reg .b32 %v; .param .b32 in, out; ld.param.u64 %a, [p0]; st.param.b32 [in], 20;
      call (out), f, (in); ld.param.b32 %v, [out]; st.global.u32 [%a], %v; ret; }
    .visible .func (.param .b32 r) f(.param .b32 x) {
      .reg .b32 %v; ld.param.b32 %v, [x]; add.u32 %v, %v, 1; st.param.b32 [r], %v; ret; }"""
    assert run(text, "1x1", np.zeros(1, U32))[0].tolist() == [21]
    with pytest.raises(ParseError, match=r"expected '\{' before the function's body"):
        run('.entry k() .file 1 "a.cu"', "1x1")


@pytest.mark.parametrize("of", "bf16 bf16x2 tf32 e4m3 e5m2x2 e2m1x2 ue8m0x2 s16x2 u16x2 f32x2".split())
def test_types_of_instructions_declare_nothing(of: str) -> None:
    for body in (f".reg .{of} %z;", f".shared .{of} z;", f".local .v2 .{of} z;"):
        with pytest.raises(ParseError, match=f"'.{of}' is no type"):
            run(f".entry k() {{ {body} ret; }}", "1x1")
    with pytest.raises(ParseError, match=f"'.{of}' is no type"):
        run(f".global .{of} z; .entry k() {{ ret; }}", "1x1")


def test_vectors_have_at_most_128_bits_and_no_predicates() -> None:
    for of in ("v4 .b64", "v2 .pred", "v2 .b128"):
        with pytest.raises(ParseError, match=f"there is no vector .{of.replace(' ', ' of ')}"):
            run(f".entry k() {{ .reg .{of} %z; ret; }}", "1x1")
    run(".entry k() { .reg .v2 .b64 %y; .reg .v4 .f32 %z; .shared .v4 .b16 s[3]; ret; }", "1x1")


LOCK = """
    .global .b32 lock; .global .b32 total;
    .visible .entry k(.param .u64 p0) {
      .reg .b64 %a; .reg .b32 %t, %v; .reg .pred %p; ld.param.u64 %a, [p0]; mov.u32 %t, %tid.x;
    L: atom.global.cas.b32 %v, [lock], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra L;
      ld.volatile.global.u32 %v, [total]; add.u32 %v, %v, %t; st.volatile.global.u32 [total], %v; st.global.u32 [%a], %v;
      membar.gl; atom.global.exch.b32 %v, [lock], FREE; ret; }"""


def test_a_lock_lets_the_thread_run_that_holds_it() -> None:
    """Each thread of the block, one after the other; the last one stores the sum of all."""
    assert run(LOCK.replace("FREE", "0"), "1x96", np.zeros(1, U32))[0].tolist() == [96 * 95 // 2]


def test_a_lock_that_nobody_releases_is_an_error() -> None:
    with pytest.raises(ExecutionError, match=r"thread 1 never ends: round \d+ begins with the values of round \d+"):
        run(LOCK.replace("FREE", "1"), "1x2", np.zeros(1, U32))


def test_dynamic_shared_memory_that_the_launch_does_not_give() -> None:
    text = ".extern .shared .b32 s[]; .entry k(.param .u64 p0) { .reg .b32 %t; mov.u32 %t, %tid.x; st.shared.u32 [s], %t; ret; }"
    for launch, given in (("1x1", 0), ("1x1+2", 2)):
        with pytest.raises(ExecutionError, match="writes index 0 of @s") as caught:
            run(text, launch, np.zeros(1, U32))
        assert caught.value.help == f"the launch gives {given} bytes of dynamic shared memory; 4x128+4096 gives more"
    run(text, "1x1+4", np.zeros(1, U32))


def test_the_address_of_an_element() -> None:
    """An index counts elements: `array[3]` of 32 bits is at byte 12, as ptxas has it."""
    body = """.shared .b32 array[64]; mov.u32 %t1, array; mad.lo.u32 %t1, %a0, 4, %t1; st.shared.u32 [%t1], %a0; bar.sync 0;
      mov.u32 %t2, array[1+2]; ld.shared.u32 %d, [%t2+4];"""
    np.testing.assert_array_equal(lanes(body), LANES * 0 + 4)
    for wrong in (".shared .b32 one; mov.u32 %t1, one[1];", "mov.u32 %t1, LABEL[1]; LABEL:"):
        with pytest.raises(ParseError, match="is no array"):
            lanes(f"{wrong} mov.u32 %d, 0;")


def test_dynamic_shared_memory_as_llvm_prints_it() -> None:
    """An array of no bytes, without brackets; a byte of alignment 1 is one."""
    text = """.visible .entry k(.param .u64 p) { .reg .b64 %rd1; .reg .b32 %r<3>; .shared .align 16 .b8 all; ld.param.u64 %rd1, [p];
      st.shared.u32 [all+60], 7; ld.shared.u32 %r1, [all+60]; st.global.u32 [%rd1], %r1; ret; }"""
    assert run(text, "1x1+64", np.zeros(1, U32))[0] == [7]
    with pytest.raises(ExecutionError, match="has 0 of 4 bytes each"):
        run(text.replace(".align 16 .b8", ".align 1 .b8"), "1x1+64", np.zeros(1, U32))


def test_a_nul_ends_the_text() -> None:
    text = ".visible .entry k(.param .u64 p) { .reg .b64 %rd1; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret; }"
    assert run(text + "\n\0 and the rest", "1x1", np.zeros(1, U32))[0] == [7]


def test_sync_may_be_the_last_word_but_the_type() -> None:
    """`vote.ballot.sync`, as CUB writes it."""
    body = "setp.lt.u32 %p1, %a0, 5; vote.ballot.sync.b32 %d, %p1, -1; shfl.idx.sync.b32 %d, %d, 0, 31, -1;"
    np.testing.assert_array_equal(lanes(body), np.where(LANES < 32, 31, 0))


def test_the_policy_of_a_copy_is_no_number_of_bytes() -> None:
    body = """.reg .b64 %policy; .shared .align 16 .b32 to[4]; createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;
      setp.ne.u32 %p1, %a0, 0; @%p1 bra NEXT;
      cp.async.cg.shared.global.L2::cache_hint [to], [%at0], 16MORE, %policy; cp.async.wait_all;
      NEXT: bar.sync 0; ld.shared.u32 %d, [to+12];"""
    np.testing.assert_array_equal(lanes(body.replace("MORE", "")), LANES * 0 + 3)
    np.testing.assert_array_equal(lanes(body.replace("MORE", ", 8")), LANES * 0)


def test_variables_of_the_module_are_given() -> None:
    text = """.const .align 4 .b8 scale[8]; .global .u32 total = 5;
      .visible .entry k(.param .u64 p) { .reg .b64 %rd1; .reg .b32 %r<4>; ld.param.u64 %rd1, [p];
      ld.const.u32 %r1, [scale+4]; ld.global.u32 %r2, [total]; add.u32 %r3, %r1, %r2; st.global.u32 [%rd1], %r3; ret; }"""
    kernel, launch = PtxKernel.read(HEAD + text, "k.ptx"), launch_of("1x1")[0]
    given = kernel.filled({"scale": np.array([1, 20], I32), "total": np.array(300, I32)})
    assert [each.run([np.zeros(1, U32)], launch)[0].item() for each in (kernel, given)] == [5, 320]
    with pytest.raises(DataError, match=r"the variable scale has 8 bytes, but the array is int32\[3\]"):
        kernel.filled({"scale": np.zeros(3, I32)})
