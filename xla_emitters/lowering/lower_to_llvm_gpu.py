"""Converts func, arith, math, vector, cf and gpu to llvm and nvvm, the dialects that LLVM's tools take. Ops of other dialects are refused.

    func.func @fusion(%arg0: !llvm.ptr {llvm.align = 16 : index, xla.slice_index = 0 : index}, ...)
        attributes {xla.entry, gpu.known_block_size = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>} {
      %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
      %e = vector.extract %v[0] : bf16 from vector<4xbf16>
->
    llvm.func @fusion(%arg0: !llvm.ptr {llvm.align = 16 : index}, ...)
        attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>} {
      %thread_id_x = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %c0 = llvm.mlir.constant(0 : i32) : i32
      %e = llvm.extractelement %v[%c0 : i32] : vector<4xbf16>

`index` becomes i32 or i64, as the module's data layout says; a complex number becomes the struct of its parts. Functions are rewritten in
place, op by op, each block after the blocks that dominate it, so that an op's operands already have LLVM types. Each
constant is defined once, at the function's start. An op with a counterpart in LLVM is a row of a table; every other op has a function in
this file. Math functions without an instruction become calls of libdevice, unless xla-convert-math-to-libdevice has run. bf16 and f16
arithmetic stays in its type: the backend widens it for chips that lack it. Narrow floats become integers of their width: the remaining
ops only move their bits.

The launch is checked against `device`: a block that is too large for it is refused here, not by the driver.
Source: docs/reference/2 3.3 "xla-lower-to-llvm-gpu", 4.1 (attributes of the entry); seed document, "Conversion to LLVM".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.type import get_element_type_or_self

from xla_emitters.device import Device
from xla_emitters.dialects.attributes import integer, integer_array, integer_type, vector_type
from xla_emitters.dialects.context import op_named
from xla_emitters.dialects.float_bits import values_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder, replace_by
from xla_emitters.dialects.mlir import arith, cf, func, gpu, llvm, vector
from xla_emitters.dialects.mlir.arith import rounds_to_nearest_even
from xla_emitters.dialects.mlir.gpu import ShuffleOp
from xla_emitters.dialects.mlir.llvm.metadata import LOOP_ANNOTATION
from xla_emitters.dialects.mlir.nvvm import ShflOp
from xla_emitters.dialects.quick_op import operands_of, ops_of, walk
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.dtypes import WIDE_FLOATS, dtype_of
from xla_emitters.functions import BY_OP, CodeSize
from xla_emitters.lowering.libdevice_calls import call_libdevice
from xla_emitters.lowering.narrow_floats import is_narrow, is_number_op
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_entry import ENTRY, GRID, KERNEL, REQUIRED_BLOCK, known_block, known_grid
from xla_emitters.rewrite.kernel_pass import DevicePass, refusal
from xla_emitters.rewrite.symbols import Scope, functions, scopes
from xla_emitters.support.late_dataclass import dataclass

# Ops that map to one op with the same operands in the same order; flags are carried over.
_RENAMED = {
    "arith.addf": "llvm.fadd",
    "arith.addi": "llvm.add",
    "arith.andi": "llvm.and",
    "arith.divf": "llvm.fdiv",
    "arith.divsi": "llvm.sdiv",
    "arith.divui": "llvm.udiv",
    "arith.extf": "llvm.fpext",
    "arith.extsi": "llvm.sext",
    "arith.extui": "llvm.zext",
    "arith.fptosi": "llvm.fptosi",
    "arith.fptoui": "llvm.fptoui",
    "arith.maximumf": "llvm.intr.maximum",
    "arith.maxnumf": "llvm.intr.maxnum",
    "arith.maxsi": "llvm.intr.smax",
    "arith.maxui": "llvm.intr.umax",
    "arith.minimumf": "llvm.intr.minimum",
    "arith.minnumf": "llvm.intr.minnum",
    "arith.minsi": "llvm.intr.smin",
    "arith.minui": "llvm.intr.umin",
    "arith.mulf": "llvm.fmul",
    "arith.muli": "llvm.mul",
    "arith.negf": "llvm.fneg",
    "arith.ori": "llvm.or",
    "arith.remsi": "llvm.srem",
    "arith.remui": "llvm.urem",
    "arith.select": "llvm.select",
    "arith.shli": "llvm.shl",
    "arith.shrsi": "llvm.ashr",
    "arith.shrui": "llvm.lshr",
    "arith.sitofp": "llvm.sitofp",
    "arith.subf": "llvm.fsub",
    "arith.subi": "llvm.sub",
    "arith.truncf": "llvm.fptrunc",
    "arith.trunci": "llvm.trunc",
    "arith.uitofp": "llvm.uitofp",
    "arith.xori": "llvm.xor",
    "math.ctpop": "llvm.intr.ctpop",
    **{op: row.intrinsics[0] for op, row in BY_OP.items() if row.size is CodeSize.SMALL and row.intrinsics},
    "ub.poison": "llvm.mlir.poison",
    "vector.fma": "llvm.intr.fma",
}
# Ops with a flag that makes one input poison; the flag is always false here.
_WITH_POISON_FLAG = {
    "math.absi": ("llvm.intr.abs", "is_int_min_poison"),
    "math.ctlz": ("llvm.intr.ctlz", "is_zero_poison"),
    "math.cttz": ("llvm.intr.cttz", "is_zero_poison"),
}
_SIZES = ("x", "y", "z")
_WARP = 32
_STAGE = "xla-lower-to-llvm-gpu"


class LowerToLlvmGpuPass(DevicePass):
    """device  the target GPU"""

    name = "xla-lower-to-llvm-gpu"

    def apply_to(self, op: ModuleOp) -> None:
        call_libdevice(op, self.skip)
        for function in [found for module in scopes(op) for found in functions(module).values()]:
            _FunctionLowering(index_width(op), self.device, function).lower()
        for found in walk(op):
            if not found.name.startswith(("llvm.", "nvvm.")) and not isinstance(found, Scope):
                raise self.refuse(found, f"{found.name} outside a function")


@dataclass
class _FunctionLowering:
    """Lowers one function. New ops are inserted before `op`, the op that is being lowered, and have its location."""

    width: int
    device: Device
    function: func.FuncOp
    constants: dict[tuple[Attribute, Attribute], SSAValue] = field(
        default_factory=dict[tuple[Attribute, Attribute], SSAValue]
    )
    types: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])
    last_constant: Operation | None = None
    op: Operation = field(init=False)

    def lower(self) -> None:
        """Replaces the func.func by an llvm.func, including the body."""
        self.op = self.function
        block = known_block(self.function)
        if block and prod(block) > self.device.threads_per_block_max:
            limit = self.device.threads_per_block_max
            raise refusal(
                _STAGE, self.function, f"a block of {prod(block)} threads; {self.device.name} runs {limit} at most"
            )
        for op in walk(self.function):
            if is_number_op(op):
                raise refusal(_STAGE, op, f"{op.name} computes with floats of eight bits or fewer")
        replacement = self._function()
        for block in _dominators_first(self.function.body):
            for argument in block.args:
                if (converted := self.type_of(argument.type)) != argument.type:
                    Rewriter.replace_value_with_new_type(argument, converted)
            for op in ops_of(block):
                if not op.name.startswith(("llvm.", "nvvm.")):
                    self._lower_op(op)
        self.function.body.move_blocks(replacement.body)
        Rewriter.replace_op(self.function, replacement, [])

    def _lower_op(self, op: Operation) -> None:
        handler = _HANDLERS.get(op.name)
        if handler is None:
            raise refusal(_STAGE, op, f"no lowering to LLVM for {op.name}")
        self.op = op
        replace_by(op, handler(self, op))

    # Builders that handlers use

    def make(
        self,
        name: str,
        operands: Sequence[SSAValue] = (),
        types: Sequence[Attribute] = (),
        properties: dict[str, Attribute] | None = None,
        successors: Sequence[Block] = (),
    ) -> Operation:
        """Inserts the llvm or nvvm op called `name` before the op that is being lowered."""
        made = op_named(name).create(
            operands=operands,
            result_types=types,
            properties=properties or {},
            location=self.op.location,
            successors=successors,
        )
        block = self.op.parent
        assert block is not None
        block.insert_op_before(made, self.op)
        return made

    def value(
        self,
        name: str,
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        return self.make(name, operands, [result_type], properties).results[0]

    def constant(self, value: Attribute, llvm_type: Attribute) -> SSAValue:
        """A constant at the function's start; one per value."""
        if (known := self.constants.get((value, llvm_type))) is None:
            made = op_named("llvm.mlir.constant").create(result_types=[llvm_type], properties={"value": value})
            entry = self.function.body.first_block
            assert entry is not None
            if self.last_constant is not None:
                entry.insert_op_after(made, self.last_constant)
            else:
                Rewriter.insert_op(made, InsertPoint.at_start(entry))
            self.last_constant = made
            known = self.constants[value, llvm_type] = made.results[0]
        return known

    def integer(self, value: int, integer_type: IntegerType = i32) -> SSAValue:
        """An integer constant, called %c7_i32 unless it already has a name."""
        made = self.constant(integer(value, integer_type), integer_type)
        if made.name_hint is None and value >= 0:
            made.name_hint = f"c{value}_{integer_type}"
        return made

    def type_of(self, source_type: Attribute) -> Attribute:
        """The LLVM type. raises Unsupported if there is none."""
        if (known := self.types.get(source_type)) is None:
            known = self.types[source_type] = self._convert(source_type)
        return known

    def _convert(self, source_type: Attribute) -> Attribute:
        match source_type:
            case IndexType():
                return integer_type(self.width)
            case IntegerType() if source_type.signedness.data is Signedness.SIGNLESS:
                return source_type
            case VectorType() if source_type.get_num_dims() == 1 and not any(source_type.scalable_dims.data):
                return vector_type(self.type_of(source_type.element_type), source_type.get_shape())
            case _ if isinstance(source_type, WIDE_FLOATS) or source_type.name.startswith("llvm."):
                return source_type
            case ComplexType():
                part = self.type_of(source_type.element_type)
                return llvm.LLVMStructType.from_type_list([part, part])
            case _ if isinstance(source_type, AnyFloat) and is_narrow(source_type):
                return integer_type(source_type.bitwidth)
            case _:
                raise refusal(_STAGE, self.op, f"no LLVM type for {source_type}")

    # The function itself

    def _function(self) -> llvm.FuncOp:
        """The empty llvm.func: kernels are external, with their launch; private functions with a body are internal."""
        old = self.function
        inputs = [self.type_of(argument_type) for argument_type in old.function_type.inputs]
        outputs = [self.type_of(result_type) for result_type in old.function_type.outputs]
        attributes = {
            name: value
            for name, value in old.attributes.items()
            if name.startswith(("llvm.", "nvvm.")) and name != "llvm.linkage"
        }
        if ENTRY in old.attributes:
            attributes[KERNEL] = UnitAttr()
            if block := known_block(self.function):
                attributes[REQUIRED_BLOCK] = integer_array(block, 32)
            if grid := known_grid(self.function):
                attributes[GRID] = integer_array(grid, 32)
        linkage = old.attributes.get("llvm.linkage")
        if not isinstance(linkage, llvm.LinkageAttr):
            is_internal = old.sym_visibility == StringAttr("private") and bool(old.body.blocks)
            linkage = llvm.INTERNAL if is_internal else llvm.EXTERNAL
        made = llvm.FuncOp(
            old.sym_name,
            llvm.LLVMFunctionType(inputs, _together(outputs) if outputs else None),
            linkage=linkage,
            body=Region(),
            other_props={
                "arg_attrs": _llvm_only(old.arg_attrs),
                "res_attrs": _llvm_only(old.res_attrs),
                "no_inline": old.attributes.get("no_inline"),
            },
            extra_attrs=attributes,
        )
        made.location = old.location
        return made


