"""HLO on buffers: each op of `hlo` reads buffers and writes its result into others, which are its last operands.

    %s = hlo.add %x, %y {name = "s"} : tensor<?x4xf32>             a value: a new tensor

    %s = memref.alloc(%n) : memref<?x4xf32, "gpu">                 a buffer in the memory of a device
    lmhlo.add %x, %y -> %s {name = "s"} : (memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu">

The classes are made from the table of `hlo` ops: the same properties, the same shape rule, the same value in NumPy (`as_hlo`). An op with
several results writes several buffers; a tuple has no buffer of its own. The memory space of a buffer is the string "cpu" or "gpu".

Control flow has regions and carries buffers as values, so that a size may change from one iteration to the next:

    %r = lmhlo.while %a ({ ^(%x): ... lmhlo.condition %more }, { ^(%x): ... lmhlo.terminator %next })
    %r = lmhlo.case %i  ({ ... lmhlo.terminator %x }, { ... lmhlo.terminator %y })

    the condition borrows %x; the body owns it: it frees or yields it. Results belong to the block around the op.
    the last branch of `case` is taken if %i is not the number of another one.

A copy or a reshape may be a second name instead of a second buffer (`lmhlo.inc_ref`).

Not here: tuples, calls, sizes as values (`memref.dim` gives those), random numbers of a hidden state, and ops that occur only in
modules optimized by XLA (fusions of HLO, async operations, communication).
Source: docs/reference/4 2.2; MLIR-HLO's lmhlo dialect (https://github.com/tensorflow/mlir-hlo).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    StringAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    OptPropertyDef,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    HasParent,
    IsTerminator,
    MemoryAllocEffect,
    MemoryEffect,
    MemoryEffectKind,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import NONE, string
from xla_emitters.dialects.hlo.base import HloOp, class_for, opcode_of, parse_values
from xla_emitters.dialects.hlo.placement import DEVICE, GPU
from xla_emitters.dialects.hlo.types import ArrayType, array_type, tuple_type
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

SEGMENTS = AttrSizedOperandSegments.attribute_name
DONATED = "disc.donated"
"""Attribute of an argument of the program: the program owns its buffer, and frees it, writes into it, or returns it."""


def tensor_of(ir_type: Attribute) -> ArrayType:
    """The tensor type for a buffer's type; elements of type `index` are s64. raises VerifyException for another type."""
    if type(ir_type) is not MemRefType:
        raise VerifyException(f"expected a memref, got {ir_type}")
    element = ir_type.element_type
    return array_type(i64 if isinstance(element, IndexType) else element, ir_type.get_shape())


def space_of(ir_type: Attribute) -> str | None:
    """The memory space of a buffer: "cpu", "gpu", or None where the type has none."""
    assert isinstance(ir_type, MemRefType)
    return ir_type.memory_space.data if isinstance(ir_type.memory_space, StringAttr) else None


def buffer_type(element: Attribute, dims: Sequence[int], space: str | None) -> MemRefType[Attribute]:
    """The type of a buffer in that memory space; None: without one."""
    return _buffer_type(element, tuple(dims), space)


@lru_cache(4096)
def _buffer_type(element: Attribute, dims: tuple[int, ...], space: str | None) -> MemRefType[Attribute]:
    return MemRefType(element, dims, memory_space=string(space) if space else NONE)


