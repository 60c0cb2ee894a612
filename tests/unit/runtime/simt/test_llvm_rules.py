"""The LLVM dialect: addresses, loads and stores of every shape, misuse of memory, branches, calls."""

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir.data_layout import field_offsets, size_and_alignment, stride_of
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute


def run(
    body: str, *arrays: np.ndarray, threads: int = 4, blocks: int = 1, attributes: str = "", globals: str = ""
) -> None:
    """An LLVM kernel over pointers %p0, %p1 ... to the arrays; %tid and %bid are the thread's and the block's number."""
    arguments = ", ".join(f"%p{n}: !llvm.ptr {attributes}" for n in range(len(arrays)))
    module = parse_ir(f"""
{globals}
llvm.func @main({arguments}) attributes {{nvvm.kernel, {launch(threads, blocks)}}} {{
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %bid = nvvm.read.ptx.sreg.ctaid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
{body}
  llvm.return
}}""")
    execute(module, list(arrays))


def ir_type(text: str):
    (op,) = parse_ir(f'"test.op"() {{type = {text}}} : () -> ()', allow_unregistered=True).ops
    return op.attributes["type"]


@pytest.mark.parametrize(
    ("text", "size", "alignment"),
    [
        ("i1", 1, 1),
        ("i8", 1, 1),
        ("i32", 4, 4),
        ("bf16", 2, 2),
        ("f64", 8, 8),
        ("!llvm.ptr", 8, 8),
        ("vector<4xbf16>", 8, 8),
        ("vector<3xf32>", 12, 16),
        ("vector<8xi4>", 4, 4),
        ("!llvm.array<5 x i16>", 10, 2),
        ("!llvm.struct<(f32, f32)>", 8, 4),
        ("!llvm.struct<(i8, f64, i16)>", 24, 8),
    ],
)
def test_sizes_are_those_of_llvms_layout_for_gpus(text, size, alignment):
    assert size_and_alignment(ir_type(text)) == (size, alignment)


def test_structs_are_padded():
    assert field_offsets(ir_type("!llvm.struct<(i8, f64, i16)>")) == [0, 8, 16]
    assert stride_of(ir_type("vector<3xf32>")) == 16


def test_getelementptr_walks_through_types():
    """Field 1 of element %tid of an array of structs of (i32, array of 3 i16), its last element."""
    source = np.arange(4 * 6, dtype=np.int16)
    out = np.zeros(4, np.int16)
    run(
        """
  %p = llvm.getelementptr %p0[0, %tid, 1, 2] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<4 x struct<(i32, array<3 x i16>)>>
  %v = llvm.load %p : !llvm.ptr -> i16
  %q = llvm.getelementptr inbounds %p1[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i16
  llvm.store %v, %q : i16, !llvm.ptr""",
        source,
        out,
    )
    # 4 bytes, then three times 2, padded to 12: element 4 of each six i16.
    assert out.tolist() == [4, 10, 16, 22]


@pytest.mark.parametrize(
    ("text", "numpy_type", "count"),
    [
        ("vector<4xbf16>", ml_dtypes.bfloat16, 4),
        ("vector<2xf32>", np.float32, 2),
        ("vector<4xf32>", np.float32, 4),
        ("vector<8xf32>", np.float32, 8),
        ("vector<16xi8>", np.int8, 16),
        ("vector<2xf64>", np.float64, 2),
        ("f16", np.float16, 1),
        ("i64", np.int64, 1),
        ("!llvm.struct<(f32, f32)>", np.complex64, 1),
        ("!llvm.array<2 x f32>", np.float32, 2),
    ],
)
def test_values_of_every_shape_are_loaded_and_stored(text, numpy_type, count):
    """Threads in reverse, so that the order of memory is not that of lanes."""
    patterns = np.random.default_rng(1).integers(0, 256, 8 * count * np.dtype(numpy_type).itemsize, dtype=np.uint8)
    source = patterns.view(numpy_type)
    out = np.zeros_like(source)
    run(
        f"""
  %c7 = llvm.mlir.constant(7 : i32) : i32
  %turned = llvm.sub %c7, %tid : i32
  %p = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, {text}
  %q = llvm.getelementptr %p1[%turned] : (!llvm.ptr, i32) -> !llvm.ptr, {text}
  %v = llvm.load %p : !llvm.ptr -> {text}
  llvm.store %v, %q : {text}, !llvm.ptr""",
        source,
        out,
        threads=8,
    )
    wanted = patterns.reshape(8, -1)[::-1]
    np.testing.assert_array_equal(out.view(np.uint8).reshape(8, -1), wanted)


