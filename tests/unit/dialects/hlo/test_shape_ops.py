"""Ops that move elements: values against NumPy, maps against values by visiting every element, rules against what must be refused."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.builder import Builder
from xdsl.dialects.builtin import IndexType, f32
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

import xla_emitters as xe
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.shape_ops import MoveOp, same_place
from xla_emitters.dialects.hlo.types import array_type, dims_of
from xla_emitters.errors import VerifyError
from xla_emitters.text.hlo import parse_hlo


def last(*lines: str) -> HloOp:
    """The root of a computation of these instructions."""
    body = "\n".join(lines)
    module = parse_hlo(f"e {{\n{body}\n}}")
    module.verify()
    *_, root = (op for op in module.walk() if isinstance(op, HloOp))
    return root


def value(op: HloOp, *arrays: Any) -> np.ndarray:
    return op.evaluate([np.asarray(array) for array in arrays], lambda *_: None)


def counted(*shape: int) -> np.ndarray:
    """Every element different: 1, 2, ... in row-major order."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


X = "x = s32[2,3,4] parameter(0)"
x = counted(2, 3, 4)

MOVES = [
    ((X, "r = s32[5,2,3,4] broadcast(x), dimensions={1,2,3}"), np.broadcast_to(x, (5, 2, 3, 4))),
    ((X, "r = s32[4,2,7,3] broadcast(x), dimensions={1,3,0}"), np.broadcast_to(x.transpose(2, 0, 1)[:, :, None], (4, 2, 7, 3))),
    (("x = s32[] parameter(0)", "r = s32[2,2] broadcast(x), dimensions={}"), np.full((2, 2), 1)),
    ((X, "r = s32[6,4] reshape(x)"), x.reshape(6, 4)),
    ((X, "r = s32[1,2,12,1] reshape(x)"), x.reshape(1, 2, 12, 1)),
    ((X, "r = s32[4,2,3] transpose(x), dimensions={2,0,1}"), x.transpose(2, 0, 1)),
    ((X, "r = s32[2,3,4] reverse(x), dimensions={0,2}"), x[::-1, :, ::-1]),
    ((X, "r = s32[1,3,2] slice(x), slice={[1:2], [0:3:1], [1:4:2]}"), x[1:2, :, 1:4:2]),
    ((X, "r = s32[0,3,4] slice(x), slice={[1:1], [0:3], [0:4]}"), x[1:1]),
    (("x = s32[] parameter(0)", "r = s32[] transpose(x), dimensions={}"), counted()),
    (("x = s32[] parameter(0)", "r = s32[] bitcast(x)"), counted()),
    ((X, "r = s32[24] bitcast(x)"), x.reshape(24)),
    # The same memory with the dimensions named the other way round: a transpose.
    (("x = s32[2,3]{0,1} parameter(0)", "r = s32[3,2]{1,0} bitcast(x)"), counted(2, 3).T),
    # Memory order of the operand is column major: flattening it is not NumPy's reshape.
    (("x = s32[2,3]{0,1} parameter(0)", "r = s32[6] bitcast(x)"), counted(2, 3).T.reshape(6)),
    (("x = s32[2,3,4]{1,2,0} parameter(0)", "r = s32[6,4]{0,1} bitcast(x)"), counted(2, 3, 4).transpose(0, 2, 1).reshape(4, 6).T),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), MOVES, ids=[lines[1].split(" = ")[1] for lines, _ in MOVES])
def test_values_are_numpys_and_maps_are_the_values(lines: tuple[str, ...], expected: np.ndarray):
    op = last(*lines)
    operand = counted(*dims_of(op.operands[0]))
    result = value(op, operand)
    assert result.shape == dims_of(op.result)
    assert result.tolist() == expected.tolist()
    (map,) = op.output_to_input()
    for index in itertools.product(*(range(size) for size in result.shape)):
        assert map.constraints_satisfied(index)
        assert result[index] == operand[map.evaluate(index)]


LAYOUTS = ((0,), (0, 1), (1, 0), (0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0))


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_the_same_place_is_the_same_number_of_elements_from_the_first(first: tuple[int, ...], second: tuple[int, ...]):
    """Arrays of 24 elements, minor to major."""
    sizes = {1: (24,), 2: (4, 6), 3: (2, 3, 4)}

    def numbered(order: tuple[int, ...]) -> np.ndarray:
        """Which element of memory each is."""
        laid = counted(*(sizes[len(order)][dim] for dim in reversed(order)))
        return laid.transpose(np.argsort(order[::-1]))

    types = (array_type(f32, sizes[len(order)], order) for order in (first, second))
    map, place, other = same_place(*types), numbered(first), numbered(second)
    assert all(place[index] == other[map.evaluate(index)] for index in np.ndindex(*place.shape))


