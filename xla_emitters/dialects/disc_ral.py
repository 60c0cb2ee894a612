"""Calls of the runtime: a context that holds all state and passes arguments and results; functions found by name.

    func.func @main(%ctx: !disc_ral.context) {
      %st = disc_ral.stream %ctx
      %x = disc_ral.recv_input %ctx, 0 : memref<?x4xf32, "gpu">
      disc_ral.dispatch "ral_gemm" on "gpu"(%ctx, %st, %x, %w, %o, %f, %f, %f) : (...) -> ()
      disc_ral.send_output %ctx, 0, %o : memref<?x4xf32, "gpu">

A function is found by a name made from its call name, the device, and the types of arguments and results (`ral_name`), in bundles too:

    ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void

    context, stream, text   pvoid          iN, unsigned iN   iN, uiN         index     i64
    f16, bf16, f32 ...      by that name   rank R of T       m{R}d{T}        nothing   void

`config` is one more argument, a compile-time text or list of numbers; it counts as one more pvoid.
Source: seed document, "DhloInjectExecutionContext", "LowerToLibraryCallsV2", "RewriteRalApi"; docs/reference/4 4.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    ComplexType,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.errors import UsageError


class RalName(NamedTuple):
    """The parts of a name: codes of argument and result types, () for none."""

    call: str
    device: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]

    def __str__(self) -> str:
        return "___".join((self.call, self.device, "_".join(self.ins) or "void", "_".join(self.outs) or "void"))

    @staticmethod
    def parse(text: str, default_device: str = "gpu") -> RalName:
        """The inverse of `str`; a name in the seed's spelling, without a device, gets `default_device`.

        raises UsageError for a text that is no such name

        >>> RalName.parse("ral_gemm___pvoid_m2df32_i1___void").device
        'gpu'
        """
        match text.rsplit("___", 3):  # a call may end with an underscore
            case [call, device, ins, outs] if "___" not in call.rstrip("_"):
                pass
            case [call, ins, outs]:
                device = default_device
            case _:
                raise UsageError(f"'{text}' is not the name of a runtime function", stage="ral")
        return RalName(call, device, _codes(ins), _codes(outs))


def _codes(text: str) -> tuple[str, ...]:
    return () if text == "void" else tuple(text.split("_"))


@irdl_attr_definition
class ContextType(ParametrizedAttribute, TypeAttribute):
    """The state of one call of a program: arguments, results, buffers."""

    name = "disc_ral.context"


@irdl_attr_definition
class StreamType(ParametrizedAttribute, TypeAttribute):
    """A device's queue: work on it is executed in order."""

    name = "disc_ral.stream"


CONTEXT, STREAM = ContextType(), StreamType()
MARKER = "gpu_mem_marker_"
"""Prefix of the names of functions that mark buffers of a GPU."""


@op_definition
class StreamOp(PureOp):
    """The stream of a context."""

    name = "disc_ral.stream"

    context = operand_def(ContextType)
    stream = result_def(StreamType)
    assembly_format = "$context attr-dict"

    def __init__(self, context: SSAValue):
        super().__init__(operands=[context], result_types=[STREAM])


@op_definition
class RecvInputOp(QuickOp):
    """An argument of the call."""

    name = "disc_ral.recv_input"

    context = operand_def(ContextType)
    number = prop_def(IntegerAttr.constr(i64))
    buffer = result_def(MemRefType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$context `,` $number attr-dict `:` type($buffer)"

    def __init__(self, context: SSAValue, number: int, ir_type: Attribute):
        super().__init__(operands=[context], properties={"number": IntegerAttr(number, i64)}, result_types=[ir_type])


@op_definition
class SendOutputOp(QuickOp):
    """Makes a buffer a result of the call; its reference goes to the caller."""

    name = "disc_ral.send_output"

    context = operand_def(ContextType)
    number = prop_def(IntegerAttr.constr(i64))
    buffer = operand_def(MemRefType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$context `,` $number `,` $buffer attr-dict `:` type($buffer)"

    def __init__(self, context: SSAValue, number: int, buffer: SSAValue):
        super().__init__(operands=[context, buffer], properties={"number": IntegerAttr(number, i64)})


@op_definition
class DispatchOp(QuickOp):
    """Calls a function of the runtime by name."""

    name = "disc_ral.dispatch"

    call = prop_def(StringAttr)
    device = prop_def(StringAttr)
    config = opt_prop_def(StringAttr | DenseArrayBase)
    arguments = var_operand_def()
    res = var_result_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$call `on` $device `(` $arguments `)` (`config` $config^)? attr-dict `:` functional-type($arguments, $res)"
    )

    def __init__(
        self,
        call: str,
        device: str,
        arguments: Sequence[SSAValue],
        results: Sequence[Attribute] = (),
        config: StringAttr | DenseArrayBase | None = None,
    ):
        super().__init__(
            operands=[arguments],
            properties={"call": StringAttr(call), "device": StringAttr(device), "config": config},
            result_types=[results],
        )

    @property
    def full_name(self) -> str:
        """The name by which the runtime finds the function."""
        extra = [] if self.config is None else [STREAM]
        ins = [value.type for value in self.arguments] + extra
        return ral_name(self.call.data, self.device.data, ins, [value.type for value in self.res])


# ---------------------------------------------------------------------------------------------------------------- names


def ral_name(call: str, device: str, ins: Sequence[Attribute], outs: Sequence[Attribute]) -> str:
    """The name of a function with these types; see the file's head."""
    return str(RalName(call, device, tuple(map(type_code, ins)), tuple(map(type_code, outs))))


def type_code(ir_type: Attribute) -> str:
    """The code of a type in a name."""
    match ir_type:
        case ContextType() | StreamType():
            return "pvoid"
        case IndexType():
            return "i64"
        case MemRefType():
            return f"m{ir_type.get_num_dims()}d{type_code(ir_type.element_type)}"
        case IntegerType():
            sign = "u" if ir_type.signedness.data is Signedness.UNSIGNED else ""
            return f"{sign}i{ir_type.width.data}"
        case ComplexType():
            return dtype_of(ir_type).name
        case _:
            # Names of eight-bit floats have no underscore, so that names can be parsed.
            return dtype_of(ir_type).name


def is_runtime_value(value: SSAValue) -> bool:
    """Whether a value is a context or a stream, which generated code need not pass twice."""
    return isinstance(value.type, ContextType | StreamType)


def is_marker(op: Operation) -> bool:
    """Whether an op only marks its operand as a GPU's buffer."""
    return isinstance(op, func.CallOp) and op.callee.root_reference.data.startswith(MARKER)


DISC_RAL = Dialect("disc_ral", [StreamOp, RecvInputOp, SendOutputOp, DispatchOp], [ContextType, StreamType])


def constant_name(array: Array, element: Attribute) -> str:
    """The name of a constant: MD5 of its bytes in hexadecimal, the element type's code, the sizes: `..._i32_2`; pred elements are bytes.

    array    row major
    element  its type in IR
    """
    text = array.tobytes().hex().upper()
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()
    code = {"i1": "i8", "bf16": "f16"}.get(type_code(element), type_code(element))
    return "_".join((digest, code, *(("x".join(map(str, array.shape)),) if array.ndim else ())))