class BufferEffects(MemoryEffect):
    """Reads the inputs, writes the outputs; an op without outputs may stop the program, which counts as a write to anything."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, BufferOp)
        reads = {EffectInstance(MemoryEffectKind.READ, value) for value in op.inputs}
        writes = {EffectInstance(MemoryEffectKind.WRITE, value) for value in op.outputs}
        return reads | (writes or {EffectInstance(MemoryEffectKind.WRITE)})


class BufferOp(QuickOp):
    """An op that writes the value of an `hlo` op into buffers."""

    HLO: ClassVar[type[HloOp]]

    inputs = var_operand_def(MemRefType)
    outputs = var_operand_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(BufferEffects())

    @property
    def instruction_name(self) -> str:
        """The name of the instruction."""
        name = self.properties["name"]
        assert isinstance(name, StringAttr)
        return name.data

    @classmethod
    def of(cls, op: HloOp, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Self:
        """The op on these buffers, with the properties, attributes and location of `op`."""
        made = cls(
            operands=[inputs, outputs], properties={**op.properties}, attributes={**op.attributes}, result_types=[]
        )
        made.location = op.location
        return made

    def as_hlo(self) -> HloOp:
        """The op on the tensors in the buffers: it is in no block, but it finds the computations that it calls."""
        found = [tensor_of(output.type) for output in self.outputs]
        made = self.HLO.create(
            operands=Block(arg_types=[tensor_of(value.type) for value in self.inputs]).args,
            result_types=[found[0] if len(found) == 1 else tuple_type(found)],
            properties={name: value for name, value in self.properties.items() if name != SEGMENTS},
            attributes={**self.attributes},
            location=self.location,
        )
        made.parent = self.parent
        return made

    def verify(self, verify_nested_ops: bool = True) -> None:
        if SEGMENTS not in self.properties:
            raise VerifyException(
                "it does not say which buffers it reads and which it writes: "
                f'{self.name} %x, %y -> %z {{name = "z"}}, or {SEGMENTS} in the generic form'
            )
        super().verify(verify_nested_ops)

    def verify_(self) -> None:
        made = self.as_hlo()
        made.verify_rule()
        made.parent = None

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        inputs = parse_values(parser)
        outputs = parse_values(parser) if parser.parse_optional_punctuation("->") else []
        found = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        known = cls.get_irdl_definition().properties
        return cls(
            operands=[
                parser.resolve_operands(inputs, types.inputs.data, start),
                parser.resolve_operands(outputs, types.outputs.data, start),
            ],
            result_types=[],
            properties={key: value for key, value in found.items() if key in known},
            attributes={key: value for key, value in found.items() if key not in known},
        )

    def print(self, printer: Printer) -> None:
        for values, before in ((self.inputs, " "), (self.outputs, " -> ")):
            if values:
                printer.print_string(before)
                printer.print_list(values, printer.print_ssa_value)
        shown = {key: value for key, value in {**self.properties, **self.attributes}.items() if key != SEGMENTS}
        printer.print_string(" ")
        printer.print_attr_dict(dict(sorted(shown.items())))
        printer.print_string(" : ")
        types = [[value.type for value in values] for values in (self.inputs, self.outputs)]
        printer.print_attribute(FunctionType.from_lists(*types))


def _class_of(hlo: type[HloOp]) -> type[BufferOp]:
    """The class on buffers for an `hlo` op's class."""
    members: dict[str, Any] = {"__doc__": f"`{hlo.name}` on buffers.", "HLO": hlo}
    for name, definition in hlo.get_irdl_definition().properties.items():
        make = opt_prop_def if isinstance(definition, OptPropertyDef) else prop_def
        members[f"{name}_property"] = make(definition.constr, prop_name=name)
    return class_for(BufferOp, opcode_of(hlo), __name__, members, "lmhlo")


# Opcodes without a version on buffers: the structure around instructions, and those that the head excludes.
LEFT_OUT = frozenset(
    (
        *("parameter", "tuple", "get-tuple-element", "call", "fusion", "while", "conditional"),
        *("opt-barrier", "add-dependency", "domain", "after-all", "async-start", "async-update", "async-done"),
        *("copy-start", "copy-done", "infeed", "outfeed", "send", "send-done", "recv", "recv-done"),
        "get-dimension-size",
        *("all-reduce", "all-reduce-start", "all-reduce-done", "all-gather", "all-gather-start", "all-gather-done"),
        *("reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-broadcast"),
        *("collective-permute", "collective-permute-start", "collective-permute-done"),
    )
)

_CLASSES = dict[type[HloOp], type[BufferOp]]()


def on_buffers(hlo: type[HloOp]) -> type[BufferOp] | None:
    """The class on buffers for an `hlo` op's class; None for an op that has none."""
    if hlo not in _CLASSES and opcode_of(hlo) not in LEFT_OUT:
        _CLASSES.setdefault(hlo, _class_of(hlo))  # threads get one class
    return _CLASSES.get(hlo)


# ---------------------------------------------------------------------------------------------------- regions of buffers


