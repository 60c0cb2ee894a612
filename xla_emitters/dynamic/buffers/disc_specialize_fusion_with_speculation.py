"""Adds variants of a fusion for sizes at which it can be faster; the host chooses one at run time.

    lmhlo.fusion F {kLoop}           %fits = n % 4 == 0
                               ->    scf.if %fits { lmhlo.fusion F_vec4 {disc.vector = 4} } else { lmhlo.fusion F }

In this order, each on all variants made so far:
  * broadcasts: if operand and result of a broadcast agree as far as their types say, and may be equal at run time, the first
    variant leaves the broadcast out, for the case that all such sizes of the fusion are equal. Not for results of a fusion, and kStitch.
  * rows: a reduction of rows has three plans: a block per row (`disc.row_schedule = 1`), for fewer columns a warp (2), for few of
    them eight lanes (3).
  * tiles: a kLoop with a transpose goes through tiles of shared memory (`disc.tiles`) if both dimensions of a tile have 16
    elements or more.
  * vectors: a kLoop whose number of elements (for a reduction or kStitch: columns) is a multiple of the number that fit into one
    access computes as many at once (`disc.vector`). Except concatenations: neighbouring elements may be of different operands.
Conditions decided by `disc.sizes` at compile time (32*b elements are a multiple of 4) need no variant: the fusion gets
the attribute.

The thresholds are in one table, `LIMITS`. Those of rows are where the cost model prices two plans alike (docs/cost_model.md, "The plans
of a row reduction"); no GPU has measured them.
Not here: other variants of column reductions and kStitch, whose schedules look at the sizes themselves.
Source: seed document, "DhloSpecializeFusionWithSpeculation"; docs/reference/4 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.size import mod
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dtypes import dtype_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes, allocated_size
from xla_emitters.dynamic.buffers.fusion_rules import LOOP, ROW, ROW_SCHEDULE, SINGLE, VECTOR, FusibleOp, Group
from xla_emitters.dynamic.buffers.index_code import IndexCode, Number
from xla_emitters.dynamic.buffers.tiled_transposes import LEAST_TILED, TILES, tiled_transpose
from xla_emitters.rewrite.kernel_pass import KernelPass

ROW_FORM = "disc.row_form"
"""Attribute of a stitched fusion: [threads of a row, threads of a block, where rows are kept]; its vector width is chosen with that."""


class Limits(NamedTuple):
    """Thresholds between variants.

    lanes_columns  with more columns, a row gets more than eight lanes
    warp_columns   with more columns, a row gets more than a warp
    vector_bits  of one access
    element_bits a narrower element counts as this wide
    """

    lanes_columns: int = 512
    warp_columns: int = 2048
    vector_bits: int = 128
    element_bits: int = 16


LIMITS = Limits()


@dataclass(frozen=True)
class DiscSpecializeFusionWithSpeculationPass(KernelPass):
    name = "disc-specialize-fusion-with-speculation"

    broadcasts: bool = True
    rows: bool = True
    tiles: bool = True
    vectors: bool = True

    def apply_to(self, op: ModuleOp) -> None:
        rules: list[tuple[bool, Callable[[_Choice], str | None]]] = [
            (self.broadcasts, _without_broadcasts),
            (self.rows, _by_columns),
            (self.tiles, _by_tiles),
            (self.vectors, _by_vectors),
        ]
        for rule in (rule for is_wanted, rule in rules if is_wanted):
            for fusion in [inner for inner in op.walk() if isinstance(inner, FusionOp)]:
                reason = _nothing_to_choose(fusion) or rule(_Choice(fusion))
                if reason is not None:
                    self.skip(fusion, reason)


def _nothing_to_choose(fusion: FusionOp) -> str | None:
    """Why there is no choice how it is computed; None if there is one."""
    if fusion.kind_text == SINGLE:
        return "its op has loops of its own"
    if any(isinstance(op, scf.ParallelOp) for op in fusion.body.block.ops):
        return "its loops are written already"
    return None if fusion.ops else "it has no op"


class _Choice:
    """A fusion, and the code before it that tests sizes."""

    def __init__(self, fusion: FusionOp) -> None:
        self.fusion = fusion
        self.kind = fusion.kind_text
        self.sizes = BufferSizes()
        self.parts = list(map(FusibleOp, fusion.ops))
        self.group = Group(self.parts, self.sizes)
        self.code = IndexCode(QuickBuilder(InsertPoint.before(fusion)), fusion.location)

    def size(self, buffer: SSAValue, dim: int) -> Number:
        """The size of a buffer: the value that it was allocated with, or a `memref.dim`."""
        is_known = tensor_of(buffer.type).get_shape()[dim] >= 0
        return (None if is_known else allocated_size(buffer, dim)) or self.code.dim(buffer, dim)

    def elements(self, buffer: SSAValue) -> Number:
        return self.code.product([self.size(buffer, dim) for dim in range(tensor_of(buffer.type).get_num_dims())])

    def variants(self, condition: SSAValue, then: FusionOp, otherwise: FusionOp | scf.IfOp) -> None:
        """Replaces the fusion by a choice between two, or one and another choice."""
        made = scf.IfOp(condition, [], [then, scf.YieldOp()], [otherwise, scf.YieldOp()])
        made.location = self.fusion.location
        Rewriter.replace_op(self.fusion, made)

    def variant(self, suffix: str, attribute: str = "", value: int = 0) -> FusionOp:
        """A copy of the fusion under another name."""
        made = self.fusion.clone()
        if suffix and made.fusion_name is not None:
            made.fusion_name = StringAttr(f"{made.fusion_name.data}_{suffix}")
        if attribute:
            made.attributes[attribute] = IntegerAttr(value, i64)
        return made

    def say(self, attribute: str, value: int) -> None:
        self.fusion.attributes[attribute] = IntegerAttr(value, i64)


# ------------------------------------------------------------------------------------- rules: return why not; None if applied


def _without_broadcasts(choice: _Choice) -> str | None:
    """Removes all broadcasts that may be copies at run time, in the variant where they are."""
    if choice.kind == "kStitch":
        return "a stitched fusion keeps its broadcasts"
    found = [part for part in choice.parts if part not in choice.group.results and _may_be_a_copy(choice, part)]
    if not found:
        return "it has no broadcast between sizes that may be equal"
    equal = [
        choice.code.compare("eq", choice.size(part.reads[0], dim), choice.size(part.writes[0], dim))
        for part in found
        for dim, size in enumerate(tensor_of(part.writes[0].type).get_shape())
        if size < 0
    ]
    holds = choice.code.every(equal)
    then = choice.variant("same_sizes")
    ops = list(then.body.block.ops)
    numbers = {op: number for number, op in enumerate(choice.fusion.body.block.ops)}
    for part in found:
        copy = ops[numbers[part.op]]
        assert isinstance(copy, BufferOp)
        source, result = copy.inputs[0], copy.outputs[0]
        Rewriter.erase_op(copy)
        result.replace_uses_with_if(source, lambda use: use.operation.parent_op() is then)
    choice.variants(holds, then, choice.variant(""))
    return None


def _may_be_a_copy(choice: _Choice, part: FusibleOp) -> bool:
    """Whether a broadcast keeps its operand's type and order of dimensions, and may or may not keep its sizes."""
    if part.opcode != "dynamic-broadcast-in-dim" or part.reads[0].type != part.writes[0].type:
        return False
    is_in_order = part.dimensions == tuple(range(tensor_of(part.writes[0].type).get_num_dims()))
    return is_in_order and not choice.sizes.same_shape(part.reads[0], part.writes[0])


