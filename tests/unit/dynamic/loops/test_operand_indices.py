"""Every op that moves elements, as a loop: the bits of the op's definition in NumPy, at sizes 0, 1 and more."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.loops_of_programs import fuse, with_loops

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.buffers.disc_legalize_to_lhlo import DiscLegalizeToLhloPass
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.program_runs import load
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.runtime.reference.reference import evaluate

DTYPES = {
    "f32": np.float32,
    "i32": np.int32,
    "i64": np.int64,
    "ui32": np.uint32,
    "ui8": np.uint8,
    "i1": np.bool_,
    "ui16": np.uint16,
}
DTYPES |= {"bf16": ml_dtypes.bfloat16, "complex<f32>": np.complex64, "f8E4M3FN": ml_dtypes.float8_e4m3fn}


def module_of(parameters: Sequence[str], op: str, result: str) -> str:
    """A computation of one op: `%0` ... are its parameters; `list` after a parameter's type puts it into the host's memory."""
    lines, types = list[str](), list[str]()
    for number, parameter in enumerate(parameters):
        ir_type, *where = parameter.rsplit(" list", 1)
        types.append(ir_type)
        device = ', disc.device = "cpu"' if where else ""
        lines.append(f'%{number} = hlo.parameter {number} {{name = "p{number}"{device}}} : {ir_type}')
    lines.append(f"%y = {op} : ({', '.join(types)}) -> {result}")
    lines.append(f"hlo.return %y : {result}")
    body = "\n  ".join(lines)
    return f"hlo.computation @main entry {{\n  {body}\n}}"


def drawn(ir_type: str, shape: Any) -> Array:
    """Numbers for a parameter: a list stands for itself, a tuple is a shape."""
    element = ir_type.removesuffix(" list").removesuffix(">").rsplit("x", 1)[-1].removeprefix("tensor<")
    element = "complex<f32>" if "complex" in ir_type else element
    if not isinstance(shape, tuple):
        return np.asarray(shape, DTYPES[element])
    rng = np.random.default_rng(len(shape))
    numbers = rng.integers(-100, 100, size=shape) if element != "i1" else rng.integers(0, 2, size=shape)
    return np.asarray(numbers).astype(DTYPES[element])


def check(parameters: Sequence[str], op: str, result: str, inputs: Sequence[Any]) -> None:
    """The op as a loop gives what its class says in NumPy."""
    module = parse_ir(module_of(parameters, op, result))
    arrays = [drawn(ir_type, shape) for ir_type, shape in zip(parameters, inputs, strict=True)]
    (wanted,) = evaluate(entry_of(module), arrays)
    run_pass(DiscLegalizeToLhloPass(), make_context(), module, verify=True)
    assert fuse(module, 1) == 1
    with_loops(module)
    assert not any(isinstance(inner, BufferOp) for inner in module.walk())
    (found,) = load(module).run(arrays)
    assert found.shape == wanted.shape
    assert same_bits(found, wanted), (found, wanted)


F = "tensor<?x?xf32>"
LIST1, LIST2, LIST3 = (f"tensor<{n}xi32> list" for n in (1, 2, 3))
GATHER = (
    "offset_dims = array<i64: {offset}>, collapsed_slice_dims = array<i64: {collapsed}>, start_index_map = array<i64: {mapped}>, "
    'index_vector_dim = {along} : i64, name = "y"'
)


def gather(offset: str, collapsed: str, mapped: str, along: int, sizes: str | None, opcode: str = "gather") -> str:
    """The op's text. sizes  those of a slice, or None where operand 2 holds them"""
    said = GATHER.format(offset=offset, collapsed=collapsed, mapped=mapped, along=along)
    operands = "%0, %1" if sizes is not None else "%0, %1, %2"
    slices = f", slice_sizes = array<i64: {sizes}>" if sizes is not None else ""
    return f"hlo.{opcode} {operands} {{{said}{slices}}}".replace("i64: >", "i64>")


