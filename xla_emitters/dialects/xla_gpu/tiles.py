"""The `xla_gpu` dialect's tiles: vectors whose elements are distributed over threads: an experiment of XLA, now partly removed.

    #layout = #xla_gpu.layout<"shmem", "(d0, d1) -> (d1, d0), domain: d0 in [0, 31], d1 in [0, 31]">
    %m = xla_gpu.materialize @fn(%in) at #map(%i) : (tensor<32x64xf32>) -> !xla_gpu.indexed_vector<32x64xf32, #map1>
    %z = xla_gpu.insert %m(%i, %j) into %dst at #map2 : !xla_gpu.indexed_vector<32x64xf32, #map1> -> tensor<32x64xf32>

`!xla_gpu.indexed_vector<32x64xf32, #map>` is a 32x64 vector; the map gives the elements that each thread holds. `materialize` calls a
function for each of them; `insert` writes them into a tensor at the indices of another map. They are read and kept, never emitted here.
`#xla_gpu.layout` is the encoding of a tensor in registers or shared memory. Import all from `xla_gpu.py`.
Source: docs/reference/1 1.1-1.3, 1.8 "Attributes, types"; XLA of January 2025 for `materialize`, which was removed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import auto

from xdsl.dialects.builtin import ArrayAttr, FlatSymbolRefAttrConstr, IndexType, IntAttr, SymbolRefAttr, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_attr_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr, parse_map_text
from xla_emitters.dialects.xla_gpu.loops import INDEX, parse_map, print_values
from xla_emitters.indexing import IndexingMap


class MemorySpace(StrEnum):
    REGISTERS = auto()
    SHMEM = auto()


@irdl_attr_definition
class MemorySpaceAttr(EnumAttribute[MemorySpace]):
    """`#xla_gpu.memory_space<shmem>`"""

    name = "xla_gpu.memory_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MemorySpace:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """`#xla_gpu.layout<"shmem", "(d0, d1) -> (d1, d0), domain: ...">`: the memory space of a tensor, and the map to its elements there."""

    name = "xla_gpu.layout"

    memory_space: MemorySpaceAttr
    thread_map: IndexingMapAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            word = parser.parse_str_literal(" for a memory space")
            spaces = [str(space) for space in MemorySpace]
            if word not in spaces:
                parser.raise_error(f"there is no memory space '{word}'; one of: {', '.join(spaces)}", start, parser.pos)
            parser.parse_punctuation(",")
            thread_map = IndexingMapAttr(parse_map_text(parser))
        return [MemorySpaceAttr(MemorySpace(word)), thread_map]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.memory_space.data)
            printer.print_string(", ")
            printer.print_string_literal(self.thread_map.text_for(printer))


@irdl_attr_definition
class IndexedVectorType(ParametrizedAttribute, TypeAttribute):
    """`!xla_gpu.indexed_vector<32x64xf32, #map>`"""

    name = "xla_gpu.indexed_vector"

    shape: ArrayAttr[IntAttr]
    element_type: Attribute
    map: IndexingMapAttr

    @classmethod
    def of(cls, shape: Sequence[int], element_type: Attribute, indexing_map: IndexingMap) -> IndexedVectorType:
        return cls(ArrayAttr([IntAttr(size) for size in shape]), element_type, IndexingMapAttr(indexing_map))

    def get_shape(self) -> tuple[int, ...]:
        return tuple(size.data for size in self.shape)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            shape, element_type = parser.parse_ranked_shape()
            if any(size < 0 for size in shape):
                parser.raise_error("an indexed vector must have a static shape", start, parser.pos)
            parser.parse_punctuation(",")
            start = parser.pos
            map_attr = parser.parse_attribute()
            if not isinstance(map_attr, IndexingMapAttr):
                parser.raise_error("expected an indexing map", start, parser.pos)
        return [ArrayAttr([IntAttr(size) for size in shape]), element_type, map_attr]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{size}x" for size in self.get_shape()))
            printer.print_attribute(self.element_type)
            printer.print_string(", ")
            printer.print_attribute(self.map)


@op_definition
class InsertOp(QuickOp):
    """`%z = xla_gpu.insert %vec(%i, %j) into %dst at #map : !xla_gpu.indexed_vector<32x64xf32, #m> -> tensor<32x64xf32>`"""

    name = "xla_gpu.insert"

    source = operand_def(IndexedVectorType)
    indices = var_operand_def(IndexType)
    dest = operand_def(TensorType)
    map_attr = prop_def(IndexingMapAttr, prop_name="map")
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        dest: SSAValue | Operation,
        indexing_map: IndexingMap | IndexingMapAttr,
        attributes: Mapping[str, Attribute | None] | None = None,
    ):
        super().__init__(
            operands=[source, indices, dest],
            result_types=[SSAValue.get(dest).type],
            properties={
                "map": IndexingMapAttr(indexing_map) if isinstance(indexing_map, IndexingMap) else indexing_map
            },
            attributes=attributes,
        )

    @property
    def map(self) -> IndexingMap:
        return self.map_attr.data

    @classmethod
    def parse(cls, parser: Parser) -> InsertOp:
        source = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(INDEX))
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        parser.parse_keyword("at")
        map_attr = parse_map(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        vector = parser.resolve_operand(source, parser.parse_type())
        parser.parse_punctuation("->")
        return InsertOp(vector, indices, parser.resolve_operand(dest, parser.parse_type()), map_attr, attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_values(printer, self.indices, "()")
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)
        printer.print_string(" at ")
        printer.print_attribute(self.map_attr)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        vector = self.source.type
        assert isinstance(vector, IndexedVectorType)
        if self.result.type != self.dest.type:
            raise VerifyException(f"the result is {self.result.type}, but the tensor {self.dest.type}")
        if self.map.range_vars:
            raise VerifyException("its map must have no range variables")
        if vector.map.data.num_results != self.map.num_dims:
            raise VerifyException(
                f"the vector's map has {vector.map.data.num_results} results, but its own {self.map.num_dims} dims"
            )


@op_definition
class MaterializeOp(QuickOp):
    """`%m = xla_gpu.materialize @fn(%in) at #map(%i) : (tensor<32x64xf32>) -> !xla_gpu.indexed_vector<32x64xf32, #m>`

    The function's arguments are the inputs and the map's results at each point that the thread holds.
    """

    name = "xla_gpu.materialize"

    input = var_operand_def()
    indices = var_operand_def(IndexType)
    callee_attr = prop_def(FlatSymbolRefAttrConstr, prop_name="callee")
    map_attr = prop_def(IndexingMapAttr, prop_name="map")
    result = result_def(IndexedVectorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(Pure())

    def __init__(
        self,
        callee: str,
        operands: Sequence[SSAValue | Operation],
        indices: Sequence[SSAValue | Operation],
        indexing_map: IndexingMap | IndexingMapAttr,
        result_type: Attribute,
        attributes: Mapping[str, Attribute | None] | None = None,
    ):
        super().__init__(
            operands=[operands, indices],
            result_types=[result_type],
            properties={
                "callee": SymbolRefAttr(callee),
                "map": IndexingMapAttr(indexing_map) if isinstance(indexing_map, IndexingMap) else indexing_map,
            },
            attributes=attributes,
        )

    @property
    def callee(self) -> str:
        """The name of the function called, without `@`."""
        return self.callee_attr.root_reference.data

    @property
    def map(self) -> IndexingMap:
        return self.map_attr.data

    @classmethod
    def parse(cls, parser: Parser) -> MaterializeOp:
        callee = parser.parse_symbol_name().data
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("at")
        map_attr = parse_map(parser)
        indices = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(INDEX))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        function_type = parser.parse_function_type()
        if len(function_type.outputs) != 1:
            parser.raise_error("materialize has one result", start, parser.pos)
        values = parser.resolve_operands(operands, function_type.inputs.data, start)
        return MaterializeOp(callee, values, indices, map_attr, function_type.outputs.data[0], attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee)
        print_values(printer, self.input, "()")
        printer.print_string(" at ")
        printer.print_attribute(self.map_attr)
        print_values(printer, self.indices, "()")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.input.types, self.result_types)

    def verify_(self) -> None:
        vector = self.result.type
        assert isa(vector, IndexedVectorType)
        if len(self.indices) != self.map.num_dims:
            raise VerifyException(f"the map has {self.map.num_dims} dims, but there are {len(self.indices)} indices")
        ours, theirs = ([v.bounds for v in found.range_vars] for found in (self.map, vector.map.data))
        if ours != theirs:
            raise VerifyException("its map and the vector's must have the same range variables")
