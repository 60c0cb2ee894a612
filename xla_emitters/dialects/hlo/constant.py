"""Values that need no operands: constants and iota.

    %c = hlo.constant {name = "c"} dense<5.000000e-01> : tensor<bf16>
    %d = hlo.constant {name = "d"} dense<[[0, 1], [2, 3]]> : tensor<2x2xi8> -> tensor<2x2xi8, #hlo.layout<[0, 1]>>
    %e = hlo.constant {name = "e"} -> tensor<1000xf32>                        data elided in the text: `constant({...})`
    %t = hlo.constant {name = "t"} [dense<1.0> : tensor<f32>, dense<true> : tensor<i1>] -> tuple<tensor<f32>, tensor<i1>>

A constant's value is a dense attribute: logical and row major whatever the layout, with all bit patterns (NaN payloads, -0) kept. Booleans
and integers below eight bits take a byte each. An elided constant parses, prints and compiles, to zeros; it has no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeGuard, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyDenseElement,
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.float_bits import print_dense
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp, RuleBroken
from xla_emitters.dialects.hlo.convert import constant, convert_array, emit_convert
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of, element_of, tuple_types, type_text
from xla_emitters.dialects.mlir import arith, tensor
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, DType, Kind, dtype, dtype_of

Dense = DenseIntOrFPElementsAttr[Any]

PRINT_WHOLE = "the text has {...} for its data: dump with XLA_FLAGS=--xla_dump_large_constants, or print with print_large_constants"


def dense(array: Array, element: DType) -> Dense:
    """The attribute that holds `array`, row major, as elements of type `element`.

    array   in the NumPy type of `element` (bool for pred, one byte for s4 ...); any shape, also with zero sizes
    """
    if element.kind is Kind.PRED or element.name == "s1":
        data = np.where(array.astype(np.bool_), np.uint8(0xFF), np.uint8(0)).tobytes()
    elif element.is_integer and element.bits < 8:
        data = array.astype(np.int8 if element.kind is Kind.SIGNED else np.uint8).tobytes()
    else:
        data = array.astype(element.numpy, copy=False).tobytes()
    return DenseIntOrFPElementsAttr(TensorType[Any](element.ir_type, array.shape), BytesAttr(data))


def undense(value: Dense) -> Array:
    """The array that a dense attribute holds; the inverse of `dense`."""
    element, shape = dtype_of(value.type.get_element_type()), value.get_shape()
    if element.kind is Kind.PRED:
        return (np.frombuffer(value.data.data, np.uint8) != 0).reshape(shape)
    if element.is_integer and element.bits <= 8 and element.numpy.name not in ("int8", "uint8"):
        raw = np.frombuffer(value.data.data, np.int8 if element.kind is Kind.SIGNED else np.uint8)
        return raw.astype(element.numpy).reshape(shape)
    return np.frombuffer(value.data.data, element.numpy).reshape(shape)


def is_dense(value: Attribute | None) -> TypeGuard[Dense]:
    """Whether `value` is a dense attribute, whatever its elements."""
    return isinstance(value, DenseIntOrFPElementsAttr)


@op_definition
class ConstantOp(HloOp):
    """A literal: an array, a tuple of them, or an array whose data the text left out."""

    name = "hlo.constant"
    OPERANDS: ClassVar = range(0, 1)

    value = opt_prop_def(Attribute)

    def __init__(self, value: Dense | ArrayAttr[Attribute] | None, ir_type: Attribute, name: str):
        super().__init__([], ir_type, name, {"value": value})

    @classmethod
    def from_array(cls, array: Array, element: DType, name: str) -> ConstantOp:
        """A constant with the default layout."""
        return cls(dense(array, element), array_type(element.ir_type, array.shape), name)

    @property
    def is_elided(self) -> bool:
        """Whether the text has `{...}` for the data."""
        return self.value is None

    @property
    def coded(self) -> Attribute:
        """The value; zeros for elided data."""
        if self.value is not None:
            return self.value
        element = element_of(self.result)
        return dense(np.zeros(dims_of(self.result), element.numpy), element)

    def array(self) -> Array:
        """The literal of an array constant, row major.

        raises Unsupported for a tuple or elided data.
        """
        if is_dense(self.value):
            return undense(self.value)
        if self.is_elided:
            raise self.unsupported("no data", help=PRINT_WHOLE)
        raise self.unsupported("no single array")

    def verify_(self) -> None:
        if self.value is not None:
            _verify_literal(self.value, self.result.type)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return self._evaluated(self.value)

    def _evaluated(self, value: Attribute | None) -> Any:
        match value:
            case DenseIntOrFPElementsAttr():
                return undense(value)
            case ArrayAttr():
                return tuple(self._evaluated(part) for part in value)
            case _:
                raise self.unsupported("no data", help=PRINT_WHOLE)

    def output_to_input(self) -> tuple[()]:
        return ()

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        """A literal of one element becomes a constant in the code; a larger one a table, read at the element's index.

        Data that the text left out is zeros here: such a program has code, but does not run.
        """
        element, value = element_of(self.result), self.coded
        array = undense(value) if is_dense(value) else self.array()
        if array.size == 1:
            return (emit_scalar(e, array.reshape(()), element),)
        assert is_dense(value)
        data = BytesAttr(array.astype(np.uint8).tobytes()) if element.kind is Kind.PRED else value.data
        held = cast("AnyDenseElement", element.storage_type)
        table = e.insert(arith.ConstantOp(DenseIntOrFPElementsAttr(TensorType(held, array.shape), data))).result
        return (e.insert(tensor.ExtractOp(table, e.indices, element.storage_type)).result,)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        found = parser.parse_optional_attr_dict()
        if (value := parser.parse_optional_attribute()) is not None:
            found["value"] = value
        if parser.parse_optional_punctuation("->"):
            ir_type = parser.parse_type()
        elif is_dense(value):
            ir_type = value.get_type()
        else:
            parser.raise_error("expected '->' and the constant's type")
        known = cls.get_irdl_definition().properties
        return cls.create(
            result_types=[ir_type],
            properties={key: value for key, value in found.items() if key in known},
            attributes={key: value for key, value in found.items() if key not in known},
        )

    def print(self, printer: Printer) -> None:
        shown = {key: value for key, value in {**self.properties, **self.attributes}.items() if key != "value"}
        printer.print_string(" ")
        printer.print_attr_dict(dict(sorted(shown.items())))
        if self.value is not None:
            printer.print_string(" ")
            _print_literal(self.value, printer)
        if not is_dense(self.value) or self.value.get_type() != self.result.type:
            printer.print_string(" -> ")
            printer.print_attribute(self.result.type)


def _verify_literal(value: Attribute, ir_type: Attribute) -> None:
    match value:
        case DenseIntOrFPElementsAttr():
            array = as_array(ir_type)
            if (dense_type := value.get_type()) != array_type(array.element_type, array.get_shape()):
                raise RuleBroken(
                    "a constant's value is not of its type",
                    f"the value is {type_text(dense_type)}, the constant {type_text(ir_type)}",
                )
        case ArrayAttr():
            parts = tuple_types(ir_type)
            if len(parts) != len(value):
                raise RuleBroken("a constant's value is not of its type", f"it is {type_text(ir_type)}")
            for part, part_type in zip(value, parts, strict=True):
                _verify_literal(part, part_type)
        case _:
            raise VerifyException(f"a constant's value is a dense attribute, not {value}")


def _print_literal(value: Attribute, printer: Printer) -> None:
    match value:
        case ArrayAttr():
            with printer.in_square_brackets():
                printer.print_list(value, lambda part: _print_literal(part, printer))
        case DenseIntOrFPElementsAttr():
            print_dense(printer, value)
            printer.print_string(" : ")
            printer.print_attribute(value.get_type())
        case _:
            printer.print_attribute(value)


def emit_scalar(e: ElementContext, value: Array, element: DType) -> SSAValue:
    """A constant of one element in the form kernels hold: signless, pred as a byte 0 or 1.

    value  an array of one element, as NumPy holds `element`

    A signalling NaN is emitted as an integer and bitcast: a float attribute, which holds a Python number, would lose its bits.
    """
    if element.kind is Kind.FLOAT and _loses_bits(value):
        bits = constant(e, _bits(value), IntegerType(element.bits))
        return e.insert(arith.BitcastOp(bits, element.storage_type)).result
    number = {Kind.COMPLEX: complex, Kind.FLOAT: float}.get(element.kind, int)(value)
    return constant(e, number, element.storage_type)


def _loses_bits(value: Array) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(value)) and _bits(value) != _bits(np.asarray(float(value)).astype(value.dtype))


def _bits(value: Array) -> int:
    return int(np.asarray(value).view(f"u{value.dtype.itemsize}"))


@op_definition
class IotaOp(HloOp):
    """Every element is its own index in one dimension."""

    name = "hlo.iota"
    OPERANDS: ClassVar = range(0, 1)

    iota_dimension = prop_def(IntegerAttr)

    @property
    def dimension(self) -> int:
        return self.iota_dimension.value.data

    def verify_(self) -> None:
        rank = len(dims_of(self.result))
        if not 0 <= self.dimension < rank:
            raise RuleBroken(
                f"iota along dimension {self.dimension} of an array of rank {rank}",
                f"it is {type_text(self.result.type)}",
            )

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return counted_along(self.dimension, dims_of(self.result), element_of(self.result))

    def output_to_input(self) -> tuple[()]:
        return ()

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        # The index is not negative, so the narrowest integer that holds it may be signed.
        held = dtype("s32" if dims_of(self.result)[self.dimension] <= 1 << 31 else "s64")
        index = e.insert(IndexCastUIOp(e.indices[self.dimension], held.storage_type)).result
        return (emit_convert(e, index, held, element_of(self.result)),)


def counted_along(dimension: int, shape: Sequence[int], element: DType) -> Array:
    """An array whose elements are their own indices in one dimension."""
    one = np.arange(shape[dimension]).reshape([-1 if dim == dimension else 1 for dim in range(len(shape))])
    return np.broadcast_to(convert_array(one, dtype("s64"), element), shape).copy()


OPS: tuple[type[HloOp], ...] = (ConstantOp, IotaOp)
