"""`arith` and the same ops of `llvm`: integers that wrap, floats rounded after each op, comparisons, conversions.

Division by zero, and of the least integer by -1, is undefined: an active lane that does it is an ExecutionError (HLO code
guards its divisions), an inactive one does no harm. Oversized shifts and conversions that do not fit are poison that HLO
code selects away: they give the values that `scalars` documents. Fast-math flags are permissions and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects.float_bits import values_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, llvm
from xla_emitters.dialects.mlir.arith import (
    ROUNDING_MODES,
    IndexCastUIOp,
    RemfOp,
    rounds_to_nearest_even,
)
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules, Unary, lifted
from xla_emitters.runtime.simt.machine import Machine, Value, merge
from xla_emitters.runtime.simt.scalars import Form, exact, form_of, in_float, signed, unsigned, wrap

RULES = Rules()

OfForm: TypeAlias = Callable[[Form], Kernel]
"""Returns the function on lanes of a form."""
Reading: TypeAlias = Callable[[Form, Array], Array]
"""`signed` or `unsigned`."""


def _read_as(reading: Reading, function: Binary) -> OfForm:
    """`function` of the signed or unsigned readings of two operands, wrapped."""

    def run(form: Form, one: Array, other: Array) -> Array:
        return wrap(form, function(reading(form, one), reading(form, other)))

    return lambda form: partial(run, form)


def _wrapping(function: Binary) -> OfForm:
    """For add, subtract and multiply, which are the same modulo 2**bits for signed and unsigned. NumPy's integers wrap by themselves."""
    return lambda form: function if form.bits in (8, 16, 32, 64) else _read_as(signed, function)(form)


INTEGER_OPS: dict[str, OfForm] = {
    "add": _wrapping(np.add),
    "sub": _wrapping(np.subtract),
    "mul": _wrapping(np.multiply),
    "and": lambda form: np.bitwise_and,
    "or": lambda form: np.bitwise_or,
    "xor": lambda form: np.bitwise_xor,
    "shl": lambda form: partial(scalars.shift_left, form),
    "shru": lambda form: partial(scalars.shift_right_logical, form),
    "shrs": lambda form: partial(scalars.shift_right_arithmetic, form),
    "mins": _read_as(signed, np.minimum),
    "maxs": _read_as(signed, np.maximum),
    "minu": _read_as(unsigned, np.minimum),
    "maxu": _read_as(unsigned, np.maximum),
}

FLOAT_OPS: dict[str, OfForm] = {
    "add": lambda form: in_float(form, np.add),
    "sub": lambda form: in_float(form, np.subtract),
    "mul": lambda form: in_float(form, np.multiply),
    "div": lambda form: in_float(form, np.divide),
    "rem": lambda form: in_float(form, np.fmod),
    "neg": lambda form: exact(form, np.negative),
    "maximum": lambda form: exact(form, scalars.maximum),
    "minimum": lambda form: exact(form, scalars.minimum),
    "maxnum": lambda form: exact(form, np.fmax),
    "minnum": lambda form: exact(form, np.fmin),
}

COMPARE_INTEGERS: tuple[tuple[Reading, Binary], ...] = (
    (signed, np.equal),
    (signed, np.not_equal),
    (signed, np.less),
    (signed, np.less_equal),
    (signed, np.greater),
    (signed, np.greater_equal),
    (unsigned, np.less),
    (unsigned, np.less_equal),
    (unsigned, np.greater),
    (unsigned, np.greater_equal),
)
"""Comparisons by number of the predicate, in `arith` and in LLVM: eq ne slt sle sgt sge ult ule ugt uge."""


def _always(answer: bool, a: Array, b: Array) -> Array:
    return np.full(np.broadcast_shapes(a.shape, b.shape), answer)


COMPARE_FLOATS: tuple[Binary, ...] = (
    partial(_always, False),
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: (a < b) | (a > b),
    lambda a, b: (a == a) & (b == b),
    lambda a, b: ~((a < b) | (a > b)),
    lambda a, b: ~(a <= b),
    lambda a, b: ~(a < b),
    lambda a, b: ~(a >= b),
    lambda a, b: ~(a > b),
    lambda a, b: a != b,
    lambda a, b: (a != a) | (b != b),
    partial(_always, True),
)
"""Comparisons by number of the predicate, in `arith` and LLVM: false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true."""


