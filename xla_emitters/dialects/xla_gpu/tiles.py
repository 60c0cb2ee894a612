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

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FlatSymbolRefAttrConstr, IntAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    VarConstraint,
    base,
    irdl_attr_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.mlir.llvm.metadata import WordAttr, word_attribute
from xla_emitters.dialects.mlir.op_rows import op_of_row
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr, parse_map_text
from xla_emitters.dialects.xla_gpu.loops import INDEX

MemorySpaceAttr = word_attribute("xla_gpu.memory_space", "registers", "shmem")
"""`#xla_gpu.memory_space<shmem>`"""


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """`#xla_gpu.layout<"shmem", "(d0, d1) -> (d1, d0), domain: ...">`: the memory space of a tensor, and the map to its elements there."""

    name = "xla_gpu.layout"

    memory_space: WordAttr = param_def(base(MemorySpaceAttr))
    thread_map: IndexingMapAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            word = parser.parse_str_literal(" for a memory space")
            spaces = MemorySpaceAttr.WORDS
            if word not in spaces:
                parser.raise_error(f"there is no memory space '{word}'; one of: {', '.join(spaces)}", start, parser.pos)
            parser.parse_punctuation(",")
            thread_map = IndexingMapAttr(parse_map_text(parser))
        return [MemorySpaceAttr.of(word), thread_map]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.memory_space.word.data)
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


def _verify_insert(op: Any) -> None:
    inserted, held = op.map.data, op.source.type.map.data
    if inserted.range_vars:
        raise VerifyException("its map must have no range variables")
    if held.num_results != inserted.num_dims:
        raise VerifyException(f"the vector's map has {held.num_results} results, but its own {inserted.num_dims} dims")


def _verify_materialize(op: Any) -> None:
    made, held = op.map.data, op.result.type.map.data
    if len(op.indices) != made.num_dims:
        raise VerifyException(f"the map has {made.num_dims} dims, but there are {len(op.indices)} indices")
    if [v.bounds for v in made.range_vars] != [v.bounds for v in held.range_vars]:
        raise VerifyException("its map and the vector's must have the same range variables")


_TENSOR = VarConstraint("T", base(TensorType))

InsertOp = op_of_row(
    "xla_gpu.insert",
    "$source `(` $indices `)` `into` $dest `at` $map attr-dict `:` type($source) `->` type($result)",
    properties={"map": prop_def(IndexingMapAttr)},
    traits=(Pure(),),
    verify=_verify_insert,
    source=operand_def(IndexedVectorType),
    indices=var_operand_def(INDEX),
    dest=operand_def(_TENSOR),
    result=result_def(_TENSOR),
)

# The function's arguments are the inputs and the map's results at each point that the thread holds.
MaterializeOp = op_of_row(
    "xla_gpu.materialize",
    "$callee `(` $input `)` `at` $map `(` $indices `)` attr-dict `:` functional-type($input, $result)",
    properties={"callee": prop_def(FlatSymbolRefAttrConstr), "map": prop_def(IndexingMapAttr)},
    traits=(Pure(),),
    verify=_verify_materialize,
    has_segments=True,
    input=var_operand_def(),
    indices=var_operand_def(INDEX),
    result=result_def(IndexedVectorType),
)
