"""Random bits as machine code of this CPU: the bits of room `library`, which are tested against XLA's, at all kinds of sizes."""

from typing import Any

import numpy as np
import pytest
from long_lists import every
from runtime.cpu_ways import compiled, host_ops

from xla_emitters import library
from xla_emitters.program import Program

BITS = """module @m {{ func.func public @main(%s: tensor<{state}xui64>, %x: tensor<{dims}xi8>)
    -> (tensor<{state}xui64>, tensor<{dims}x{t}>) {{
  %sizes = stablehlo.concatenate {parts}, dim = 0 : ({types}) -> tensor<{rank}xi32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %sizes)
    {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}
    : (tensor<{state}xui64>, tensor<{rank}xi32>) -> (tensor<{state}xui64>, tensor<{dims}x{t}>)
  return %0#0, %0#1 : tensor<{state}xui64>, tensor<{dims}x{t}> }} }}"""
SIZE = """%d{i} = stablehlo.get_dimension_size %x, dim = {i} : (tensor<{dims}xi8>) -> tensor<i32>
  %e{i} = stablehlo.reshape %d{i} : (tensor<i32>) -> tensor<1xi32>
  """
SHAPES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((0,), (1,), (7,), (4096 * 4 + 3,)),
    3: ((2, 3, 5), (3, 2, 5), (3, 5, 3), (5, 3, 7), (3, 5, 5), (1, 1, 1), (3, 0, 5), (33, 65, 17)),
}
NAMES = {"ui8": "u8", "ui16": "u16", "ui32": "u32", "ui64": "u64"}
BITS_OF_STATE = (0xFEDCBA9876543210, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF)
"""A counter whose low half runs over, and then its high half."""


def drawing(algorithm: str, element: str, state: int, rank: int) -> Program:
    dims = "x".join("?" * rank)
    text = BITS.format(
        state=state,
        dims=dims,
        t=element,
        rank=rank,
        algorithm=algorithm,
        parts=", ".join(f"%e{i}" for i in range(rank)),
        types=", ".join(["tensor<1xi32>"] * rank),
    )
    sizes = "".join(SIZE.format(i=i, dims=dims) for i in range(rank))
    return compiled(text.replace("%sizes =", sizes + "%sizes =", 1))


@pytest.mark.parametrize(
    ("algorithm", "element", "state", "rank"),
    every(
        2,
        [
            ("PHILOX", "ui8", 2, 1),
            ("PHILOX", "ui32", 3, 3),
            ("PHILOX", "ui64", 3, 1),
            ("THREE_FRY", "ui16", 2, 3),
            ("THREE_FRY", "ui32", 2, 3),
            ("THREE_FRY", "ui64", 2, 1),
            ("DEFAULT", "ui32", 2, 3),
        ],
    ),
)
def test_they_are_those_of_the_library(algorithm: str, element: str, state: int, rank: int) -> None:
    program = drawing(algorithm, element, state, rank)
    assert "lmhlo.dynamic_rng_bit_generator" not in host_ops(program)
    given: Any = np.array(BITS_OF_STATE[:state], np.uint64)
    config = {"algorithm": "threefry" if algorithm == "THREE_FRY" else "philox", "types": ["u64"]}
    for shape in SHAPES[rank]:
        wanted = library.call("random_bits", config, [given], [("u64", (state,)), (NAMES[element], shape)])
        for found, right in zip(program(given, np.zeros(shape, np.int8)), wanted, strict=True):
            np.testing.assert_array_equal(found, right)