def compare_integers(form: Form, predicate: int) -> Binary:
    reading, function = COMPARE_INTEGERS[predicate]
    if reading is signed and form.bits > 1:
        return function
    return lambda a, b: function(reading(form, a), reading(form, b))


def compare_floats(form: Form, predicate: int) -> Binary:
    function = COMPARE_FLOATS[predicate]
    return lambda a, b: function(scalars.widen(form, a), scalars.widen(form, b))


# ------------------------------------------------------------------------------------------ binary ops

for _name, _ops in {
    "add": (arith.AddiOp, llvm.AddOp),
    "sub": (arith.SubiOp, llvm.SubOp),
    "mul": (arith.MuliOp, llvm.MulOp),
    "and": (arith.AndIOp, llvm.AndOp),
    "or": (arith.OrIOp, llvm.OrOp),
    "xor": (arith.XOrIOp, llvm.XOrOp),
    "shl": (arith.ShLIOp, llvm.ShlOp),
    "shru": (arith.ShRUIOp, llvm.LShrOp),
    "shrs": (arith.ShRSIOp, llvm.AShrOp),
    "mins": (arith.MinSIOp, llvm.INTRINSICS["smin"]),
    "maxs": (arith.MaxSIOp, llvm.INTRINSICS["smax"]),
    "minu": (arith.MinUIOp, llvm.INTRINSICS["umin"]),
    "maxu": (arith.MaxUIOp, llvm.INTRINSICS["umax"]),
}.items():
    RULES.of_form(INTEGER_OPS[_name], *_ops)

for _name, _ops in {
    "add": (arith.AddfOp, llvm.FAddOp),
    "sub": (arith.SubfOp, llvm.FSubOp),
    "mul": (arith.MulfOp, llvm.FMulOp),
    "div": (arith.DivfOp, llvm.FDivOp),
    "rem": (RemfOp, llvm.FRemOp),
    "neg": (arith.NegfOp, llvm.FNegOp),
    "maximum": (arith.MaximumfOp, llvm.INTRINSICS["maximum"]),
    "minimum": (arith.MinimumfOp, llvm.INTRINSICS["minimum"]),
    "maxnum": (arith.MaxnumfOp, llvm.INTRINSICS["maxnum"]),
    "minnum": (arith.MinnumfOp, llvm.INTRINSICS["minnum"]),
}.items():
    RULES.of_form(FLOAT_OPS[_name], *_ops)


# ------------------------------------------------------------------------------------------ division


def _ceiling_quotient(dividend: Array, divisor: Array) -> Array:
    return dividend // divisor + (dividend % divisor != 0).astype(dividend.dtype)


QUOTIENTS: dict[str, tuple[bool, Binary]] = {
    "divs": (True, scalars.truncated_quotient),
    "divu": (False, np.floor_divide),
    "rems": (True, scalars.truncated_remainder),
    "remu": (False, np.remainder),
    "floordivs": (True, np.floor_divide),
    "ceildivs": (True, _ceiling_quotient),
    "ceildivu": (False, _ceiling_quotient),
}
"""Name -> whether operands are signed; the quotient or remainder of operands for which it is defined."""


def division(op: Operation, name: str) -> Callable[..., Value]:
    """The kernel of a division or remainder. It raises ExecutionError for an active lane whose result is undefined."""
    is_signed, function = QUOTIENTS[name]
    form = form_of(op.operands[0].type)
    reading = signed if is_signed else unsigned
    least, one = scalars.constant(form, 1 << (form.bits - 1)), scalars.constant(form, 1)

    def divide(machine: Machine, dividend: Array, divisor: Array) -> Array:
        undefined = divisor == 0
        machine.refuse(op, undefined, "divides by zero")
        if is_signed:
            overflow = (dividend == least) & (signed(form, divisor) == -1)
            machine.refuse(op, overflow, "divides the least integer by -1")
            undefined = undefined | overflow
        divisor = np.where(undefined, one, divisor)
        return wrap(form, function(reading(form, dividend), reading(form, divisor)))

    def run(machine: Machine, *operands: Value) -> Value:
        return lifted(op, partial(divide, machine))(*operands)

    return run