def test_memory_has_no_type():
    """Four bf16 stored at once, read back as two i32."""
    source, out = np.array([1.0, 2.0, -1.0, 0.0], ml_dtypes.bfloat16), np.zeros(2, np.int32)
    run(
        """
  %v = llvm.load %p0 : !llvm.ptr -> vector<4xbf16>
  llvm.store %v, %p1 : vector<4xbf16>, !llvm.ptr
  %p = llvm.getelementptr %p1[1] : (!llvm.ptr) -> !llvm.ptr, i32
  %high = llvm.load %p : !llvm.ptr -> i32
  llvm.store %high, %p1 : i32, !llvm.ptr""",
        source,
        out,
        threads=1,
    )
    assert out.view(np.uint32).tolist() == [0x0000BF80, 0x0000BF80]


def test_out_of_bounds_names_thread_and_size():
    body = """
  %p = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %v = llvm.load %p : !llvm.ptr -> f32"""
    with pytest.raises(
        ExecutionError, match=r"llvm\.load in block 0, thread 3 reads index 3 of argument 0, which has 3 of 4 bytes"
    ):
        run(body, np.zeros(3, np.float32))
    body = """
  %m = llvm.sub %tid, %c1 : i32
  %p = llvm.getelementptr %p0[%m] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  llvm.store %tid, %p : i32, !llvm.ptr"""
    with pytest.raises(ExecutionError, match=r"llvm\.store in block 0, thread 0 writes index -1 of argument 0"):
        run(body, np.zeros(4, np.float32))


def test_a_huge_offset_is_not_another_buffer():
    body = """
  %far = llvm.mlir.constant(1073741824 : i32) : i32
  %p = llvm.getelementptr %p0[%far] : (!llvm.ptr, i32) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64"""
    with pytest.raises(ExecutionError, match="index 1073741824 of argument 0"):
        run(body, np.zeros(4), np.zeros(4))


def test_null_belongs_to_no_buffer():
    body = """
  %null = llvm.mlir.zero : !llvm.ptr
  %v = llvm.load %null : !llvm.ptr -> i32"""
    with pytest.raises(ExecutionError, match="uses address 0x0, which belongs to no buffer"):
        run(body, np.zeros(4, np.int32))


VECTOR_AT_ELEMENT_1 = """
  %p = llvm.getelementptr %p0[1] : (!llvm.ptr) -> !llvm.ptr, bf16
  %v = llvm.load %p {attributes} : !llvm.ptr -> vector<4xbf16>
  llvm.store %v, %p1 : vector<4xbf16>, !llvm.ptr"""


def test_a_misaligned_vector_load_is_an_error():
    source, out = np.arange(8).astype(ml_dtypes.bfloat16), np.zeros(4, ml_dtypes.bfloat16)
    with pytest.raises(
        ExecutionError, match=r"llvm\.load in block 0, thread 0 uses an address that is not aligned to 8 bytes"
    ):
        run(VECTOR_AT_ELEMENT_1.format(attributes=""), source, out)
    run(VECTOR_AT_ELEMENT_1.format(attributes="{alignment = 2 : i64}"), source, out)
    assert out.tolist() == [1, 2, 3, 4]


def test_no_more_alignment_than_the_argument_promises():
    body = "%v = llvm.load %p0 : !llvm.ptr -> vector<8xf32>"
    run(body, np.zeros(8, np.float32), attributes="{llvm.align = 32 : index}")
    with pytest.raises(ExecutionError, match="not aligned to 32 bytes"):
        run(body, np.zeros(8, np.float32), attributes="{llvm.align = 16 : index}")


def test_an_invariant_argument_cannot_be_written():
    with pytest.raises(ExecutionError, match="writes argument 0, which is read-only"):
        run("llvm.store %tid, %p0 : i32, !llvm.ptr", np.zeros(4, np.int32), attributes="{xla.invariant}")


