"""The `xla` dialect: today's XLA's spelling, read so that IR pasted from it works.

    %l = xla.loop (%tid, %bid)[%i] -> (%ra) in #indexing_map iter_args(...) -> (...) {...}     becomes  xla_gpu.loop
    #xla.indexing_map<"(d0) -> (d0 / 8), domain: d0 in [0, 63]">                               becomes  #xla_gpu.indexing_map
    %w = xla.workgroup_id x {xla.range = [0 : index, 24575 : index]}                           is the same in both

An op that XLA moved to this dialect is read as the `xla_gpu` op, in both text forms. The upstream name is printed on request: by our
printer with `spelling="upstream"`, and by any printer after the pass xla-to-upstream-spelling, which makes ops of the classes
`UPSTREAM_OPS`. These are subclasses of the `xla_gpu` ops, so every pass handles them. The attributes `#xla.backend_kind<gpu>` and
`#xla.symbolic_map<"(d0)[s0] -> (d0 + s0)">` are read and kept.
Source: docs/reference/1 section 0 "Spelling policy" and 1.1.
"""

from __future__ import annotations

from types import new_class
from typing import Any, ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Data, Dialect, Operation
from xdsl.irdl import (
    irdl_attr_definition,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.map_text import Spelling, SymbolicMap, parse_symbolic_map, print_symbolic_map
from xla_emitters.dialects.mlir.llvm.metadata import word_attribute
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp
from xla_emitters.dialects.xla_gpu import loops, pure_calls, tensors
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr, parse_text
from xla_emitters.errors import XlaEmittersError


class IndexingMapSpelling(Data[IndexingMap]):
    """Reads `#xla.indexing_map<"...">` as an `IndexingMapAttr`; there are no instances of this class."""

    name = "xla.indexing_map"

    def __new__(cls, data: IndexingMap) -> IndexingMapAttr:  # pyright: ignore[reportInconsistentConstructor]
        return IndexingMapAttr(data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexingMap:
        return IndexingMapAttr.parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        raise AssertionError("there is no attribute of this class")


@irdl_attr_definition
class UpstreamIndexingMapAttr(IndexingMapAttr):
    """An indexing map that any printer writes as `#xla.indexing_map<"(d0) -> (d0 / 8), ...">`."""

    name = "xla.indexing_map"

    SPELLING: ClassVar[Spelling] = "upstream"


@irdl_attr_definition
class SymbolicMapAttr(Data[SymbolicMap]):
    """`#xla.symbolic_map<"(d0)[s0] -> (d0 + s0)">`: a map whose variables have no bounds. Read from today's XLA, never emitted here."""

    name = "xla.symbolic_map"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SymbolicMap:
        with parser.in_angle_brackets():
            start = parser.pos
            text = parse_text(parser, "a symbolic map")
            try:
                return parse_symbolic_map(text)
            except XlaEmittersError as error:
                parser.raise_error(error.message, start, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(print_symbolic_map(self.data, "upstream"))


def _upstream(op_type: type[Operation], name: str) -> type[Operation]:
    """`op_type` under another name, for xla-to-upstream-spelling."""
    made: Any = new_class(
        f"Upstream{op_type.__name__}", (op_type,), exec_body=lambda namespace: namespace.update({"name": name})
    )
    return made


def _spelling(op_type: type[Operation], name: str) -> type[Operation]:
    """A class by which the parser finds `op_type` under another name; it makes ops of `op_type`."""

    def parse(cls: type[Operation], parser: Parser) -> Operation:
        return op_type.parse(parser)

    def create(cls: type[Operation], **given: Any) -> Operation:
        return op_type.create(**given)

    members = {"name": name, "parse": classmethod(parse), "create": classmethod(create)}
    made: Any = new_class(
        f"{op_type.__name__}Spelling", (op_type,), exec_body=lambda namespace: namespace.update(members)
    )
    return made


WorkgroupDimensionAttr = word_attribute("xla.dim", "x", "y", "z", is_spaced=True)
"""`#xla<dim x>`"""


@op_definition
class WorkgroupIdOp(PureOp):
    """`xla.workgroup_id x {xla.range = [0 : index, 24575 : index]}`: the block's number, before it is a gpu.block_id."""

    name = "xla.workgroup_id"

    dimension = prop_def(WorkgroupDimensionAttr)
    result = result_def(IndexType())

    assembly_format = "$dimension attr-dict"

    def __init__(self, dimension: str):
        super().__init__(properties={"dimension": WorkgroupDimensionAttr.of(dimension)}, result_types=[IndexType()])


BackendKindAttr = word_attribute("xla.backend_kind", "cpu", "gpu", "tpu")
"""`#xla.backend_kind<gpu>`"""

SPELLINGS: dict[str, type[Operation]] = {
    op.name.replace("xla_gpu", "xla"): op
    for op in (
        *(loops.ApplyIndexingOp, loops.AtomicRMWOp, loops.LoopOp, loops.YieldOp, pure_calls.PureCallOp),
        *(tensors.GetDynamicDimSizeOp, tensors.PredicatedExtractOp, tensors.PredicatedInsertOp),
    )
}
"""Today's XLA's name -> our op."""

UPSTREAM_OPS: dict[type[Operation], type[Operation]] = {op: _upstream(op, name) for name, op in SPELLINGS.items()}
"""Our op -> the same op under today's XLA's name."""

XLA = Dialect(
    "xla",
    [*(_spelling(op_type, name) for name, op_type in SPELLINGS.items()), WorkgroupIdOp],
    [IndexingMapSpelling, SymbolicMapAttr, WorkgroupDimensionAttr, BackendKindAttr],
)
