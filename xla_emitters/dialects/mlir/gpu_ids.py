"""The `gpu` dialect's ids, sizes and barriers: xDSL's ops, with upper bounds and MLIR's syntax.

    %t = gpu.thread_id x upper_bound 128        always below 128
    %s = gpu.subgroup_size : index
    gpu.barrier

Source: MLIR 22, gpu dialect.
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects import gpu as upstream
from xdsl.dialects.builtin import IndexType, IndexTypeConstr, IntegerAttr
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from xla_emitters.dialects.completion import completed, completed_by
from xla_emitters.dialects.mlir.op_rows import op_of_family
from xla_emitters.dialects.quick_op import QuickOp

INDEX = IndexType()


def _parse_upper_bound(parser: Parser) -> dict[str, Attribute]:
    """`upper_bound 64`, if it is there: the least number that the value is always below."""
    if parser.parse_optional_keyword("upper_bound") is None:
        return {}
    return {"upper_bound": IntegerAttr.from_index_int_value(parser.parse_integer(allow_boolean=False))}


def _print_upper_bound(op: Operation, printer: Printer) -> None:
    if isinstance(bound := op.properties.get("upper_bound"), IntegerAttr):
        printer.print_string(f" upper_bound {bound.value.data}")
    printer.print_op_attributes(op.attributes)


class _InDimension(QuickOp):
    """` x upper_bound 64`, what follows `gpu.thread_id`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        dimension = DimensionAttr(parser.parse_str_enum(DimensionEnum))
        properties = {"dimension": dimension, **_parse_upper_bound(parser)}
        attributes = parser.parse_optional_attr_dict()
        return cls.create(properties=properties, attributes=attributes, result_types=[INDEX])

    def print(self, printer: Printer) -> None:
        dimension = self.properties["dimension"]
        assert isinstance(dimension, DimensionAttr)
        printer.print_string(f" {dimension.data}")
        _print_upper_bound(self, printer)


class _OfSubgroup(QuickOp):
    """` upper_bound 64 : index`, what follows `gpu.subgroup_id`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = _parse_upper_bound(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(properties=properties, attributes=attributes, result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        _print_upper_bound(self, printer)
        printer.print_string(" : ")
        printer.print_attribute(self.results[0].type)


class _OfThread(QuickOp):
    """` upper_bound 32`, what follows `gpu.lane_id`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = _parse_upper_bound(parser)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(properties=properties, attributes=attributes, result_types=[INDEX])

    def print(self, printer: Printer) -> None:
        _print_upper_bound(self, printer)


@completed
class ThreadIdOp(upstream.ThreadIdOp, _InDimension):
    """The number of a thread in its block."""

    upper_bound = opt_prop_def(IntegerAttr.constr(type=IndexTypeConstr))


@completed
class BlockIdOp(upstream.BlockIdOp, _InDimension):
    """The number of a block in the grid."""

    upper_bound = opt_prop_def(IntegerAttr.constr(type=IndexTypeConstr))


# What no pass builds.
_BOUND = {"upper_bound": opt_prop_def(IntegerAttr.constr(type=IndexTypeConstr))}

BlockDimOp = completed_by(upstream.BlockDimOp, _InDimension, **_BOUND)
GridDimOp = completed_by(upstream.GridDimOp, _InDimension, **_BOUND)
GlobalIdOp = completed_by(upstream.GlobalIdOp, _InDimension, **_BOUND)
NumSubgroupsOp = completed_by(upstream.NumSubgroupsOp, _OfSubgroup, **_BOUND)
SubgroupIdOp = completed_by(upstream.SubgroupIdOp, _OfSubgroup, **_BOUND)
SubgroupSizeOp = completed_by(upstream.SubgroupSizeOp, _OfSubgroup, **_BOUND)
LaneIdOp = completed_by(upstream.LaneIdOp, _OfThread, **_BOUND)


@completed
class BarrierOp(upstream.BarrierOp, QuickOp):
    """All threads of a block wait for each other here."""

    assembly_format = "attr-dict"


class ClusterDimensionOp(_InDimension):
    """`gpu.cluster_id x upper_bound 4`: an id or size of a cluster of blocks."""

    dimension = prop_def(DimensionAttr)
    upper_bound = opt_prop_def(IntegerAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, dimension: DimensionAttr):
        super().__init__(properties={"dimension": dimension}, result_types=[INDEX])


ClusterIdOp = op_of_family(ClusterDimensionOp, "gpu.cluster_id")
ClusterDimOp = op_of_family(ClusterDimensionOp, "gpu.cluster_dim")
ClusterBlockIdOp = op_of_family(ClusterDimensionOp, "gpu.cluster_block_id")
ClusterDimBlocksOp = op_of_family(ClusterDimensionOp, "gpu.cluster_dim_blocks")

OPERATIONS: tuple[type[IRDLOperation], ...] = (
    *(ThreadIdOp, BlockIdOp, BlockDimOp, GridDimOp, GlobalIdOp, NumSubgroupsOp, SubgroupIdOp, SubgroupSizeOp),
    *(LaneIdOp, BarrierOp, ClusterIdOp, ClusterDimOp, ClusterBlockIdOp, ClusterDimBlocksOp),
)