# (types of the parameters, op, type of the result, inputs of several runs)
CASES: dict[str, tuple[Sequence[str], str, str, Sequence[Sequence[Any]]]] = {
    "broadcast": (
        ["tensor<5xf32>"],
        'hlo.broadcast %0 {dimensions = array<i64: 1>, name = "y"}',
        "tensor<3x5xf32>",
        [[(5,)]],
    ),
    "broadcast of a scalar": (
        ["tensor<bf16>", LIST2],
        'hlo.dynamic_broadcast_in_dim %0, %1 {dimensions = array<i64>, name = "y"}',
        "tensor<?x?xbf16>",
        [[(), [2, 3]], [(), [0, 3]]],
    ),
    "broadcast, a size that may be 1": (
        [F, LIST3],
        'hlo.dynamic_broadcast_in_dim %0, %1 {dimensions = array<i64: 2, 0>, name = "y"}',
        "tensor<?x?x?xf32>",
        [[(1, 4), [4, 2, 3]], [(3, 1), [4, 2, 3]], [(1, 1), [4, 2, 3]], [(3, 4), [4, 2, 3]], [(1, 0), [0, 2, 3]]],
    ),
    "broadcast, said to be repeated": (
        ["tensor<?x4xf32>", LIST2],
        'hlo.dynamic_broadcast_in_dim %0, %1 {dimensions = array<i64: 0, 1>, known_expanding = array<i64: 0>, name = "y"}',
        "tensor<?x4xf32>",
        [[(1, 4), [3, 4]]],
    ),
    "transpose": (
        ["tensor<?x?x3xui8>"],
        'hlo.transpose %0 {dimensions = array<i64: 2, 0, 1>, name = "y"}',
        "tensor<3x?x?xui8>",
        [[(2, 4, 3)], [(0, 5, 3)], [(1, 1, 3)]],
    ),
    "reshape, dimensions joined": (
        ["tensor<?x?x4xf32>", LIST2],
        'hlo.dynamic_reshape %0, %1 {name = "y"}',
        "tensor<?x4xf32>",
        [[(2, 3, 4), [6, 4]], [(0, 3, 4), [0, 4]]],
    ),
    "reshape, no group in common": (
        [F, LIST2],
        'hlo.dynamic_reshape %0, %1 {name = "y"}',
        F,
        [[(4, 6), [3, 8]], [(4, 6), [1, 24]], [(4, 0), [0, 7]]],
    ),
    "reshape, sizes 1 come and go": (
        ["tensor<1x?x1x3xf32>", LIST3],
        'hlo.dynamic_reshape %0, %1 {name = "y"}',
        "tensor<?x3x1xf32>",
        [[(1, 5, 1, 3), [5, 3, 1]]],
    ),
    "reshape to a scalar": (
        ["tensor<?x?xf32>", "tensor<0xi32> list"],
        'hlo.dynamic_reshape %0, %1 {name = "y"}',
        "tensor<f32>",
        [[(1, 1), np.zeros(0, np.int32)]],
    ),
    "reshape of a scalar": (
        ["tensor<f32>", LIST2],
        'hlo.dynamic_reshape %0, %1 {name = "y"}',
        F,
        [[(), [1, 1]]],
    ),
    "slice": (
        ["tensor<9x?xf32>"],
        'hlo.slice %0 {slice = [array<i64: 1, 8, 3>, array<i64: 2, 5, 1>], name = "y"}',
        "tensor<3x3xf32>",
        [[(9, 5)], [(9, 7)]],
    ),
    "real_dynamic_slice": (
        [F, LIST2, LIST2, LIST2],
        'hlo.real_dynamic_slice %0, %1, %2, %3 {name = "y"}',
        F,
        [[(5, 9), [1, 2], [4, 9], [1, 3]], [(5, 9), [0, 0], [5, 9], [1, 1]], [(5, 9), [2, 2], [2, 9], [1, 2]]],
    ),
    "reverse": (
        [F],
        'hlo.reverse %0 {dimensions = array<i64: 1>, name = "y"}',
        F,
        [[(3, 4)], [(3, 0)], [(1, 1)]],
    ),
    "concatenate": (
        [F, F, "tensor<?x3xf32>", F],
        'hlo.concatenate %0, %1, %2, %3 {dimensions = array<i64: 1>, name = "y"}',
        F,
        [[(2, 1), (2, 4), (2, 3), (2, 2)], [(2, 0), (2, 0), (2, 3), (2, 0)], [(0, 1), (0, 1), (0, 3), (0, 1)]],
    ),
    "pad": (
        ["tensor<?x?xf32>", "tensor<f32>"],
        'hlo.pad %0, %1 {padding = [array<i64: 1, 2, 0>, array<i64: 0, -1, 2>], name = "y"}',
        F,
        [[(3, 4), ()], [(0, 1), ()], [(1, 3), ()]],
    ),
    "pad before and between alone": (
        ["tensor<?xf32>", "tensor<f32>"],
        'hlo.pad %0, %1 {padding = [array<i64: 2, -1, 1>], name = "y"}',
        "tensor<?xf32>",
        [[(4,), ()], [(1,), ()]],
    ),
    "pad before alone": (
        ["tensor<?xf32>", "tensor<f32>"],
        'hlo.pad %0, %1 {padding = [array<i64: 2, 0, 0>], name = "y"}',
        "tensor<?xf32>",
        [[(4,), ()], [(0,), ()]],
    ),
    "pad, elements cut off": (
        ["tensor<?x4xf32>", "tensor<f32>"],
        'hlo.pad %0, %1 {padding = [array<i64: -1, 3, 1>, array<i64: 0, 0, 0>], name = "y"}',
        "tensor<?x4xf32>",
        [[(3, 4), ()], [(1, 4), ()], [(2, 4), ()]],
    ),
    "dynamic_pad": (
        [F, "tensor<f32>", LIST2, LIST2, LIST2],
        'hlo.dynamic_pad %0, %1, %2, %3, %4 {name = "y"}',
        F,
        [
            [(3, 4), (), [1, 0], [2, 1], [0, 2]],
            [(3, 4), (), [-1, -2], [-1, 3], [0, 1]],
            [(0, 4), (), [2, 0], [1, 0], [3, 0]],
            [(3, 4), (), [0, 0], [0, 0], [0, 0]],
        ],
    ),
    "iota": (
        [LIST2],
        'hlo.dynamic_iota %0 {iota_dimension = 1 : i64, name = "y"}',
        "tensor<?x?xi32>",
        [[[3, 4]], [[0, 2]], [[2, 0]]],
    ),
    "iota of floats": (
        [LIST1],
        'hlo.dynamic_iota %0 {iota_dimension = 0 : i64, name = "y"}',
        "tensor<?xbf16>",
        [[[300]]],
    ),
    "dynamic_slice, clamped": (
        [F, "tensor<i32>", "tensor<i32>"],
        'hlo.dynamic_slice %0, %1, %2 {dynamic_slice_sizes = array<i64: 2, 3>, name = "y"}',
        "tensor<2x3xf32>",
        [[(4, 5), start, other] for start, other in ((0, 1), (-7, 9), (3, 3))] + [[(2, 3), 1, 1]],
    ),
    "dynamic_slice, wide starts": (
        [F, "tensor<i64>", "tensor<i64>"],
        'hlo.dynamic_slice %0, %1, %2 {dynamic_slice_sizes = array<i64: 2, 3>, name = "y"}',
        "tensor<2x3xf32>",
        [[(4, 9), 2**32 + 1, 2**31 + 1], [(4, 9), -(2**40), 4], [(4, 9), 1, 0]],
    ),
    "dynamic_slice, unsigned starts": (
        [F, "tensor<ui32>", "tensor<ui32>"],
        'hlo.dynamic_slice %0, %1, %2 {dynamic_slice_sizes = array<i64: 2, 3>, name = "y"}',
        "tensor<2x3xf32>",
        [[(4, 9), 1, 2**31 + 1], [(4, 9), 2**32 - 1, 4], [(4, 9), 0, 0]],
    ),
    "dynamic_update_slice": (
        [F, F, "tensor<i32>", "tensor<i32>"],
        'hlo.dynamic_update_slice %0, %1, %2, %3 {name = "y"}',
        F,
        [[(4, 5), (2, 3), 1, 1], [(4, 5), (2, 3), 9, -3], [(4, 5), (4, 5), 1, 1], [(4, 5), (0, 5), 4, 0]],
    ),
    "gather of rows, clamped": (
        ["tensor<?x3xf32>", "tensor<?x1xi32>"],
        gather("1", "0", "0", 1, "1, 3"),
        "tensor<?x3xf32>",
        [[(5, 3), [[0], [4], [9], [-2]]], [(1, 3), [[0], [1]]], [(4, 3), np.zeros((0, 1), np.int32)]],
    ),
    "gather of windows": (
        [F, "tensor<2x?xi64>"],
        gather("0, 2", "", "1, 0", 0, "2, 3"),
        "tensor<2x?x3xf32>",
        [[(4, 5), [[0, 2, 9], [1, -1, 2]]]],
    ),
    "gather with the row as a scalar": (
        ["tensor<?xf32>", "tensor<?xi32>"],
        gather("", "0", "0", 1, "1"),
        "tensor<?xf32>",
        [[(5,), [4, 0, 7]]],
    ),
    "gather in batches": (
        ["tensor<?x?xf32>", "tensor<?x2x1xi32>"],
        gather("", "1", "1", 2, "1, 1").replace(
            "array<i64: 1>, start",
            "array<i64: 1>, operand_batching_dims = array<i64: 0>, start_indices_batching_dims = array<i64: 0>, start",
        ),
        "tensor<?x2xf32>",
        [[(3, 4), [[[0], [3]], [[1], [9]], [[2], [-1]]]]],
    ),
    "dynamic_gather": (
        [F, "tensor<?x1xi32>", LIST2],
        gather("1", "0", "0", 1, None, "dynamic_gather"),
        F,
        [[(5, 3), [[0], [4], [9]], [1, 3]], [(5, 3), [[2]], [1, 2]]],
    ),
    "bitcast": (
        ["tensor<3x4xf32>"],
        'hlo.bitcast %0 {name = "y"}',
        "tensor<2x6xi32>",
        [[(3, 4)]],
    ),
    "truth values": (
        ["tensor<?xi1>", "tensor<?xi1>"],
        'hlo.and %0, %1 {name = "y"}',
        "tensor<?xi1>",
        [[(7,), (7,)], [(0,), (0,)]],
    ),
    "numbers without a sign": (
        ["tensor<?xui32>", "tensor<?xui32>"],
        'hlo.divide %0, %1 {name = "y"}',
        "tensor<?xui32>",
        [[[7, 2**32 - 1, 5], [2, 3, 0]]],
    ),
    "complex numbers": (
        ["tensor<?xcomplex<f32>>", "tensor<?xcomplex<f32>>"],
        'hlo.multiply %0, %1 {name = "y"}',
        "tensor<?xcomplex<f32>>",
        [[[1 + 2j, 3 - 1j], [0.5j, 2 + 2j]]],
    ),
    "narrow floats": (
        ["tensor<?xf8E4M3FN>", "tensor<?xf8E4M3FN>"],
        'hlo.add %0, %1 {name = "y"}',
        "tensor<?xf8E4M3FN>",
        [[(9,), (9,)]],
    ),
    "bits": (
        ["tensor<?xf32>"],
        'hlo.bitcast_convert %0 {name = "y"}',
        "tensor<?x4xui8>",
        [[(3,)]],
    ),
    "bits together": (
        ["tensor<?x2xui8>"],
        'hlo.bitcast_convert %0 {name = "y"}',
        "tensor<?xui16>",
        [[(3, 2)]],
    ),
    "clamp by scalars": (
        ["tensor<f32>", "tensor<?xf32>", "tensor<f32>"],
        'hlo.clamp %0, %1, %2 {name = "y"}',
        "tensor<?xf32>",
        [[-3.0, (9,), 50.0]],
    ),
    "select by a scalar": (
        ["tensor<i1>", "tensor<?xf32>", "tensor<?xf32>"],
        'hlo.select %0, %1, %2 {name = "y"}',
        "tensor<?xf32>",
        [[True, (4,), (4,)], [False, (4,), (4,)]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_loop_gives_the_bits_of_the_definition(name: str) -> None:
    parameters, op, result, runs = CASES[name]
    for inputs in runs:
        check(parameters, op, result, inputs)
