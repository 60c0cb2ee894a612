"""Names of the runtime's functions."""

import itertools

import pytest
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, Signedness, bf16, f16, f32, f64, i1, i32, i64

from xla_emitters.dialects.disc_ral import CONTEXT, STREAM, RalName, ral_name, type_code
from xla_emitters.errors import UsageError

UNSIGNED = IntegerType(8, Signedness.UNSIGNED)
CODES = {
    CONTEXT: "pvoid",
    STREAM: "pvoid",
    IndexType(): "i64",
    i1: "i1",
    i32: "i32",
    i64: "i64",
    UNSIGNED: "ui8",
    f16: "f16",
    bf16: "bf16",
    f32: "f32",
    f64: "f64",
    MemRefType(f32, [2, -1]): "m2df32",
    MemRefType(UNSIGNED, []): "m0dui8",
}


@pytest.mark.parametrize(("ir_type", "code"), CODES.items(), ids=lambda value: str(value))
def test_the_code_of_a_type(ir_type: object, code: str) -> None:
    assert type_code(ir_type) == code


def test_the_product_of_the_seed_and_of_today() -> None:
    matrix = MemRefType(f32, [-1, -1])
    today = ral_name("ral_gemm", "gpu", [CONTEXT, STREAM, matrix, matrix, matrix, i1, i1, i1], [])
    assert today == "ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void"
    seed = "ral_gemm___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1___void"
    assert RalName.parse(seed) == RalName.parse(seed.replace("___pvoid", "___gpu___pvoid", 1))
    assert RalName.parse(seed, "cpu").device == "cpu"


def test_a_name_can_be_taken_apart_again() -> None:
    types = list(CODES)
    for count, results in itertools.product(range(3), range(3)):
        for ins in itertools.product(types[::2], repeat=count):
            outs = types[:results]
            for call in ("ral_x", "_", "x_", "gpu", "void__"):
                name = RalName.parse(ral_name(call, "cpu", ins, outs))
                assert name == (call, "cpu", tuple(CODES[t] for t in ins), tuple(CODES[t] for t in outs))


@pytest.mark.parametrize("text", ["ral_gemm", "a___b", "a___b___c___d___e"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a runtime function"):
        RalName.parse(text)