BITCASTS = [
    ("f32[3]", "u32[3]", np.array([1.0, -0.0, np.inf], np.float32), [0x3F800000, 0x80000000, 0x7F800000]),
    ("f32[2]", "u16[4]", np.array([1.0, 2.0], np.float32), [0, 0x3F80, 0, 0x4000]),
    ("u8[2]", "s4[4]", np.array([0xE1, 0x83], np.uint8), [1, -2, 3, -8]),
    ("s4[4]", "u8[2]", np.array([1, -2, 3, -8]).astype(ml_dtypes.int4), [0xE1, 0x83]),
    ("s16[1]", "u4[4]", np.array([0x4321], np.int16), [1, 2, 3, 4]),
    ("f4e2m1fn[2]", "u4[2]", np.array([6, -0.5]).astype(ml_dtypes.float4_e2m1fn), [0b0111, 0b1001]),
]


@pytest.mark.parametrize(
    ("source", "target", "array", "expected"), BITCASTS, ids=[f"{row[0]} {row[1]}" for row in BITCASTS]
)
def test_a_bitcast_to_other_elements_keeps_the_bits(source: str, target: str, array: np.ndarray, expected: list[int]):
    """The first is in the lowest bits. The numbers are JAX's, of bitcast_convert_type; those of the f4 by the format's definition."""
    assert value(last(f"x = {source} parameter(0)", f"r = {target} bitcast(x)"), array).astype(int).tolist() == expected
    text = f"HloModule m ENTRY e {{ x = {source} parameter(0) ROOT r = {target} bitcast(x) }}"
    assert xe.compile(text)(array).astype(int).tolist() == expected


def test_a_bitcast_to_another_width_beside_lone_instructions():
    """It is a copy of bytes, and each of the others a kernel: so XLA has them before it fuses. The numbers are JAX's."""
    text = "HloModule m ENTRY e { x = u8[2] parameter(0) b = s4[4] bitcast(x) c = s8[4] convert(b) ROOT n = s8[4] negate(c) }"
    assert xe.compile(text)(np.array([0xE1, 0x83], np.uint8)).tolist() == [-1, 2, -3, 8]
    text = "HloModule m ENTRY e { x = f32[2] parameter(0) n = f32[2] negate(x) ROOT b = u16[4] bitcast(n) }"
    assert xe.compile(text)(np.array([-1, 2], np.float32)).tolist() == [0, 0x3F80, 0, 0xC000]


def test_results_are_arrays_of_their_own():
    """A view that changes with its operand would make the reference wrong when memory is reused."""
    operand = counted(2, 3)
    for text in ("s32[1,3] slice(x), slice={[1:2], [0:3]}", "s32[2,3] reverse(x), dimensions={0}"):
        op = last("x = s32[2,3] parameter(0)", f"r = {text}")
        assert not np.shares_memory(value(op, operand), operand)


# -------------------------------------------------------------------------------------------------------------------------- code


class Recorder:
    """An element context whose operands are the indices asked for; for ops that move elements, which ask for one operand's and no more."""

    def __init__(self, rank: int):
        self.block = Block(arg_types=[IndexType()] * rank)
        self.builder = Builder(InsertPoint.at_end(self.block))
        self.indices = tuple(self.block.args)
        self.asked: list[SSAValue] = []

    def insert(self, op: Any) -> Any:
        return self.builder.insert(op)

    def operand(self, i: int, indices: Any = None) -> Any:
        self.asked = list(indices)
        return self.block.args[0]

    def elements(self, i: int, indices: Any = None) -> Any:
        return (self.operand(i, indices),)

    def branch(self, *_: Any) -> Any:
        raise NotImplementedError

    loop = call = branch


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("s32[5,2,3,4] broadcast(x), dimensions={1,2,3}", [1, 2, 3]),
        ("s32[4,2,3] transpose(x), dimensions={2,0,1}", [1, 2, 0]),
    ],
)
def test_a_broadcast_or_transpose_only_chooses_indices(text: str, asked: list[int]):
    op = last(X, f"r = {text}")
    assert isinstance(op, MoveOp)
    e = Recorder(len(dims_of(op.result)))
    op.emit_element(e)
    assert e.asked == [e.block.args[i] for i in asked]
    assert not e.block.ops


