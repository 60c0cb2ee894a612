"""Masked accesses, copies and hints, against NumPy."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute

THREADS = 8
MASKS = np.random.default_rng(0).integers(0, 2, (THREADS, 4)).astype(np.int8)


def run(body: str, *arrays: np.ndarray) -> None:
    """A kernel over pointers %p0, %p1 ...; %mask is the thread's row of MASKS, %row and %out its four elements of %p0 and %p1."""
    arguments = ", ".join(f"%p{n}: !llvm.ptr" for n in range(len(arrays)))
    module = parse_ir(f"""
llvm.func @main({arguments}, %masks: !llvm.ptr {{xla.invariant}}) attributes {{nvvm.kernel, {launch(THREADS, 1)}}} {{
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %mp = llvm.getelementptr %masks[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xi8>
  %bytes = llvm.load %mp : !llvm.ptr -> vector<4xi8>
  %mask = llvm.trunc %bytes : vector<4xi8> to vector<4xi1>
  %row = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xf32>
  %out = llvm.getelementptr %p{min(1, len(arrays) - 1)}[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xf32>
  %other = llvm.mlir.constant(dense<7.0> : vector<4xf32>) : vector<4xf32>
{body}
  llvm.return
}}""")
    execute(module, [*arrays, MASKS])


def source() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(THREADS, 4)).astype(np.float32)


def test_a_masked_load():
    values, out = source(), np.zeros((THREADS, 4), np.float32)
    run(
        """
  %v = llvm.intr.masked.load %row, %mask, %other {alignment = 16 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  llvm.store %v, %out : vector<4xf32>, !llvm.ptr""",
        values,
        out,
    )
    np.testing.assert_array_equal(out, np.where(MASKS, values, np.float32(7)))


def test_without_other_values_the_rest_is_poison():
    values, out = source(), np.zeros((THREADS, 4), np.float32)
    run(
        """
  %v = llvm.intr.masked.load %row, %mask {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>) -> vector<4xf32>
  llvm.store %v, %out : vector<4xf32>, !llvm.ptr""",
        values,
        out,
    )
    np.testing.assert_array_equal(out.view(np.uint32), np.where(MASKS, values.view(np.uint32), 0xA5A5A5A5))


def test_what_is_masked_out_may_lie_outside():
    """Only the first element of the last row is there."""
    values = np.zeros((THREADS - 1) * 4 + 1, np.float32)
    body = """
  %first = llvm.mlir.constant(dense<[true, false, false, false]> : vector<4xi1>) : vector<4xi1>
  %v = llvm.intr.masked.load %row, %first, %other {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>"""
    run(body, values)
    with pytest.raises(ExecutionError, match=r"llvm\.intr\.masked\.load in block 0, thread 7 reads index 29"):
        run(body.replace("true, false, false", "true, true, false"), values)


def test_a_masked_store():
    values, out = source(), np.full((THREADS, 4), 5, np.float32)
    run(
        """
  %v = llvm.load %row : !llvm.ptr -> vector<4xf32>
  llvm.intr.masked.store %v, %out, %mask {alignment = 16 : i32} : vector<4xf32>, vector<4xi1> into !llvm.ptr""",
        values,
        out,
    )
    np.testing.assert_array_equal(out, np.where(MASKS, values, np.float32(5)))


def test_gather_and_scatter_have_an_address_for_each_element():
    """Elements in reverse."""
    values, out = source(), np.full((THREADS, 4), 5, np.float32)
    run(
        """
  %back = llvm.mlir.constant(dense<[3, 2, 1, 0]> : vector<4xi32>) : vector<4xi32>
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %a0 = llvm.getelementptr %row[3] : (!llvm.ptr) -> !llvm.ptr, f32
  %a1 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, f32
  %a2 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, f32
  %u = llvm.mlir.poison : vector<4x!llvm.ptr>
  %v0 = llvm.insertelement %a0, %u[%c0 : i32] : vector<4x!llvm.ptr>
  %v1 = llvm.insertelement %a1, %v0[%c1 : i32] : vector<4x!llvm.ptr>
  %v2 = llvm.insertelement %a2, %v1[%c2 : i32] : vector<4x!llvm.ptr>
  %v3 = llvm.insertelement %row, %v2[%c3 : i32] : vector<4x!llvm.ptr>
  %g = llvm.intr.masked.gather %v3, %mask, %other {alignment = 4 : i32}
    : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  %b1 = llvm.getelementptr %out[1] : (!llvm.ptr) -> !llvm.ptr, f32
  %b2 = llvm.getelementptr %out[2] : (!llvm.ptr) -> !llvm.ptr, f32
  %b3 = llvm.getelementptr %out[3] : (!llvm.ptr) -> !llvm.ptr, f32
  %w0 = llvm.insertelement %out, %u[%c0 : i32] : vector<4x!llvm.ptr>
  %w1 = llvm.insertelement %b1, %w0[%c1 : i32] : vector<4x!llvm.ptr>
  %w2 = llvm.insertelement %b2, %w1[%c2 : i32] : vector<4x!llvm.ptr>
  %w3 = llvm.insertelement %b3, %w2[%c3 : i32] : vector<4x!llvm.ptr>
  llvm.intr.masked.scatter %g, %w3, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into vector<4x!llvm.ptr>""",
        values,
        out,
    )
    np.testing.assert_array_equal(out, np.where(MASKS, values[:, ::-1], np.float32(5)))