def _by_columns(choice: _Choice) -> str | None:
    """Eight lanes, a warp or a block for each row."""
    if choice.kind != ROW:
        return "it is not a reduction of rows alone"
    dominant = choice.group.dominant()
    if dominant.reduces != ROW:
        return "it has no reduction of rows"
    matrix = dominant.reads[0]
    last = tensor_of(matrix.type).get_num_dims() - 1
    columns = choice.sizes.of(matrix)[last].value
    if columns is not None:
        choice.say(ROW_SCHEDULE, 3 - (columns > LIMITS.lanes_columns) - (columns > LIMITS.warp_columns))
        return None
    one, two, three = (choice.variant(f"row{number}", ROW_SCHEDULE, number) for number in (1, 2, 3))
    is_long, is_short = (
        choice.code.compare(how, choice.size(matrix, last), limit)
        for how, limit in (("sgt", LIMITS.warp_columns), ("sle", LIMITS.lanes_columns))
    )
    few = scf.IfOp(is_short, [], [three, scf.YieldOp()], [two, scf.YieldOp()])
    few.location = choice.fusion.location
    choice.variants(is_long, one, few)
    return None


def _by_tiles(choice: _Choice) -> str | None:
    """Tiles for a transpose, where both of their dimensions are long enough."""
    if choice.kind != LOOP:
        return "it is not a loop"
    transpose = tiled_transpose([part.op for part in choice.parts], [part.op for part in choice.group.results])
    if isinstance(transpose, str):
        return transpose
    (source,), order = transpose.inputs, integers(transpose.properties["dimensions"])
    dims = (order[-1], len(order) - 1)
    known = [choice.sizes.of(source)[dim].value for dim in dims]
    if any(size is not None and size < LEAST_TILED for size in known):
        return f"tiles need {LEAST_TILED} elements in both dimensions"
    unknown = [dim for dim, size in zip(dims, known, strict=True) if size is None]
    if not unknown:
        choice.say(TILES, 1)
        return None
    long = [choice.code.compare("sge", choice.size(source, dim), LEAST_TILED) for dim in unknown]
    fits = choice.code.every(long)
    choice.variants(fits, choice.variant("tiles", TILES, 1), choice.variant(""))
    return None