def test_a_reshape_computes_its_indices():
    op = last(X, "r = s32[6,4] reshape(x)")
    e = Recorder(2)
    op.emit_element(e)
    assert [str(o.name) for o in e.block.ops] == ["xla_gpu.apply_indexing"] * 2
    assert e.asked[2] is e.block.args[1]


# ------------------------------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s32[5,2,3] broadcast(x), dimensions={1,2}", "broadcast of s32[2,3,4] with 2 dimensions"),
        ("s32[2,3,5] broadcast(x), dimensions={0,1,2}", "broadcast changes a size"),
        ("s32[2,3,4] broadcast(x), dimensions={0,1,3}", "are not different dimensions of an array of rank 3"),
        ("f32[2,3,4] broadcast(x), dimensions={0,1,2}", "'broadcast' keeps the element type"),
        ("s32[6,5] reshape(x)", "'reshape' changes the number of elements"),
        ("s64[24] bitcast(x)", "'bitcast' changes the number of bits"),
        ("s32[4,3,2] transpose(x), dimensions={2,1}", "with 2 dimensions"),
        ("s32[4,3,2] transpose(x), dimensions={2,1,1}", "not different dimensions"),
        ("s32[2,4,3] transpose(x), dimensions={2,1,0}", "'transpose' cannot have this result shape"),
        ("s32[2,3,4] reverse(x), dimensions={3}", "not different dimensions"),
        ("s32[2,3,4] slice(x), slice={[0:2], [0:3]}", "with 2 ranges"),
        ("s32[2,3,5] slice(x), slice={[0:2], [0:3], [0:5]}", "slice range [0:5:1] is not within dimension 2"),
        ("s32[2,3,4] slice(x), slice={[0:2], [0:3], [0:4:0]}", "slice range [0:4:0]"),
        ("s32[2,3,3] slice(x), slice={[0:2], [0:3], [0:4:2]}", "'slice' cannot have this result shape"),
        ("s32[4,3,4] concatenate(x, x), dimensions={0,1}", "'concatenate' has one number in dimensions="),
        ("s32[4,3,4] concatenate(x, x), dimensions={3}", "dimensions=3 of 'concatenate' is not a dimension of an array of rank 3"),
        ("s32[4,3,5] concatenate(x, x), dimensions={0}", "'concatenate' cannot have this result shape"),
        ("s32[3,3,4] concatenate(x, i), dimensions={0}", "differ in more than the size along one dimension"),
        ("s32[2,3,4] pad(x, x), padding=0_0x0_0x0_0", "not a scalar of the operand's type"),
        ("s32[2,3,4] pad(x, i), padding=0_0x0_0", "padding of 2 dimensions does not fit"),
        ("s32[2,3,4] pad(x, i), padding=0_1x0_0x0_0", "'pad' cannot have this result shape"),
        ("s32[1,1,1] dynamic-slice(x, i, i), dynamic_slice_sizes={1,1,1}", "with 2 start indices"),
        ("s32[1,1,1] dynamic-slice(x, i, i, x), dynamic_slice_sizes={1,1,1}", "a start index is an integer scalar"),
        ("s32[1,1,5] dynamic-slice(x, i, i, i), dynamic_slice_sizes={1,1,5}", "no window of sizes {1,1,5} fits inside"),
        ("s32[2,3,4] dynamic-update-slice(x, i, i, i, i)", "the update does not fit the operand"),
    ],
)  # fmt: skip
def test_a_shape_that_does_not_fit_is_refused(line: str, message: str):
    with pytest.raises(VerifyError) as error:
        last(X, "i = s32[] parameter(1)", f"r = {line}")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "line",
    [
        "f32[?,2] broadcast(x), dimensions={0}",
        "f32[2,?] reshape(x)",
        "f32[?] reverse(x), dimensions={0}",
        "f32[3] slice(x), slice={[1:4]}",
        "f32[?] concatenate(x, x), dimensions={0}",
    ],
)
def test_sizes_that_are_not_known_are_not_compared(line: str):
    last("x = f32[?] parameter(0)", f"r = {line}")


# ------------------------------------------------------------------------------------------- maps on random shapes


def holds(map: IndexingMap, index: tuple[int, ...]) -> bool:
    """Whether an index is in the domain of a map without symbols."""
    bounds = [variable.bounds.contains(number) for variable, number in zip(map.dims, index, strict=True)]
    return map.constraints_satisfied(index) and all(bounds)