def test_threads_may_point_into_different_buffers():
    one, other, out = np.array([1, 2, 3, 4], np.int32), np.array([10, 20, 30, 40], np.int32), np.zeros(4, np.int32)
    run(
        """
  %first = llvm.icmp "ult" %tid, %c2 : i32
  %base = llvm.select %first, %p0, %p1 : i1, !llvm.ptr
  %p = llvm.getelementptr %base[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %v = llvm.load %p : !llvm.ptr -> i32
  %q = llvm.getelementptr %p2[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %v, %q : i32, !llvm.ptr
  llvm.store %c0, %p : i32, !llvm.ptr""",
        one,
        other,
        out,
    )
    assert out.tolist() == [1, 2, 30, 40]
    assert one.tolist() == [0, 0, 3, 4]
    assert other.tolist() == [10, 20, 0, 0]


def test_sub_byte_elements_share_bytes_behind_a_pointer():
    """Each thread takes two s4 as one byte and as a vector; NumPy keeps one to a byte."""
    source = np.array([1, -2, 3, -4, 5, -6, 7, -8], ml_dtypes.int4)
    out = np.zeros(8, ml_dtypes.int4)
    run(
        """
  %p = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %v = llvm.load %p : !llvm.ptr -> vector<2xi4>
  %x = llvm.extractelement %v[%c0 : i32] : vector<2xi4>
  %byte = llvm.load %p : !llvm.ptr -> i8
  %four = llvm.mlir.constant(4 : i8) : i8
  %high = llvm.lshr %byte, %four : i8
  %y = llvm.trunc %high : i8 to i4
  %empty = llvm.mlir.poison : vector<2xi4>
  %half = llvm.insertelement %y, %empty[%c0 : i32] : vector<2xi4>
  %turned = llvm.insertelement %x, %half[%c1 : i32] : vector<2xi4>
  %q = llvm.getelementptr %p1[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  llvm.store %turned, %q : vector<2xi4>, !llvm.ptr""",
        source,
        out,
    )
    assert out.astype(np.int8).tolist() == [-2, 1, -4, 3, -6, 5, -8, 7]


def test_alloca_is_private_to_each_thread():
    out = np.zeros(8, np.int32)
    run(
        """
  %mine = llvm.alloca %c2 x i32 : (i32) -> !llvm.ptr
  llvm.store %tid, %mine : i32, !llvm.ptr
  %second = llvm.getelementptr %mine[1] : (!llvm.ptr) -> !llvm.ptr, i32
  llvm.store %bid, %second : i32, !llvm.ptr
  %x = llvm.load %mine : !llvm.ptr -> i32
  %y = llvm.load %second : !llvm.ptr -> i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %row = llvm.mul %y, %c4 : i32
  %k = llvm.add %row, %x : i32
  %q = llvm.getelementptr %p0[%k] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %k, %q : i32, !llvm.ptr""",
        out,
        blocks=2,
    )
    assert out.tolist() == list(range(8))


def test_shared_memory_is_one_per_block():
    """Threads of each block hand their number to the neighbour through shared memory."""
    out = np.zeros(12, np.int32)
    run(
        """
  %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %generic = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %row = llvm.mul %bid, %c4 : i32
  %k = llvm.add %row, %tid : i32
  %p = llvm.getelementptr %generic[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %k, %p : i32, !llvm.ptr
  nvvm.barrier0
  %next = llvm.add %tid, %c1 : i32
  %other = llvm.urem %next, %c4 : i32
  %s = llvm.getelementptr %shared[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %v = llvm.load %s : !llvm.ptr<3> -> i32
  %q = llvm.getelementptr %p0[%k] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %v, %q : i32, !llvm.ptr""",
        out,
        blocks=3,
        globals="llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<4 x i32>",
    )
    assert out.tolist() == [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8]


def test_reaching_unreachable_is_an_error():
    body = """
  %first = llvm.icmp "eq" %tid, %c2 : i32
  llvm.cond_br %first, ^never, ^exit
^never:
  llvm.unreachable
^exit:"""
    with pytest.raises(ExecutionError, match=r"llvm\.unreachable in block 0, thread 2 is reached"):
        run(body)