def _by_vectors(choice: _Choice) -> str | None:
    """Several elements at once."""
    if ROW_FORM in choice.fusion.attributes:
        return "its form was chosen"
    if TILES in choice.fusion.attributes:
        return "tiles are read and written by single elements"
    if any(part.opcode == "concatenate" for part in choice.parts):
        return "it concatenates: neighbours may be of different operands"
    results = [buffer for part in choice.group.results for buffer in part.writes]
    if any(part.updated for part in choice.parts):
        return "it updates an array in place, at any offset"
    if not results:
        return "it has no result"
    reduced = [part.reads[0] for part in choice.parts if part.reduces]
    matrix = (reduced or results)[0]
    bits = _widest(choice, matrix) if reduced else _narrowest(results)
    width = LIMITS.vector_bits // max(LIMITS.element_bits, bits)
    if width < 2:
        return "one element fills an access"
    last = tensor_of(matrix.type).get_num_dims() - 1
    known = choice.sizes.of(matrix)[last] if reduced else choice.sizes.elements(matrix)
    what = "columns" if reduced else "elements"
    if (rest := mod(known, width).value) is not None:
        if rest:
            return f"its {what} are not a multiple of {width}"
        choice.say(VECTOR, width)
        return None
    count = choice.size(matrix, last) if reduced else choice.elements(matrix)
    left = choice.code.insert(arith.RemSIOp(choice.code.value(count), choice.code.value(width)))
    fits = choice.code.compare("eq", left, 0)
    choice.variants(fits, choice.variant(f"vec{width}", VECTOR, width), choice.variant(""))
    return None


def _widest(choice: _Choice, matrix: SSAValue) -> int:
    """Element bits (of the widest array of the matrix's size that the fusion accesses): no access covers only a part of a sector."""
    written = {buffer for part in choice.parts for buffer in part.writes}
    results = {buffer for part in choice.group.results for buffer in part.writes}
    arrays = {buffer for part in choice.parts for buffer in part.reads} - written | results
    whole = [buffer for buffer in arrays if choice.sizes.elements(buffer) == choice.sizes.elements(matrix)]
    return max(dtype_of(tensor_of(buffer.type).element_type).bits for buffer in [*whole, *(() if whole else (matrix,))])


def _narrowest(buffers: Sequence[SSAValue]) -> int:
    return min(dtype_of(tensor_of(buffer.type).element_type).bits for buffer in buffers)
