"""Ops on types that the backend does not support are computed in a wider type, between conversions. On HLO.

    r = reduce(m: pred[?,?], and), dims {0}           w = convert(m): u32; s = reduce(w, minimum); r = convert(s): pred

Always: reductions of matrices (after `disc-canonicalize-reduction`) of pred and of integers below 32 bits. Signed ones become s32,
unsigned and pred u32, which keeps the order; a sum is truncated to the narrow type, which equals the sum that wraps there. For pred, `and`
and `multiply` are `minimum`, `or` and `add` are `maximum`. Only bodies of one op on the two arguments are converted.

    to=f16, to=bf16       mixed precision: f32 dots and convolutions take operands of that type and add in f32; less exact, so an option. A
                          dot returns f32; a convolution, for which libraries want one type, returns the narrow one, and is converted back
    dot, convolution      =false excludes the one or the other
    sensitive             rsqrt, tanh and reductions of f16 are computed in f32

A second run changes nothing.
Source: seed document, "DhloElementTypeConverterPass"; BladeDISC element_type_converter.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Block, SSAValue

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, ReturnOp, find_computation
from xla_emitters.dialects.hlo.contractions import ContractingOp, DotOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of
from xla_emitters.dtypes import DType, Kind, dtype
from xla_emitters.dynamic.passes.shape_code import ShapeCode
from xla_emitters.errors import UsageError
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

OF_PRED = {
    **dict.fromkeys(("and", "multiply", "minimum"), "minimum"),
    **dict.fromkeys(("or", "add", "maximum"), "maximum"),
    "xor": "xor",
}
OF_INTEGERS = frozenset(OF_PRED)
NARROW = ("f16", "bf16")
_SENSITIVE = frozenset(("rsqrt", "tanh"))


@dataclass(frozen=True)
class DiscElementTypeConverterPass(KernelPass):
    name = "disc-element-type-converter"

    to: str = ""
    dot: bool = True
    convolution: bool = True
    sensitive: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        if self.to not in ("", *NARROW):
            raise UsageError(f"{self.name}: no mixed precision in '{self.to}'", help=f"one of: {', '.join(NARROW)}")
        names = Names(op)
        for inner in list(op.walk()):
            match inner:
                case ReduceOp():
                    self._reduction(inner, names)
                case HloOp() if isinstance(inner, ContractingOp) or inner.opcode == "dynamic-conv":
                    wanted = self.dot if isinstance(inner, DotOp) else self.convolution
                    if self.to and wanted:
                        self._narrow(inner, names)
                case ElementwiseOp() if self.sensitive and inner.opcode in _SENSITIVE:
                    if element_of(inner.result).name == "f16":
                        _between(inner, names, dtype("f32"), 1)
                case _:
                    pass

    def _narrow(self, op: HloOp, names: Names) -> None:
        """A dot or a convolution in mixed precision."""
        if any(element_of(value).name != "f32" for value in (*op.operands[:2], op.result)):
            return
        if op.properties.get("algorithm") is not None:
            return self.skip(op, "the program says how it is computed")
        if not isinstance(op, DotOp):
            return _between(op, names, dtype(self.to), 2)
        code = ShapeCode(names, op)
        op.operands = [_converted(code, value, dtype(self.to)) for value in op.operands]
        return None

    def _reduction(self, reduction: ReduceOp, names: Names) -> None:
        element = element_of(reduction.operands[0])
        if self.sensitive and element.name == "f16":
            wide = dtype("f32")
        elif element.kind is Kind.PRED or (element.is_integer and element.bits < 32):
            wide = dtype("s32" if element.kind is Kind.SIGNED else "u32")
        else:
            return
        if len(reduction.arrays) != 1:
            return self.skip(reduction, f"it reduces several arrays, one of {element.name}")
        if element.is_integer and len(dims_of(reduction.operands[0])) != 2:
            return self.skip(reduction, "it is not the reduction of a matrix: run disc-canonicalize-reduction first")
        opcode = _body_opcode(reduction)
        if opcode is None or (element.kind is not Kind.FLOAT and opcode not in OF_INTEGERS):
            return self.skip(reduction, f"what it applies to {element.name} is not one op of its two arguments")
        if element.kind is Kind.PRED:
            opcode = OF_PRED[opcode]
        around = reduction.parent_op()
        assert isinstance(around, ComputationOp)
        body = _body(opcode, wide)
        names.add_computation(body, around)
        _between(reduction, names, wide, 2, SymbolRefAttr(body.sym_name.data))


def _body_opcode(reduction: ReduceOp) -> str | None:
    """The opcode of a reduction's body, if that is one op on its two arguments."""
    body = find_computation(reduction, reduction.to_apply)
    root = body.root.owner
    if (
        not isinstance(root, ElementwiseOp)
        or len(root.operands) != 2
        or set(root.operands) != {parameter.result for parameter in body.parameters}
    ):
        return None
    return root.opcode if root.opcode in OF_INTEGERS else None


def _body(opcode: str, element: DType) -> ComputationOp:
    """A computation of one op on two scalars."""
    scalar = array_type(element.ir_type, ())
    x, y = ParameterOp(0, scalar, "x"), ParameterOp(1, scalar, "y")
    root = HLO_OPS[opcode]([x.result, y.result], scalar, opcode)
    return ComputationOp(f"{opcode}_{element.name}", Block([x, y, root, ReturnOp(root.result)]))


def _between(op: HloOp, names: Names, element: DType, operands: int, body: SymbolRefAttr | None = None) -> None:
    """Computes `op` in another type: its first operands are converted to it, and the result back.

    body  the reduction's new body
    """
    code = ShapeCode(names, op)
    converted: Sequence[SSAValue] = [_converted(code, value, element) for value in op.operands[:operands]]
    properties = dict(op.properties) | ({"to_apply": body} if body is not None else {})
    result = array_type(element.ir_type, dims_of(op.result))
    made = type(op)([*converted, *op.operands[operands:]], result, op.instruction_name.data, properties)
    made.attributes |= op.attributes
    names.replace(op, _converted(code, names.add(made, op), element_of(op.result)))


def _converted(code: ShapeCode, value: SSAValue, element: DType) -> SSAValue:
    if element_of(value) == element:
        return value
    return code.add("convert", [value], array_type(element.ir_type, dims_of(value)))