def test_an_unknown_callee_is_refused_by_name():
    with pytest.raises(Unsupported, match="@mystery"):
        run("%v = llvm.call @mystery(%tid) : (i32) -> i32", globals="llvm.func @mystery(i32) -> i32")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('%v = llvm.inline_asm "mov.u32 $0, $1;", "=r,r" %tid : (i32) -> i32', "llvm.inline_asm"),
        ('%v = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%f) : (f32) -> f32', "llvm.nvvm.ex2.approx.f"),
    ],
)
def test_what_has_no_meaning_here_is_refused_by_name_where_it_stands(line, name):
    with pytest.raises(Unsupported, match=name) as caught:
        run(f"%f = llvm.sitofp %tid : i32 to f32\n{line}", np.zeros(4, np.int32))
    assert caught.value.details


def test_constants_of_structs_and_arrays():
    out = np.zeros(4, np.float32)
    run(
        """
  %s = llvm.mlir.constant([1.5 : f32, [2.5 : f32, 4.0 : f32], #llvm.zero]) : !llvm.struct<(f32, array<2 x f32>, f32)>
  %a = llvm.extractvalue %s[0] : !llvm.struct<(f32, array<2 x f32>, f32)>
  %b = llvm.extractvalue %s[1, 1] : !llvm.struct<(f32, array<2 x f32>, f32)>
  %c = llvm.extractvalue %s[2] : !llvm.struct<(f32, array<2 x f32>, f32)>
  %d = llvm.fadd %a, %b : f32
  %e = llvm.fadd %c, %d : f32
  %q = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  llvm.store %e, %q : f32, !llvm.ptr""",
        out,
    )
    assert out.tolist() == [5.5] * 4


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ("@g(7 : i32) : i32", 7),
        ("@g(#llvm.zero) : !llvm.array<2 x i32>", 0),
        ('@g("abcd") {addr_space = 0 : i32}', 0x64636261),
    ],
)
def test_globals_of_numbers_zeros_and_text(declared, wanted):
    out = np.zeros(1, np.int32)
    run(
        """
  %g = llvm.mlir.addressof @g : !llvm.ptr
  %v = llvm.load %g {alignment = 1 : i64} : !llvm.ptr -> i32
  llvm.store %v, %p0 : i32, !llvm.ptr""",
        out,
        threads=1,
        globals=f"llvm.mlir.global internal constant {declared}",
    )
    assert out.tolist() == [wanted]


FLOAT_SPELLINGS = [
    ("arith.addf %a, %b : {t}", "llvm.fadd %a, %b : {t}"),
    ("arith.divf %a, %b : {t}", "llvm.fdiv %a, %b : {t}"),
    ("arith.negf %a : {t}", "llvm.fneg %a : {t}"),
    ("arith.maximumf %a, %b : {t}", "llvm.intr.maximum(%a, %b) : ({t}, {t}) -> {t}"),
    ("arith.minnumf %a, %b : {t}", "llvm.intr.minnum(%a, %b) : ({t}, {t}) -> {t}"),
    ("math.absf %a : {t}", "llvm.intr.fabs(%a) : ({t}) -> {t}"),
    ("math.exp %a : {t}", "llvm.intr.exp(%a) : ({t}) -> {t}"),
    ("math.copysign %a, %b : {t}", "llvm.intr.copysign(%a, %b) : ({t}, {t}) -> {t}"),
    ("math.fma %a, %b, %a : {t}", "llvm.intr.fma(%a, %b, %a) : ({t}, {t}, {t}) -> {t}"),
    ("math.roundeven %a : {t}", "llvm.intr.roundeven(%a) : ({t}) -> {t}"),
]


@pytest.mark.parametrize("ir_type", ["bf16", "f32"])
@pytest.mark.parametrize(("one", "other"), FLOAT_SPELLINGS, ids=[row[1].split()[0] for row in FLOAT_SPELLINGS])
def test_float_ops_are_those_of_arith_and_math(one, other, ir_type):
    values = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e-40])
    a, b = (grid.reshape(-1) for grid in np.meshgrid(values, values))
    inputs = {"a": (ir_type, a), "b": (ir_type, b)}
    wanted = per_thread(f"%r = {one.format(t=ir_type)}", ir_type, **inputs)
    got = per_thread(f"%r = {other.format(t=ir_type)}", ir_type, **inputs)
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
