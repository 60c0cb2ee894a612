"""What the `vector` dialect has besides xDSL's ops, and that vector ops on tensors have no side effects."""

import pytest
from xdsl.traits import get_effects

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.rewrite.effects import is_pure, is_speculatable, memory_use


def in_function(line: str) -> str:
    arguments = "%x: f32, %i: index, %v: vector<4xf32>, %t: tensor<64xf32>, %m: memref<64xf32>"
    return f"func.func @f({arguments}) {{\n{line}\n return }}"


def only_op(line: str):
    (function,) = parse_ir(in_function(line)).ops
    return function.regions[0].block.first_op


@pytest.mark.parametrize(
    "line",
    [
        "%r = vector.transfer_read %t[%i], %x {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>",
        "%r = vector.transfer_write %v, %t[%i] {in_bounds = [true]} : vector<4xf32>, tensor<64xf32>",
    ],
)
def test_transfers_on_tensors_only_compute(line: str):
    assert is_pure(only_op(line))


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ("%r = vector.transfer_read %m[%i], %x {in_bounds = [true]} : memref<64xf32>, vector<4xf32>", False),
        ("vector.transfer_write %v, %m[%i] {in_bounds = [true]} : vector<4xf32>, memref<64xf32>", True),
        ("%r = vector.load %m[%i] : memref<64xf32>, vector<4xf32>", False),
        ("vector.store %v, %m[%i] : memref<64xf32>, vector<4xf32>", True),
    ],
)
def test_transfers_on_memory_read_or_write_it(line: str, writes: bool):
    op = only_op(line)
    assert memory_use(op) == (False, writes)
    assert not is_speculatable(op)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = vector.from_elements %x, %x : vector<4xf32>", "vector<4xf32> has 4 elements, not 2"),
        ("%r:4 = vector.to_elements %x : f32", "f32 should be of base attribute vector"),
        ("%r = vector.shape_cast %v : vector<4xf32> to vector<2x3xf32>", "do not hold the same elements"),
        ("%r = vector.shape_cast %v : vector<4xf32> to vector<4xi32>", "do not hold the same elements"),
        ("%r = vector.transpose %v, [1] : vector<4xf32> to vector<4xf32>", "is not a permutation of the dimensions"),
        ("%r = vector.transpose %v, [0] : vector<4xf32> to vector<5xf32>", "gives vector<4xf32>, not vector<5xf32>"),
        ("%r = vector.interleave %v, %v : vector<4xf32> -> vector<6xf32>", "is not two of vector<4xf32>"),
        ("%r, %s = vector.deinterleave %v : vector<4xf32> -> vector<3xf32>", "is not two of vector<3xf32>"),
        (
            "%r = vector.extract_strided_slice %v {offsets = [3], sizes = [2], strides = [1]}"
            " : vector<4xf32> to vector<2xf32>",
            "elements 3 to 4 of dimension 0 of vector<4xf32>",
        ),
        (
            "%r = vector.extract_strided_slice %v {offsets = [0], sizes = [2], strides = [2]}"
            " : vector<4xf32> to vector<2xf32>",
            "strides must be 1, not",
        ),
        (
            "%r = vector.insert_strided_slice %v, %v {offsets = [1], strides = [1]} : vector<4xf32> into vector<4xf32>",
            "elements 1 to 4 of dimension 0",
        ),
        ("%r = vector.constant_mask [1, 1] : vector<4xi1>", "2 sizes for vector<4xi1>"),
        ("%r = vector.multi_reduction <add>, %v, %v [0] : vector<4xf32> to vector<4xf32>", "gives f32, not vector"),
        (
            '%r = "vector.outerproduct"(%v, %x) <{kind = #vector.kind<add>}> : (vector<4xf32>, f32) -> vector<5xf32>',
            "gives vector<4xf32>, not vector<5xf32>",
        ),
        (
            "%r = vector.gather %m[%i, %i] [%iv], %mask, %v"
            " : memref<64xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
            "2 indices into memref<64xf32>",
        ),
        (
            "vector.scatter %t[%i] [%iv], %mask, %v : tensor<64xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>",
            "a scatter gives a tensor if it takes one",
        ),
    ],
)
def test_what_does_not_fit_is_refused(line: str, message: str):
    text = in_function(line).replace("%m: memref", "%iv: vector<4xi32>, %mask: vector<4xi1>, %m: memref")
    with pytest.raises(VerifyError, match=message):
        parse_ir(text)


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("%r = vector.gather %t[%i] [%iv], %mask, %v : tensor<64xf32>, TYPES into vector<4xf32>", set[str]()),
        ("%r = vector.scatter %t[%i] [%iv], %mask, %v : tensor<64xf32>, TYPES -> tensor<64xf32>", set[str]()),
        ("%r = vector.gather %m[%i] [%iv], %mask, %v : memref<64xf32>, TYPES into vector<4xf32>", {"READ"}),
        ("vector.scatter %m[%i] [%iv], %mask, %v : memref<64xf32>, TYPES", {"WRITE"}),
        (
            "%r = vector.expandload %m[%i], %mask, %v : memref<64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
            {"READ"},
        ),
        ("vector.compressstore %m[%i], %mask, %v : memref<64xf32>, vector<4xi1>, vector<4xf32>", {"WRITE"}),
    ],
)
def test_masked_accesses_read_or_write_memory_and_compute_on_tensors(line: str, kinds: set[str]):
    line = line.replace("TYPES", "vector<4xi32>, vector<4xi1>, vector<4xf32>")
    text = in_function(line).replace("%m: memref", "%iv: vector<4xi32>, %mask: vector<4xi1>, %m: memref")
    (op,) = [op for op in parse_ir(text).walk() if op.name.startswith("vector.")]
    effects = get_effects(op)
    assert effects is not None
    assert {effect.kind.name for effect in effects} == kinds