for _name, _ops in {
    "divs": (arith.DivSIOp, llvm.SDivOp),
    "divu": (arith.DivUIOp, llvm.UDivOp),
    "rems": (arith.RemSIOp, llvm.SRemOp),
    "remu": (arith.RemUIOp, llvm.URemOp),
    "floordivs": (arith.FloorDivSIOp,),
    "ceildivs": (arith.CeilDivSIOp,),
    "ceildivu": (arith.CeilDivUIOp,),
}.items():
    RULES.op(*_ops)(partial(division, name=_name))


# ------------------------------------------------------------------------------------------ results of two words


def sum_and_carry(form: Form, one: Array, other: Array) -> tuple[Array, Array]:
    """The wrapped sum, and whether the unsigned sum overflows."""
    total = INTEGER_OPS["add"](form)(one, other)
    return total, unsigned(form, total) < unsigned(form, one)


def whole_product(reading: Reading, form: Form, one: Array, other: Array) -> tuple[Array, Array]:
    """The lower and the upper word of the product, exact in Python's integers."""
    product = reading(form, one).astype(object) * reading(form, other).astype(object)
    return wrap(form, product), wrap(form, product >> form.bits)


def two_results(op: Operation, function: Callable[..., tuple[Array, Array]]) -> Callable[..., tuple[Value, Value]]:
    """A kernel of two results: scalars, or vectors of them."""
    is_vector = isinstance(op.operands[0].type, VectorType)

    def run(machine: Machine, *operands: Any) -> tuple[Value, Value]:
        if not is_vector:
            return function(*operands)
        pairs = [function(*elements) for elements in zip(*operands, strict=True)]
        return tuple(first for first, _ in pairs), tuple(second for _, second in pairs)

    return run


for _op, _function in {
    arith.AddUIExtendedOp: sum_and_carry,
    arith.MulSIExtendedOp: partial(whole_product, signed),
    arith.MulUIExtendedOp: partial(whole_product, unsigned),
}.items():

    @RULES.op(_op)
    def extended(op: Operation, function: Callable[..., tuple[Array, Array]] = _function) -> Kernel:
        return two_results(op, partial(function, form_of(op.operands[0].type)))


# ------------------------------------------------------------------------------------------ comparisons, selection


@RULES.elementwise(arith.CmpiOp, llvm.ICmpOp)
def cmpi(op: arith.CmpiOp | llvm.ICmpOp) -> Binary:
    return compare_integers(form_of(op.lhs.type), op.predicate.value.data)


@RULES.elementwise(arith.CmpfOp, llvm.FCmpOp)
def cmpf(op: arith.CmpfOp | llvm.FCmpOp) -> Binary:
    return compare_floats(form_of(op.lhs.type), op.predicate.value.data)


@RULES.op(arith.SelectOp, llvm.SelectOp)
def select(op: Operation) -> Kernel:
    return partial(choose_value, op)


def choose_value(op: Operation, machine: Machine, condition: Value, one: Value, other: Value) -> Value:
    """`one` where the condition holds, else `other`; a vector of conditions chooses element by element."""
    if isinstance(condition, tuple):
        assert isinstance(one, tuple)
        assert isinstance(other, tuple)
        return tuple(choose_value(op, machine, *parts) for parts in zip(condition, one, other, strict=True))
    assert isinstance(condition, np.ndarray)
    if isinstance(parts := machine.split(condition), bool):
        return one if parts else other
    machine.check_newest(op, one)
    machine.check_newest(op, other)
    return merge(condition, one, other)


# ------------------------------------------------------------------------------------------ constants, conversions


@RULES.op(arith.ConstantOp)
def constant(op: arith.ConstantOp) -> Callable[[Machine], Value]:
    return constant_kernel(op, op.value, op.result.type)


