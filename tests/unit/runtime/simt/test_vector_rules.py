"""Vectors: elements by constant and by dynamic position, rows of tensors, bits, reductions."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute

VECTOR = "%v = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>\n"


def test_positions_that_differ_between_threads():
    positions = np.arange(64) % 4
    got = per_thread(VECTOR + "%r = vector.extract %v[%a] : i32 from vector<4xi32>", "i32", a=("index", positions))
    assert got.tolist() == [(p + 1) * 10 for p in positions]
    ops = """
    %c1 = arith.constant 1 : i32
    %w = vector.insert %c1, %v [%a] : i32 into vector<4xi32>
    %r = vector.extract %w[2] : i32 from vector<4xi32>"""
    got = per_thread(VECTOR + ops, "i32", a=("index", positions))
    assert got.tolist() == [1 if p == 2 else 30 for p in positions]


def test_a_position_outside_is_an_error():
    with pytest.raises(ExecutionError, match=r"vector\.extract in block 0, thread 4 has a position outside"):
        per_thread(VECTOR + "%r = vector.extract %v[%a] : i32 from vector<4xi32>", "i32", a=("index", np.arange(32)))


def test_vectors_of_vectors():
    ops = """
    %m = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : vector<2x3xi32>
    %row = vector.extract %m[%a] : vector<3xi32> from vector<2x3xi32>
    %x = vector.extract %row[2] : i32 from vector<3xi32>
    %swapped = vector.insert %row, %m [0] : vector<3xi32> into vector<2x3xi32>
    %y = vector.extract %swapped[0, 1] : i32 from vector<2x3xi32>
    %ten = arith.constant 10 : i32
    %z = arith.muli %y, %ten : i32
    %r = arith.addi %x, %z : i32"""
    assert per_thread(ops, "i32", a=("index", np.array([0, 1] * 16))).tolist() == [23, 56] * 16


def test_elementwise_ops_take_vectors():
    ops = """
    %x = vector.broadcast %a : i32 to vector<4xi32>
    %s = arith.addi %v, %x : vector<4xi32>
    %limit = arith.constant dense<35> : vector<4xi32>
    %c = llvm.icmp "slt" %s, %limit : vector<4xi32>
    %t = llvm.select %c, %s, %limit : vector<4xi1>, vector<4xi32>
    %r = vector.reduction <add>, %t : vector<4xi32> into i32"""
    values = np.arange(32)
    got = per_thread(VECTOR + ops, "i32", a=("i32", values))
    assert got.tolist() == [sum(min(35, e + a) for e in (10, 20, 30, 40)) for a in values.tolist()]


def test_shuffle_from_and_to_elements():
    ops = """
    %w = vector.from_elements %a, %a, %a, %a : vector<4xi32>
    %s = vector.shuffle %v, %w [3, 4, 0, 7] : vector<4xi32>, vector<4xi32>
    %e:4 = vector.to_elements %s : vector<4xi32>
    %x = arith.subi %e#0, %e#1 : i32
    %y = arith.subi %e#2, %e#3 : i32
    %r = arith.muli %x, %y : i32"""
    got = per_thread(VECTOR + ops, "i32", a=("i32", np.arange(32)))
    assert got.tolist() == [(40 - a) * (10 - a) for a in range(32)]


def test_bits_of_a_vector():
    patterns = np.array([0x3F803F80, 0x40004000, -1], np.int64).astype(np.int32)
    ops = """
    %x = vector.broadcast %a : i32 to vector<1xi32>
    %h = vector.bitcast %x : vector<1xi32> to vector<2xbf16>
    %back = vector.bitcast %h : vector<2xbf16> to vector<1xi32>
    %r = vector.extract %back[0] : i32 from vector<1xi32>"""
    assert per_thread(ops, "i32", a=("i32", patterns)).tolist() == patterns.tolist()
    first = ops.splitlines()[1:3]
    got = per_thread(
        "\n".join([*first, "%r = vector.extract %h[1] : bf16 from vector<2xbf16>"]), "bf16", a=("i32", patterns[:2])
    )
    assert got.tolist() == [1.0, 2.0]


def transfer(index: str, elements: int = 16, threads: int = 4) -> np.ndarray:
    """Each thread reads 4 elements from `index`, a value over %thread, and writes them at 4 * thread."""
    source, out = np.arange(elements, dtype=np.float32), np.zeros(4 * threads, np.float32)
    module = parse_ir(f"""
func.func @main(%in: tensor<{elements}xf32>, %out: tensor<{4 * threads}xf32>) -> tensor<{4 * threads}xf32>
    attributes {{xla.entry, {launch(threads, 1)}}} {{
  %thread = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %line = arith.muli %thread, %c4 : index
{index}
  %v = vector.transfer_read %in[%k], %pad {{in_bounds = [true]}} : tensor<{elements}xf32>, vector<4xf32>
  %w = vector.transfer_write %v, %out[%line] {{in_bounds = [true]}} : vector<4xf32>, tensor<{4 * threads}xf32>
  return %w : tensor<{4 * threads}xf32>
}}""")
    return execute(module, [source, out])[0]


def test_transfers_move_whole_rows():
    got = transfer("%c12 = arith.constant 12 : index\n%k = arith.subi %c12, %line : index")
    assert got.reshape(4, 4).tolist() == np.arange(16).reshape(4, 4)[::-1].tolist()


def test_a_misaligned_row_is_an_error():
    with pytest.raises(
        ExecutionError, match=r"vector\.transfer_read in block 0, thread 0 accesses 4 elements from an index that is no"
    ):
        transfer("%c1 = arith.constant 1 : index\n%k = arith.addi %line, %c1 : index", elements=20)


def test_a_row_that_leaves_the_tensor_is_out_of_bounds():
    with pytest.raises(ExecutionError, match="reads index 3 of argument 0, which has 3 of 16 bytes each"):
        transfer("%c0 = arith.constant 0 : index\n%k = arith.addi %line, %c0 : index", elements=14)


# ---- elements in another order -----------------------------------------------------------------------------------------------------------

A = np.arange(12).reshape(3, 4) * 3 - 7
B = 100 - np.arange(12).reshape(3, 4)
TWO = f"""
%a = arith.constant dense<{A.tolist()}> : vector<3x4xi32>
%b = arith.constant dense<{B.tolist()}> : vector<3x4xi32>
"""


def elements(ops: str, shape: tuple[int, ...], element: str = "i32") -> np.ndarray:
    """The elements of %v, a vector of that shape."""
    count = int(np.prod(shape))
    dims = "".join(f"{extent}x" for extent in shape)
    ops += f"""