@op_definition
class FusionOp(QuickOp):
    """Buffer ops that become one kernel.

    fusion_name  names the kernel
    kind         "kLoop", "kRowReduction" ...
    """

    name = "lmhlo.fusion"

    fusion_name = opt_prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @staticmethod
    def of(name: str, kind: str, ops: Sequence[Operation], location: LocationAttr) -> FusionOp:
        """These ops as one kernel of the device."""
        made = FusionOp(
            properties={"fusion_name": StringAttr(name), "kind": StringAttr(kind)},
            regions=[Region(Block([*ops, TerminatorOp(operands=[[]])]))],
        )
        made.attributes[DEVICE] = StringAttr(GPU)
        made.location = location
        return made

    @property
    def ops(self) -> list[BufferOp]:
        """The ops on buffers in it."""
        return [op for op in self.body.block.ops if isinstance(op, BufferOp)]

    @property
    def label(self) -> str:
        return self.fusion_name.data if self.fusion_name is not None else "fusion"

    @property
    def kind_text(self) -> str:
        return self.kind.data if self.kind is not None else ""


@op_definition
class WhileOp(QuickOp):
    """Runs the body while the condition holds; see the file's head for the ownership of carried buffers."""

    name = "lmhlo.while"

    inits = var_operand_def(MemRefType)
    res = var_result_def(MemRefType)
    condition = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        types = [value.type for value in self.inits]
        for region, what in ((self.condition, "condition"), (self.body, "body")):
            if [argument.type for argument in region.block.args] != types:
                raise VerifyException(f"the {what} of 'lmhlo.while' takes the buffers that it carries")
        if [result.type for result in self.res] != types:
            raise VerifyException("'lmhlo.while' returns the buffers that it carries")
        if not isinstance(self.condition.block.last_op, ConditionOp):
            raise VerifyException("the condition of 'lmhlo.while' ends in lmhlo.condition")
        _verify_yield(self.body, types)


@op_definition
class CaseOp(QuickOp):
    """Runs the branch with the number in the selector, else the last one; returns the values that it yields."""

    name = "lmhlo.case"

    selector = operand_def(i32)
    res = var_result_def(MemRefType)
    branches = var_region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        if not self.branches:
            raise VerifyException("'lmhlo.case' has no branch")
        for branch in self.branches:
            _verify_yield(branch, [result.type for result in self.res])


def _verify_yield(region: Region, types: Sequence[Attribute]) -> None:
    last = region.block.last_op
    if not isinstance(last, TerminatorOp) or [value.type for value in last.operands] != list(types):
        shown = ", ".join(map(str, types))
        raise VerifyException(f"the region ends in lmhlo.terminator with ({shown})")


@op_definition
class ConditionOp(QuickOp):
    """Ends the condition of a loop: whether the body is to run."""

    name = "lmhlo.condition"

    holds = operand_def(i1)
    traits = traits_def(IsTerminator(), HasParent(WhileOp))
    assembly_format = "$holds attr-dict"


@op_definition
class TerminatorOp(QuickOp):
    """Ends a region of buffer ops and yields buffers."""

    name = "lmhlo.terminator"

    values = var_operand_def(MemRefType)
    traits = traits_def(IsTerminator(), HasParent(WhileOp, CaseOp, FusionOp))
    assembly_format = "($values^ `:` type($values))? attr-dict"


@op_definition
class IncRefOp(QuickOp):
    """A second name of a buffer, in another shape with equally many elements, with its own reference: each name is freed separately."""

    name = "lmhlo.inc_ref"

    source = operand_def(MemRefType)
    dynamic_sizes = var_operand_def(IndexType)
    view = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "$source `(` $dynamic_sizes `)` attr-dict `:` type($source) `->` type($view)"

    def verify_(self) -> None:
        source, view = (tensor_of(value.type).element_type for value in (self.source, self.view))
        if space_of(self.source.type) != space_of(self.view.type) or source != view:
            raise VerifyException("a second name has the memory and the element type of its buffer")
        if tensor_of(self.view.type).get_shape().count(DYNAMIC_INDEX) != len(self.dynamic_sizes):
            raise VerifyException("a second name has one size for each '?' of its type")


@op_definition
class WatchOp(QuickOp):
    """Passes buffers and numbers to a function that watches a run of the program; it writes none of them.

    number  identifies the place to that function
    """

    name = "lmhlo.watch"

    number = prop_def(IntegerAttr[IntegerType])
    values = var_operand_def(MemRefType | IndexType)
