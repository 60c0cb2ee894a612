"""A value of another lane of the warp, whatever its type: a shuffle moves 32 bits.

    f32        gpu.shuffle down %x, %offset, %width : f32
    f64        bitcast to i64, to vector<2xi32>; each word; back
    i8, bf16   bitcast to i8 / i16, extui to i32; trunci, bitcast back
    complex    its real and its imaginary part, each by the rule of its type

A width between these is extended to the next multiple of 32: 24 bits to 32, 40 bits to 64. Whether the source lane exists is not
checked: a lane without one gets its own value back.
Source: docs/reference/2 3.3 "xla-lower-xla-to-scf"; XLA lower_xla_to_scf.cc.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, ComplexType, IntegerType, i32
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.attributes import integer_type, vector_type
from xla_emitters.dialects.hlo.convert import Inserter
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, complex, vector
from xla_emitters.dialects.mlir.gpu import ShuffleOp
from xla_emitters.dialects.mlir.vector import FromElementsOp

WORD = 32
"""Bits that one shuffle moves."""


def can_shuffle(value_type: Attribute) -> bool:
    """Whether `shuffled` takes values of this type: integers, floats and complex numbers, but no index."""
    return isa(value_type, IntegerType | AnyFloat | ComplexType)


def shuffled(e: Inserter, mode: str, value: SSAValue, offset: SSAValue, width: SSAValue) -> SSAValue:
    """The `value` of another lane, which `mode` and `offset` name; see `gpu.shuffle`.

    e        inserts ops
    value    of a type that `can_shuffle`
    offset, width   i32
    """
    value_type = value.type
    if isa(value_type, ComplexType):
        parts = [e.insert(part(value)).result for part in (complex.ReOp, complex.ImOp)]
        real, imaginary = (shuffled(e, mode, part, offset, width) for part in parts)
        return e.insert(complex.CreateOp(real, imaginary, value_type)).results[0]
    assert isa(value_type, IntegerType | AnyFloat)

    def word(value: SSAValue) -> SSAValue:
        return e.insert(ShuffleOp(mode, value, offset, width)).shuffle_result

    bits = value_type.bitwidth
    if bits == WORD:
        return word(value)
    count = -(-bits // WORD)
    exact, whole = integer_type(bits), integer_type(WORD * count)
    integer = value if value_type == exact else e.insert(arith.BitcastOp(value, exact)).result
    padded = integer if exact == whole else e.insert(arith.ExtUIOp(integer, whole)).result
    if count == 1:
        moved = word(padded)
    else:
        many, one = vector_type(i32, (count,)), vector_type(whole, (1,))
        lone = e.insert(FromElementsOp([padded], one)).dest
        vector_of_words = e.insert(vector.BitcastOp(lone, many)).result
        words = [e.insert(vector.ExtractOp(vector_of_words, [n], i32)).result for n in range(count)]
        together = e.insert(FromElementsOp([word(part) for part in words], many)).dest
        back = e.insert(vector.BitcastOp(together, one)).result
        moved = e.insert(vector.ExtractOp(back, [0], whole)).result
    cut = moved if exact == whole else e.insert(arith.TruncIOp(moved, exact)).result
    return cut if value_type == exact else e.insert(arith.BitcastOp(cut, value_type)).result