def constant_kernel(op: Operation, value: Attribute, result_type: Attribute) -> Callable[[Machine], Value]:
    """A kernel that returns an attribute's value: a number, a vector, or a tensor in read-only memory."""
    form = form_of(result_type)
    if isinstance(value, IntegerAttr | FloatAttr):
        number = scalars.constant(form, value.value.data)
        return lambda machine: number
    if not isa(value, DenseIntOrFPElementsAttr):
        raise Unsupported(f"constant {value} of type {result_type}", stage="simt")
    values = dense_values(form, value)
    if isinstance(result_type, TensorType):
        shape = result_type.get_shape()
        data = scalars.to_bits(form, values).reshape(-1).view(np.uint8)

        def tensor(machine: Machine) -> Value:
            name = f"the constant {value}" if values.size < 16 else "a constant"
            buffer = machine.memory.once(op, lambda: machine.memory.add(name, data, 256, writable=False))
            return machine.tensor(buffer, form, shape, row_major_strides(shape))

        return tensor
    elements = tuple(values[:, number : number + 1] for number in range(values.size))
    return lambda machine: elements


def dense_values(form: Form, value: DenseIntOrFPElementsAttr[Any]) -> Array:
    """The elements of a dense attribute, row major: lanes of shape (1, elements)."""
    numbers = values_of(value)
    if isinstance(value.get_element_type(), ComplexType):
        lanes = np.array([complex(*parts) for parts in numbers], form.lanes)
    elif form.is_float:
        # As bits: Python would change a signalling NaN to a quiet one.
        lanes = scalars.from_bits(form, np.frombuffer(value.data.data, form.storage))
    else:
        lanes = scalars.wrap(form, np.array(numbers, object))
    count = int(np.prod(value.get_shape(), dtype=np.int64))
    return np.repeat(lanes, count // max(1, lanes.size)).reshape(1, -1)


@RULES.elementwise(arith.ExtFOp, arith.TruncFOp, llvm.FPExtOp, llvm.FPTruncOp)
def float_conversion(op: Operation) -> Unary:
    """One float type to another, rounded as the op says."""
    source, target = form_of(op.operands[0].type), form_of(op.results[0].type)
    mode = op.properties.get("roundingmode")
    if isa(mode, IntegerAttr) and not rounds_to_nearest_even(op):
        return partial(scalars.convert_float_towards, source, target, ROUNDING_MODES[mode.value.data])
    if source.rounded == scalars.BF16 and target.rounded == scalars.F32:
        return lambda values: values
    return partial(scalars.convert_float, source, target)


def integer_conversion(op: Operation, reading: Reading) -> Unary:
    source, target = form_of(op.operands[0].type), form_of(op.results[0].type)
    if source.bits == target.bits:
        return lambda values: values
    return lambda values: wrap(target, reading(source, values))


def integer_to_float(op: Operation, reading: Reading) -> Unary:
    source, target = form_of(op.operands[0].type), form_of(op.results[0].type)
    return lambda values: scalars.from_integer(target, reading(source, values))


def float_to_integer(op: Operation, is_signed: bool) -> Unary:
    source, target = form_of(op.operands[0].type), form_of(op.results[0].type)
    return lambda values: scalars.to_integer(target, scalars.widen(source, values), is_signed)


for _rule, *_ops in (
    (
        partial(integer_conversion, reading=signed),
        arith.ExtSIOp,
        arith.TruncIOp,
        arith.IndexCastOp,
        llvm.SExtOp,
        llvm.TruncOp,
    ),
    (partial(integer_conversion, reading=unsigned), arith.ExtUIOp, IndexCastUIOp, llvm.ZExtOp),
    (partial(integer_to_float, reading=signed), arith.SIToFPOp, llvm.SIToFPOp),
    (partial(integer_to_float, reading=unsigned), arith.UIToFPOp, llvm.UIToFPOp),
    (partial(float_to_integer, is_signed=True), arith.FPToSIOp, llvm.FPToSIOp),
    (partial(float_to_integer, is_signed=False), arith.FPToUIOp, llvm.FPToUIOp),
):
    RULES.elementwise(*_ops)(_rule)


@RULES.elementwise(arith.BitcastOp)
def bitcast(op: arith.BitcastOp) -> Unary:
    """raises Unsupported when the widths differ"""
    source, target = form_of(op.input.type), form_of(op.result.type)
    if source.bits != target.bits:
        raise Unsupported(f"{op.name} from {source.name} to {target.name}, which has another width", stage="simt")
    return partial(scalars.reinterpret, source, target)