def test_maps_of_concatenate_lead_each_index_to_one_operand():
    rng = np.random.default_rng(5)
    for _ in range(30):
        rank = int(rng.integers(1, 4))
        axis = int(rng.integers(rank))
        shapes = [list(map(int, rng.integers(1, 4, rank)))] * int(rng.integers(1, 5))
        shapes = [[*shape[:axis], int(rng.integers(0, 4)), *shape[axis + 1 :]] for shape in shapes]
        arrays = [counted(*shape) + 1000 * i for i, shape in enumerate(shapes)]
        lines = [f"x{i} = s32[{','.join(map(str, shape))}] parameter({i})" for i, shape in enumerate(shapes)]
        whole = [*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]]
        names = ", ".join(f"x{i}" for i in range(len(shapes)))
        op = last(*lines, f"r = s32[{','.join(map(str, whole))}] concatenate({names}), dimensions={{{axis}}}")
        result = np.concatenate(arrays, axis)
        assert value(op, *arrays).tolist() == result.tolist()
        maps = op.output_to_input()
        for index in np.ndindex(*whole):
            holders = [i for i, moved in enumerate(maps) if holds(moved, index)]
            assert [arrays[i][maps[i].evaluate(index)] for i in holders] == [result[index]]


def padded(x: np.ndarray, edges: list[tuple[int, int, int]]) -> dict[tuple[int, ...], int]:
    """By definition: element i of a dimension goes to low + i * (interior + 1); what leads outside is dropped."""
    found = dict[tuple[int, ...], int]()
    for index in np.ndindex(*x.shape):
        found[tuple(low + i * (interior + 1) for i, (low, _, interior) in zip(index, edges, strict=True))] = int(
            x[index]
        )
    return found


def test_the_map_of_pad_holds_exactly_where_the_operand_is():
    rng = np.random.default_rng(6)
    for _ in range(60):
        rank = int(rng.integers(1, 3))
        dims = [int(n) for n in rng.integers(0, 5, rank)]
        edges = [(int(rng.integers(-3, 4)), int(rng.integers(-3, 4)), int(rng.integers(0, 3))) for _ in dims]
        out = [low + high + n + max(n - 1, 0) * gap for n, (low, high, gap) in zip(dims, edges, strict=True)]
        if any(size < 0 for size in out):
            continue
        text = "x".join(f"{low}_{high}_{gap}" for low, high, gap in edges)
        op = last(
            f"x = s32[{','.join(map(str, dims))}] parameter(0)",
            "z = s32[] parameter(1)",
            f"r = s32[{','.join(map(str, out))}] pad(x, z), padding={text}",
        )
        x = counted(*dims)
        wanted = padded(x, edges)
        result, (moved, filler) = value(op, x, np.int32(-1)), op.output_to_input()
        assert filler.num_results == 0
        for index in np.ndindex(*out):
            assert result[index] == wanted.get(index, -1)
            assert holds(moved, index) == (index in wanted)
            if index in wanted:
                assert x[moved.evaluate(index)] == wanted[index]


@pytest.mark.parametrize("starts", [(0, 0), (2, 1), (-5, 100), (3, -1)])
def test_maps_of_dynamic_slices_take_the_clamped_start(starts: tuple[int, int]):
    x, u = counted(6, 5), -counted(3, 4)
    scalars = (
        "x = s32[6,5] parameter(0)",
        "i = s32[] parameter(1)",
        "j = s32[] parameter(2)",
        "u = s32[3,4] parameter(3)",
    )
    clamped = tuple(int(np.clip(start, 0, last)) for start, last in zip(starts, (3, 1), strict=True))
    numbers = [np.int32(start) for start in starts]
    window = x[clamped[0] : clamped[0] + 3, clamped[1] : clamped[1] + 4]

    taken = last(*scalars, "r = s32[3,4] dynamic-slice(x, i, j), dynamic_slice_sizes={3,4}")
    assert value(taken, x, *numbers).tolist() == window.tolist()
    moved, *scalar_maps = taken.output_to_input()
    assert [m.num_results for m in scalar_maps] == [0, 0]
    for index in np.ndindex(3, 4):
        assert x[moved.evaluate(index, clamped)] == window[index]

    updated = last(*scalars, "r = s32[6,5] dynamic-update-slice(x, u, i, j)")
    result, wanted = value(updated, x, u, *numbers), x.copy()
    wanted[clamped[0] : clamped[0] + 3, clamped[1] : clamped[1] + 4] = u
    assert result.tolist() == wanted.tolist()
    own, into, *scalar_maps = updated.output_to_input()
    assert [m.num_results for m in scalar_maps] == [0, 0]
    for index in np.ndindex(6, 5):
        at = into.evaluate(index, clamped)
        inside = all(0 <= n < size for n, size in zip(at, u.shape, strict=True))
        assert result[index] == (u[at] if inside else x[own.evaluate(index)])
