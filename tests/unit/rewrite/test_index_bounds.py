"""Whether 32 bits hold a kernel's indices: at the sizes of a launch, not of a type."""

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.index_bounds import IndexBounds


def bounds_of(body: str) -> IndexBounds:
    text = f"""
    gpu.module @k {{
      gpu.func @k(%x: memref<?xf32, "gpu">, %n: index, %m: index) kernel {{
        %b = gpu.block_id x
        %t = gpu.thread_id x
        %c256 = arith.constant 256 : index
        {body}
        gpu.return
      }}
    }}"""
    (function,) = [op for op in parse_ir(text).walk() if isinstance(op, FuncOp)]
    return IndexBounds(function)


def exceeds(body: str, blocks: int, n: int, m: int = 1, threads: int = 256) -> bool:
    x = np.zeros(1, np.float32)
    return bounds_of(body).exceed_32_bits(LaunchDimensions((blocks, 1, 1), (threads, 1, 1)), [x, n, m])


LINEAR = "%s = arith.muli %b, %c256 : index\n%i = arith.addi %s, %t : index"
ROWS = "%i = affine.linearize_index disjoint [%b, %t] by (%n) : index"
# At most 8 rows are left, whatever the difference: one that is negative is large without its sign.
FEW = """%c8 = arith.constant 8 : index
%d = arith.subi %n, %b : index
%left = arith.minui %d, %c8 : index
%i = arith.muli %left, %m : index"""
INNER = "%c1 = arith.constant 1 : index\nscf.for %j = %t to %n step %c256 { %i = arith.muli %j, %m : index }"


@pytest.mark.parametrize(
    ("body", "blocks", "n", "m", "answer"),
    [
        (LINEAR, 100, 25600, 1, False),
        (LINEAR, 1 << 23, (1 << 31) - 1, 1, True),
        (ROWS, 1 << 20, 1000, 1, False),
        (ROWS, 1 << 20, 4096, 1, True),
        (INNER, 1, 1 << 15, 1 << 15, False),
        (INNER, 1, 1 << 16, 1 << 16, True),
        (FEW, 1 << 20, 1 << 30, 64, False),
        (FEW, 1 << 20, 1 << 30, 1 << 30, True),
        ("", 1, 1 << 31, 1, True),
    ],
)
def test_products_and_sums_of_what_the_launch_passes(body: str, blocks: int, n: int, m: int, answer: bool) -> None:
    assert exceeds(body, blocks, n, m) is answer


@pytest.mark.parametrize(("body", "bits"), [("", 31), (LINEAR, 22), (INNER, 15), ("%i = arith.shli %n, %m : index", 0)])
def test_numbers_of_so_many_bits_are_safe_and_larger_ones_are_not(body: str, bits: int) -> None:
    """By hand: 256 n + 256, and n (n + 255), are below 2**31; nothing is known of a shift."""
    assert bounds_of(body).safe_up_to((256, 1, 1)) == (1 << bits) - 1


def test_coordinates_are_below_their_sizes() -> None:
    """The row of an element times the size of a row is no larger than the element's number."""
    body = "%r, %c = affine.delinearize_index %n into (4096) : index, index\n%i = arith.muli %r, %m : index"
    assert not exceeds(body, 1, 1 << 30, 4096)
    assert exceeds(body, 1, 1 << 30, 1 << 14)


def test_what_is_carried_around_a_loop_is_not_known() -> None:
    body = "%r = scf.for %j = %t to %n step %c256 iter_args(%a = %m) -> (index) { scf.yield %a : index }"
    assert exceeds(body, 1, 10)


def test_a_number_that_is_loaded_is_clamped_first() -> None:
    loaded = '%v = memref.load %x[%t] : memref<?xf32, "gpu">\n%w = arith.fptosi %v : f32 to i64\n'
    assert exceeds(loaded + "%i = arith.index_cast %w : i64 to index", 1, 10)
    clamped = """
        %zero = arith.constant 0 : i64
        %most = arith.constant 9 : i64
        %low = arith.maxsi %w, %zero : i64
        %both = arith.minsi %low, %most : i64
        %i = arith.index_cast %both : i64 to index"""
    assert not exceeds(loaded + clamped, 1, 10)