@pytest.mark.parametrize("step", [1, 2, 4, 8])
@pytest.mark.parametrize("name", ["memcpy", "memmove"])
def test_copies_of_as_many_bytes_as_each_thread_wants(name, step):
    """Thread n copies n * step bytes, within rows of 64."""
    values = np.random.default_rng(2).integers(0, 256, (THREADS, 64), dtype=np.uint8)
    out = np.zeros_like(values)
    run(
        f"""
  %n = llvm.zext %tid : i32 to i64
  %step = llvm.mlir.constant({step} : i64) : i64
  %size = llvm.mul %n, %step : i64
  %of = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<64 x i8>
  %to = llvm.getelementptr %p1[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<64 x i8>
  "llvm.intr.{name}"(%to, %of, %size) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()""",
        values,
        out,
    )
    sizes = np.arange(THREADS)[:, None] * step
    np.testing.assert_array_equal(out, np.where(np.arange(64) < sizes, values, 0))


def test_memmove_takes_what_was_there_before():
    values = np.arange(THREADS * 16, dtype=np.int32).reshape(THREADS, 16)
    moved = values.copy()
    moved[:, 1:5] = values[:, 0:4]
    run(
        """
  %p = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<16 x i32>
  %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i32
  %size = llvm.mlir.constant(16 : i64) : i64
  "llvm.intr.memmove"(%q, %p, %size) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()""",
        values,
    )
    np.testing.assert_array_equal(values, moved)


@pytest.mark.parametrize("size", [0, 1, 6, 8, 12, 64])
def test_memset(size):
    out = np.zeros((THREADS, 64), np.uint8)
    run(
        f"""
  %p = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<64 x i8>
  %byte = llvm.mlir.constant(-85 : i8) : i8
  %size = llvm.mlir.constant({size} : i32) : i32
  "llvm.intr.memset"(%p, %byte, %size) <{{isVolatile = false}}> : (!llvm.ptr, i8, i32) -> ()""",
        out,
    )
    np.testing.assert_array_equal(out, np.where(np.arange(64) < size, 0xAB, 0) + np.zeros((THREADS, 1), int))


def test_a_copy_out_of_bounds_is_an_error():
    body = """
  %size = llvm.mlir.constant(64 : i64) : i64
  "llvm.intr.memcpy"(%p1, %p0, %size) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"""
    with pytest.raises(ExecutionError, match=r"llvm\.intr\.memcpy in block 0, thread 0 reads"):
        run(body, np.zeros(4, np.float32), np.zeros(64, np.float32))


def test_hints_change_nothing():
    values, out = source(), np.zeros((THREADS, 4), np.float32)
    run(
        """
  llvm.intr.lifetime.start %out : !llvm.ptr
  "llvm.intr.prefetch"(%row) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}> : (!llvm.ptr) -> ()
  llvm.intr.experimental.noalias.scope.decl #llvm.alias_scope<id = "s", domain = <id = "d">>
  %a = llvm.intr.launder.invariant.group %row : !llvm.ptr
  %b = llvm.intr.strip.invariant.group %a : !llvm.ptr
  %all = llvm.mlir.constant(-16 : i64) : i64
  %inside = llvm.getelementptr %b[7] : (!llvm.ptr) -> !llvm.ptr, i8
  %c = llvm.intr.ptrmask %inside, %all : (!llvm.ptr, i64) -> !llvm.ptr
  %v = llvm.load %c : !llvm.ptr -> vector<4xf32>
  llvm.store %v, %out : vector<4xf32>, !llvm.ptr
  llvm.intr.lifetime.end %out : !llvm.ptr""",
        values,
        out,
    )
    np.testing.assert_array_equal(out, values)