def _llvm_only(dictionaries: ArrayAttr[DictionaryAttr] | None) -> ArrayAttr[DictionaryAttr] | None:
    """Argument or result attributes without those that LLVM does not understand; None if none remain."""
    if dictionaries is None:
        return None
    kept = [
        DictionaryAttr({name: value for name, value in one.data.items() if name.startswith("llvm.")})
        if one.data
        else one
        for one in dictionaries
    ]
    return ArrayAttr(kept) if any(one.data for one in kept) else None


def _dominators_first(region: Region) -> list[Block]:
    """The reachable blocks, each after those that dominate it (reverse postorder); unreachable blocks are erased."""
    if (entry := region.first_block) is None:
        return []
    if entry is region.last_block:
        return [entry]
    from xla_emitters.support.dominance import reverse_postorder  # imported here: most regions have one block

    order = reverse_postorder(entry, lambda block: reversed(block.last_op.successors) if block.last_op else ())
    seen = set(order)
    unreachable = [block for block in region.blocks if block not in seen]
    for block in unreachable:
        for op in block.ops:
            op.drop_all_references()
    for block in unreachable:
        region.erase_block(block, safe_erase=False)
    return order


# Handlers: each builds the lowering of one op and returns the values of its results

_Handler = Callable[[_FunctionLowering, Operation], Sequence[SSAValue]]


