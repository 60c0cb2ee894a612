"""The sizes of a result as code: shape rules over numbers that are `index` values where the compiler does not know them.

    add           the operand's                        concatenate            the sum along its dimension
    dot           batch, lhs free, rhs free            dynamic_reshape        the element of the shape operand
    reduce        of the dimensions that are kept      pad, convolution       arithmetic on the operand's

Only sizes that the result's type leaves unknown are computed: a number that is not known is a promise, kept where it is asked for. An op
whose rule does not say a size that the type leaves unknown is refused by name.
Whether the operands' shapes fit each other is not checked here: guards and assertions do (`dynamic/sizes/program`,
`dynamic/passes/disc_check_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo import shape_rule
from xla_emitters.dialects.hlo.backend_configs import target_of
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.shape_rule import Arithmetic, Number, Sizing, Unknown
from xla_emitters.dialects.hlo.types import UNBOUNDED, as_array, leaf_types
from xla_emitters.dynamic.buffers.index_code import IndexCode
from xla_emitters.dynamic.buffers.index_code import Number as Coded


class Promise:
    """A number whose code is inserted when, and if, it is asked for."""

    def __init__(self, arithmetic: Promises, made: Callable[[], Coded]) -> None:
        self._arithmetic, self._made = arithmetic, made
        self._kept: Coded | None = None

    def kept(self) -> Coded:
        """The number; its code is inserted once."""
        if self._kept is None:
            self._kept = self._made()
        return self._kept

    def __add__(self, other: Number) -> Number:
        return self._arithmetic.of(IndexCode.add, self, other)

    def __radd__(self, other: int) -> Number:
        return self._arithmetic.of(IndexCode.add, other, self)

    def __sub__(self, other: Number) -> Number:
        return self._arithmetic.of(IndexCode.subtract, self, other)

    def __rsub__(self, other: int) -> Number:
        return self._arithmetic.of(IndexCode.subtract, other, self)

    def __mul__(self, other: Number) -> Number:
        return 0 if other == 0 else self._arithmetic.of(IndexCode.multiply, self, other)

    def __rmul__(self, other: int) -> Number:
        return self * other

    def __floordiv__(self, other: Number) -> Number:
        return self._arithmetic.of(IndexCode.divide, self, other)


class Promises(Arithmetic):
    """Arithmetic in code that `code` inserts."""

    def __init__(self, code: IndexCode) -> None:
        self.code = code

    def of(self, operation: Callable[[IndexCode, Coded, Coded], Coded], a: Number, b: Number) -> Number:
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return shape_rule.UNKNOWN
        if isinstance(a, int) and isinstance(b, int):
            folded = operation(self.code, a, b)
            assert isinstance(folded, int)
            return folded
        return Promise(self, lambda: operation(self.code, self.kept(a), self.kept(b)))

    def kept(self, number: Number) -> Coded:
        """The number as code."""
        if isinstance(number, Promise):
            return number.kept()
        return shape_rule.as_int(number)

    def maximum(self, a: Number, b: Number) -> Number:
        return self.of(IndexCode.maximum, a, b)

    def minimum(self, a: Number, b: Number) -> Number:
        return self.of(IndexCode.minimum, a, b)


class CodeSizing(Promises, Sizing):
    """The sizes and elements of the buffers that are the operands of `op`."""

    def __init__(self, op: HloOp, buffers: Sequence[SSAValue], code: IndexCode) -> None:
        Promises.__init__(self, code)
        Sizing.__init__(self, op.operands)
        self.buffers = buffers

    def axis(self, operand: int, dim: int) -> Number:
        buffer = self.buffers[operand]
        size = as_array(self.operands[operand].type).get_shape()[dim]
        return size if size != UNBOUNDED else Promise(self, partial(self.code.dim, buffer, dim))

    def held(self, operand: int, *indices: int) -> Number:
        return Promise(self, partial(self.code.element, self.buffers[operand], indices))


TAKES_SIZES: Mapping[str, str] = {
    "custom-call": "indices_of_shape_operands names the operand that lists the sizes",
    "reshape": "stablehlo.dynamic_reshape takes the sizes as a value",
    "rng-bit-generator": "the custom call stablehlo.dynamic_rng_bit_generator takes the sizes as a value",
}
"""Opcode -> how a text gives the sizes that its operands do not."""


def result_sizes(op: HloOp, buffers: Sequence[SSAValue], leaf: int, code: IndexCode) -> list[Coded]:
    """The sizes of one array of the result of `op`, as code where `code` inserts.

    buffers  of the operands
    raises   Unsupported for an op that has no rule, and for sizes that do not follow
    """
    static = as_array(leaf_types(op.result.type)[leaf]).get_shape()
    if UNBOUNDED not in static:
        return list(static)
    sizing = CodeSizing(op, buffers, code)
    shapes = op.shapes(sizing)
    found = [shape_rule.UNKNOWN] * len(static) if shapes is None else shapes[leaf]
    return [
        size if size != UNBOUNDED else _kept(op, dim, number, sizing)
        for dim, (size, number) in enumerate(zip(static, found, strict=True))
    ]


def _kept(op: HloOp, dim: int, number: Number, sizing: CodeSizing) -> Coded:
    if isinstance(number, Unknown):
        target = target_of(op)
        called = f" of '{target}'" if target else ""
        raise op.unsupported(
            f"no rule for the size of dimension {dim} of the result{called}", help=TAKES_SIZES.get(op.opcode, "")
        )
    return sizing.kept(number)