%flat = vector.shape_cast %v : vector<{dims}{element}> to vector<{count}x{element}>
%r = vector.extract %flat[%thread] : {element} from vector<{count}x{element}>"""
    return per_thread(ops, element, threads=count).reshape(shape)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("%v = vector.transpose %a, [1, 0] : vector<3x4xi32> to vector<4x3xi32>", A.T),
        ("%v = vector.shape_cast %a : vector<3x4xi32> to vector<2x6xi32>", A.reshape(2, 6)),
        (
            "%v = vector.interleave %a, %b : vector<3x4xi32> -> vector<3x8xi32>",
            np.stack([A, B], axis=-1).reshape(3, 8),
        ),
        (
            "%v = vector.extract_strided_slice %a {offsets = [1, 2], sizes = [2, 1], strides = [1, 1]}"
            " : vector<3x4xi32> to vector<2x1xi32>",
            A[1:3, 2:3],
        ),
        (
            "%v = vector.extract_strided_slice %a {offsets = [2], sizes = [1], strides = [1]}"
            " : vector<3x4xi32> to vector<1x4xi32>",
            A[2:3],
        ),
    ],
)
def test_elements_in_another_order(line: str, wanted: np.ndarray):
    np.testing.assert_array_equal(elements(TWO + line, wanted.shape), wanted)


def test_a_part_of_a_vector_is_replaced():
    ops = """
    %w = arith.constant dense<[1, 2]> : vector<2xi32>
    %v = vector.insert_strided_slice %w, %a {offsets = [1, 2], strides = [1]} : vector<2xi32> into vector<3x4xi32>"""
    wanted = A.copy()
    wanted[1, 2:] = 1, 2
    np.testing.assert_array_equal(elements(TWO + ops, (3, 4)), wanted)


def test_a_select_takes_a_condition_for_each_element():
    ops = (
        TWO
        + """
    %c = arith.cmpi slt, %a, %zero : vector<3x4xi32>
    %v = arith.select %c, %a, %b : vector<3x4xi1>, vector<3x4xi32>"""
    )
    ops = "%zero = arith.constant dense<6> : vector<3x4xi32>\n" + ops
    np.testing.assert_array_equal(elements(ops, (3, 4)), np.where(A < 6, A, B))


# ---- memory, element by element ----------------------------------------------------------------------------------------------------------

MEMORY = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %memory = memref.alloca() : memref<8xi32>
    %base = arith.constant dense<[10, 11, 12, 13, 14, 15, 16, 17]> : vector<8xi32>
    vector.store %base, %memory[%c0] : memref<8xi32>, vector<8xi32>
    %old = arith.constant dense<[-1, -2, -3, -4]> : vector<4xi32>
    %mask = arith.constant dense<[true, false, true, true]> : vector<4xi1>
    %places = arith.constant dense<[4, 7, 0, 4]> : vector<4xi32>
    """


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("vector.load %memory[%c1] : memref<8xi32>, vector<4xi32>", [11, 12, 13, 14]),
    ],
)
def test_reads_of_memory(line: str, wanted: list[int]):
    ops = MEMORY + f"%zero = arith.constant 0 : i32\n%v = {line}"
    assert elements(ops, (4,)).tolist() == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("vector.store %old, %memory[%c1] : memref<8xi32>, vector<4xi32>", [10, -1, -2, -3, -4, 15, 16, 17]),
    ],
)
def test_writes_of_memory(line: str, wanted: list[int]):
    ops = MEMORY + line + "\n%v = vector.load %memory[%c0] : memref<8xi32>, vector<8xi32>"
    assert elements(ops, (8,)).tolist() == wanted


@pytest.mark.parametrize(
    "line",
    [
        "%v = vector.transfer_read %t[%i], %pad : tensor<8xi32>, vector<4xi32>",
        "%v = vector.transfer_read %t[%i], %pad, %m {in_bounds = [true]} : tensor<8xi32>, vector<4xi32>",
    ],
)
def test_a_transfer_of_less_than_a_row_is_refused(line: str):
    ops = f"""
    %t = arith.constant dense<1> : tensor<8xi32>
    %m = arith.constant dense<true> : vector<4xi1>
    %pad = arith.constant -99 : i32
    {line}
    %r = vector.extract %v[0] : i32 from vector<4xi32>"""
    with pytest.raises(Unsupported, match=r"vector\.transfer_read of other elements than a whole row"):
        per_thread(ops, "i32", i=("index", np.zeros(8)))