def _flags(op: Operation) -> dict[str, Attribute]:
    """The op's exactness, overflow and fast-math flags in LLVM's spelling."""
    flags: dict[str, Attribute] = {}
    if (exact := op.properties.get("isExact")) is not None:
        flags["isExact"] = exact
    overflow = op.properties.get("overflowFlags")
    if type(overflow) is arith.IntegerOverflowAttr and overflow.data:
        same = llvm.OverflowAttr([llvm.OverflowFlag(flag.value) for flag in overflow.data])
        flags["overflowFlags"] = integer(same.to_int(), i32)
    fastmath = op.properties.get("fastmath")
    if type(fastmath) is arith.FastMathFlagsAttr and fastmath.data:
        flags["fastmathFlags"] = llvm.FastMathAttr(fastmath.data)
    return flags


def _renamed(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    if not rounds_to_nearest_even(op):
        raise refusal(_STAGE, op, f"{op.name} that does not round to nearest even")
    types = [lowering.type_of(result.type) for result in op.results]
    name = _RENAMED[op.name]
    if flags := _flags(op):
        # LLVM's op may lack a flag. Flags only permit optimisations, so such flags are dropped.
        known = cast(type[IRDLOperation], op_named(name)).get_irdl_definition().properties
        flags = {flag: value for flag, value in flags.items() if flag in known}
    return lowering.make(name, operands_of(op), types, flags).results


def _shift(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """shli, shrsi and shrui. Of i64, only the lower six bits of an amount count: by 64 or more the result is poison anyway.

    LLVM 22 makes one instruction of `%amount < 64 ? %x << %amount : 0`, since PTX's shifts by 64 or more give 0, but PTX's amounts have
    32 bits: it drops the upper ones, and 1 << 2**32 is 1. An ashr of what is not negative is such a shift too. LLVM does not look
    through the mask. Source: llvm-project pull request 201165.
    """
    value, amount = op.operands
    if value.type != i64 or isinstance(amount.owner, llvm.ConstantOp | llvm.ZExtOp):
        return _renamed(lowering, op)
    amount = lowering.value("llvm.and", [amount, lowering.integer(63, i64)], i64)
    return lowering.make(_RENAMED[op.name], [value, amount], [i64], _flags(op)).results


def _with_poison_flag(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    name, flag = _WITH_POISON_FLAG[op.name]
    return [lowering.value(name, op.operands, lowering.type_of(op.results[0].type), {flag: integer(0, i1)})]


def _compare(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """cmpi and cmpf: the predicates have the same numbers in LLVM."""
    predicate = op.properties["predicate"]
    assert isa(predicate, IntegerAttr)
    name = "llvm.icmp" if op.name == "arith.cmpi" else "llvm.fcmp"
    properties: dict[str, Attribute] = {"predicate": integer(predicate.value.data, i64)} | _flags(op)
    return [lowering.value(name, operands_of(op), lowering.type_of(op.results[0].type), properties)]


def _constant(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    value = op.properties["value"]
    result_type = lowering.type_of(op.results[0].type)
    if isa(value, IntegerAttr) and isa(result_type, IntegerType):
        return [lowering.constant(integer(value.value.data, result_type, True), result_type)]
    if isa(value, FloatAttr) and isa(result_type, IntegerType):
        return [lowering.integer(_codes(value.type, [value.value.data])[0], result_type)]
    if (
        isa(value, DenseIntOrFPElementsAttr)
        and isa(result_type, VectorType[IntegerType])
        and result_type != op.results[0].type
    ):
        numbers = [number for number in values_of(value) if not isinstance(number, tuple)]
        value = DenseIntOrFPElementsAttr.from_list(result_type, _codes(value.get_element_type(), numbers))
    elif result_type != op.results[0].type:
        raise refusal(_STAGE, op, f"a constant of type {op.results[0].type}")
    return [lowering.constant(value, result_type)]


def _codes(element_type: Attribute, values: Sequence[float]) -> list[int]:
    """The bits of narrow floats, as signed numbers."""
    row = dtype_of(element_type)
    codes = np.array(values, np.float32).astype(row.numpy).view(np.uint8)
    return [int(code) - (int(code) >> row.bits - 1 << row.bits) for code in codes]


def _bitcast(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    (operand,), result_type = op.operands, lowering.type_of(op.results[0].type)
    return [operand if operand.type == result_type else lowering.value("llvm.bitcast", [operand], result_type)]


def _cast(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """index_cast, index_castui: an extension, a truncation, or nothing, because index now has a width."""
    (operand,), result_type = op.operands, lowering.type_of(op.results[0].type)
    if operand.type == result_type:
        return [operand]
    source, target = get_element_type_or_self(operand.type), get_element_type_or_self(result_type)
    assert isa(source, IntegerType)
    assert isa(target, IntegerType)
    if target.width.data < source.width.data:
        return [lowering.value("llvm.trunc", [operand], result_type)]
    return [lowering.value("llvm.zext" if op.name == "arith.index_castui" else "llvm.sext", [operand], result_type)]


def _unrealized_cast(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    if [operand.type for operand in op.operands] != [lowering.type_of(result.type) for result in op.results]:
        raise refusal(_STAGE, op, f"a cast of {op.operands[0].type} to {op.results[0].type} remains")
    return op.operands


def _integer_type(op: Operation, value: SSAValue) -> IntegerType:
    if not isa(value.type, IntegerType):
        raise refusal(_STAGE, op, f"{op.name} on {value.type}")
    return value.type


def _ceildivui(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """x == 0 ? 0 : (x - 1) / y + 1, which cannot overflow."""
    x, y = op.operands
    integer_type = _integer_type(op, x)
    zero, one = lowering.integer(0, integer_type), lowering.integer(1, integer_type)
    is_zero = lowering.value("llvm.icmp", [x, zero], i1, {"predicate": integer(0, i64)})
    quotient = lowering.value("llvm.udiv", [lowering.value("llvm.sub", [x, one], integer_type), y], integer_type)
    return [
        lowering.value(
            "llvm.select", [is_zero, zero, lowering.value("llvm.add", [quotient, one], integer_type)], integer_type
        )
    ]


def _rounding_division(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """floordivsi, ceildivsi: sdiv rounds towards zero; corrected by one if there is a remainder and the signs require it."""
    x, y = op.operands
    integer_type = _integer_type(op, x)
    is_floor = op.name == "arith.floordivsi"
    zero = lowering.integer(0, integer_type)
    quotient = lowering.value("llvm.sdiv", [x, y], integer_type)
    rest = lowering.value("llvm.sub", [x, lowering.value("llvm.mul", [quotient, y], integer_type)], integer_type)
    has_rest = lowering.value("llvm.icmp", [rest, zero], i1, {"predicate": integer(1, i64)})
    # The exact quotient is negative if the signs differ, that is, if x xor y is below zero.
    signs = lowering.value("llvm.xor", [x, y], integer_type)
    slt, sge = integer(2, i64), integer(5, i64)
    rounded = lowering.value("llvm.icmp", [signs, zero], i1, {"predicate": slt if is_floor else sge})
    steps = lowering.value("llvm.and", [has_rest, rounded], i1)
    further = lowering.value(
        "llvm.add", [quotient, lowering.integer(-1 if is_floor else 1, integer_type)], integer_type
    )
    return [lowering.value("llvm.select", [steps, further, quotient], integer_type)]


# vector


def _position(lowering: _FunctionLowering, op: vector.ExtractOp | vector.InsertOp) -> SSAValue:
    """The op's only position, a constant as i32."""
    positions = op.get_mixed_position()
    if len(positions) != 1:
        raise refusal(_STAGE, op, f"{op.name} with {len(positions)} positions")
    (position,) = positions
    return lowering.integer(position) if isinstance(position, int) else position


def _extract(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.ExtractOp)
    position = _position(lowering, op)
    return [lowering.value("llvm.extractelement", [op.vector, position], lowering.type_of(op.result.type))]


def _insert(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, vector.InsertOp)
    position = _position(lowering, op)
    return [lowering.value("llvm.insertelement", [op.dest, op.source, position], lowering.type_of(op.result.type))]


def _from_elements(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    result_type = lowering.type_of(op.results[0].type)
    made = lowering.value("llvm.mlir.poison", [], result_type)
    for number, element in enumerate(op.operands):
        made = lowering.value("llvm.insertelement", [made, element, lowering.integer(number)], result_type)
    return [made]


def _broadcast(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """Inserts the scalar into element 0, then copies it to all elements by a shuffle."""
    (source,), result_type = op.operands, lowering.type_of(op.results[0].type)
    if source.type == result_type:
        return [source]
    if isa(source.type, VectorType) or not isa(result_type, VectorType):
        raise refusal(_STAGE, op, f"vector.broadcast of {source.type} to {result_type}")
    poison = lowering.value("llvm.mlir.poison", [], result_type)
    first = lowering.value("llvm.insertelement", [poison, source, lowering.integer(0)], result_type)
    mask = integer_array((0,) * result_type.get_shape()[0], 32)
    return [lowering.value("llvm.shufflevector", [first, poison], result_type, {"mask": mask})]


# complex: a number is a struct of its parts


def _part(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    (operand,), result_type = op.operands, lowering.type_of(op.results[0].type)
    return [_field(lowering, operand, 0 if op.name == "complex.re" else 1, result_type)]


def _struct(lowering: _FunctionLowering, values: Sequence[SSAValue]) -> SSAValue:
    struct_type = _together([value.type for value in values])
    made = lowering.value("llvm.mlir.poison", [], struct_type)
    for number, value in enumerate(values):
        position: dict[str, Attribute] = {"position": integer_array((number,))}
        made = lowering.value("llvm.insertvalue", [made, value], struct_type, position)
    return made


def _field(lowering: _FunctionLowering, struct: SSAValue, number: int, field_type: Attribute) -> SSAValue:
    position: dict[str, Attribute] = {"position": integer_array((number,))}
    return lowering.value("llvm.extractvalue", [struct], field_type, position)


# gpu


def _id(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """thread_id and block_id: a special register with the range of the op, or of the launch."""
    dimension = _dimension(op)
    is_thread = op.name == "gpu.thread_id"
    sizes = known_block(lowering.function) if is_thread else known_grid(lowering.function)
    known = range_of_value(op.results[0])
    upper = known.upper + 1 if known else sizes[_SIZES.index(dimension)] if sizes else None
    lower = known.lower if known else 0
    properties: dict[str, Attribute] = {}
    if upper is not None and 0 <= lower < upper <= 2**31 - 1:
        properties["range"] = llvm.ConstantRangeAttr.of(32, lower, upper)
    register = lowering.value(f"nvvm.read.ptx.sreg.{'tid' if is_thread else 'ctaid'}.{dimension}", [], i32, properties)
    return [_widened(lowering, register)]


def _size(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """block_dim and grid_dim: the launch's number if it is known."""
    dimension = _dimension(op)
    is_block = op.name == "gpu.block_dim"
    if sizes := known_block(lowering.function) if is_block else known_grid(lowering.function):
        return [lowering.integer(sizes[_SIZES.index(dimension)], IntegerType(lowering.width))]
    register = lowering.value(f"nvvm.read.ptx.sreg.{'ntid' if is_block else 'nctaid'}.{dimension}", [], i32)
    return [_widened(lowering, register)]


def _dimension(op: Operation) -> str:
    dimension = op.properties["dimension"]
    assert isinstance(dimension, gpu.DimensionAttr)
    return str(dimension.data)


def _widened(lowering: _FunctionLowering, register: SSAValue) -> SSAValue:
    """The value of a special register as an index."""
    if lowering.width == 32:
        return register
    return lowering.value("llvm.zext", [register], IntegerType(lowering.width))


def _shuffle(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """All lanes below `width` take part. The clamp is the last lane that may be read (for `up` the first), as PTX defines it."""
    assert isinstance(op, ShuffleOp)
    made = op.width.owner
    known = made.properties["value"] if isinstance(made, llvm.ConstantOp) else None
    width = known.value.data if isa(known, IntegerAttr) else 0
    if not 1 <= width <= _WARP:
        raise refusal(_STAGE, op, f"gpu.shuffle whose width is not a constant from 1 to {_WARP}")
    mode = op.mode.word.data
    members = lowering.integer((1 << width) - 1 - (1 << _WARP if width == _WARP else 0))
    clamp = lowering.integer(_WARP - width if mode == "up" else width - 1)
    is_asked = op.valid.first_use is not None
    made = ShflOp("bfly" if mode == "xor" else mode, members, op.value, op.offset, clamp, is_asked)
    result = located_builder(InsertPoint.before(op), op).insert(made).res
    if is_asked:
        return [_field(lowering, result, number, field_type) for number, field_type in enumerate((op.value.type, i1))]
    return [result, result]  # the second result is not used


def _wait(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    from xla_emitters.lowering.grid_dependency import griddepcontrol  # imported here: few kernels wait for another grid

    return lowering.make("nvvm.griddepcontrol", properties=griddepcontrol(op).properties).results


# Control flow


def _together(types: Sequence[Attribute]) -> Attribute:
    """The return type of a function of one or more results: several become a struct."""
    return types[0] if len(types) == 1 else llvm.LLVMStructType.from_type_list(list(types))


def _return(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    values = op.operands if len(op.operands) < 2 else [_struct(lowering, op.operands)]
    return lowering.make("llvm.return", values).results


def _call(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, func.CallOp)
    types = [lowering.type_of(result.type) for result in op.res]
    made = llvm.CallOp(op.callee, *op.arguments, return_type=_together(types) if types else None)
    results = located_builder(InsertPoint.before(op), op).insert(made).results
    if len(types) < 2:
        return results
    return [_field(lowering, results[0], number, field_type) for number, field_type in enumerate(types)]


def _branch(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    annotation = op.attributes.get(LOOP_ANNOTATION)
    properties = None if annotation is None else {LOOP_ANNOTATION: annotation}
    return lowering.make("llvm.br", op.operands, properties=properties, successors=op.successors).results


def _conditional_branch(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    assert isinstance(op, cf.ConditionalBranchOp)
    made = llvm.CondBrOp(op.cond, op.then_block, op.then_arguments, op.else_block, op.else_arguments)
    if (weights := op.properties.get("branch_weights")) is not None:
        made.properties["branch_weights"] = weights
    return located_builder(InsertPoint.before(op), op).insert(made).results


def _switch(lowering: _FunctionLowering, op: Operation) -> Sequence[SSAValue]:
    """Compares with the cases one by one, each in its own block; LLVM turns them into a table if that is faster."""
    assert isinstance(op, cf.SwitchOp)
    block = op.parent
    assert block is not None
    region = block.parent
    assert region is not None
    flag = op.flag
    integer_type = _integer_type(op, flag)
    equal = integer(0, i64)
    numbers = [] if op.case_values is None else [int(number) for number in op.case_values.get_values()]
    for number, target, operands in zip(numbers, op.case_blocks, op.case_operand, strict=True):
        test = lowering.value("llvm.icmp", [flag, lowering.integer(number, integer_type)], i1, {"predicate": equal})
        following = Block()
        region.insert_block_after(following, block)
        branch = llvm.CondBrOp(test, target, operands, following, [])
        located_builder(InsertPoint.before(op), op).insert(branch)
        # The next comparison is in the block that is reached if no case has matched yet.
        op.detach()
        following.add_op(op)
        block = following
    return lowering.make("llvm.br", op.default_operands, successors=[op.default_block]).results


_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(_RENAMED, _renamed),
    **dict.fromkeys(_WITH_POISON_FLAG, _with_poison_flag),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), _shift),
    "arith.bitcast": _bitcast,
    "arith.ceildivsi": _rounding_division,
    "arith.ceildivui": _ceildivui,
    "arith.cmpf": _compare,
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.floordivsi": _rounding_division,
    "arith.index_cast": _cast,
    "arith.index_castui": _cast,
    "builtin.unrealized_conversion_cast": _unrealized_cast,
    "cf.br": _branch,
    "cf.cond_br": _conditional_branch,
    "cf.switch": _switch,
    "complex.create": lambda lowering, op: [_struct(lowering, op.operands)],
    "complex.im": _part,
    "complex.re": _part,
    "func.call": _call,
    "func.return": _return,
    "gpu.barrier": lambda lowering, op: lowering.make("nvvm.barrier0").results,
    "gpu.block_dim": _size,
    "gpu.block_id": _id,
    "gpu.grid_dim": _size,
    "gpu.shuffle": _shuffle,
    "gpu.thread_id": _id,
    "xla_gpu.pdl_launch_dependents": _wait,
    "xla_gpu.pdl_wait": _wait,
    "vector.bitcast": _bitcast,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.from_elements": _from_elements,
    "vector.insert": _insert,
}
