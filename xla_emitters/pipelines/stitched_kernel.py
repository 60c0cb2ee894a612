"""A fusion in which reductions of rows are read again, as one kernel: the stitch schedule of programs, at the fusion's own sizes.

    fused { x = f32[4096,2048] parameter(0)         ENTRY of a program ─PROGRAM_FUSED─> one lmhlo.fusion {kStitch}, or a reason
            m = reduce max x; e = exp(x - m)   ->   ─disc.row_form, PROGRAM_LOOPS─> gpu.func on buffers, one launch
            ROOT y = e / reduce add e }             ─first rows of PROGRAM_KERNEL─> func.func @fused(!llvm.ptr, !llvm.ptr) {xla.entry}

Whether a fusion can be computed row by row is decided by the passes of programs: they must turn all of it into one fusion of kind kStitch
(`stitch_rules`) and nothing else. This file chooses how; `fusion_kernel` runs the passes.

A `RowWay` says how threads share the rows. Ways differ in the order in which a row is summed, like any two schedules.
Not here: layouts other than row major, results in the buffers of operands, elements of less than a byte.
Source: docs/reference/4 3.3; Zheng et al., "AStitch" (ASPLOS 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.computation import ParameterOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, ReshapeOp
from xla_emitters.dialects.hlo.types import default_order, dims_of, element_of, is_array, minor_to_major
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dtypes import Kind
from xla_emitters.dynamic.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.dynamic.buffers.disc_specialize_fusion_with_speculation import LIMITS, ROW_FORM
from xla_emitters.dynamic.buffers.fusion_rules import STITCH, VECTOR
from xla_emitters.dynamic.loops import stitch_forms
from xla_emitters.dynamic.loops.roots import roots_of
from xla_emitters.dynamic.loops.stitch_forms import NOWHERE, HeldRow, RowForm
from xla_emitters.dynamic.loops.stitch_forms import rule_of as rule_for
from xla_emitters.dynamic.loops.stitch_graph import StitchGraph
from xla_emitters.dynamic.loops.stitch_schedule import row_of
from xla_emitters.errors import InternalError
from xla_emitters.graph.buffers import aliases_of
from xla_emitters.graph.fusion_parts import Part
from xla_emitters.graph.scan_parts import ScanParts
from xla_emitters.graph.scan_ranges import scan_of
from xla_emitters.graph.steps_of_reductions import two_steps_of
from xla_emitters.graph.view import SCANS, STITCHED, FusionView, once_per_view
from xla_emitters.pipelines.fusion_kernel import kernel_of_fusion, on_buffers
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.rewrite.notes import decide

WITH_SCANS = ((DiscFuseOnBufferPass.name, "scans", True),)
"""Options of the passes of programs: a scan of rows has a row at hand, as a reduction does."""


@dataclass(frozen=True)
class RowWay:
    """How threads share the rows of a fusion.

    form    threads of a row and a block, and where rows and weights are kept between the loops over a row
    width   adjacent columns that a thread takes
    """

    form: RowForm
    width: int

    def __str__(self) -> str:
        form = self.form
        wide = f"{self.width} columns at once" if self.width > 1 else "single columns"
        rows = form.per_block // form.per_row
        block = f"{rows} rows a block" if rows > 1 else "a row a block"
        kept = f"rows in {form.kept}" if self.keeps_rows else "rows read again"
        weights = ", weights read with each row" if form.weights == "row" else ""
        return f"{form.per_row} threads a row, {block}, {wide}, {kept}{weights}"

    @property
    def keeps_rows(self) -> bool:
        """Whether a row is read once, not again in each loop over it."""
        return self.form.kept != NOWHERE

    def to_attr(self) -> DictionaryAttr:
        return DictionaryAttr({"form": self.form.to_attr(), "vector": IntegerAttr(self.width, i64)})

    @staticmethod
    def from_attr(attribute: Attribute) -> RowWay:
        """The inverse of `to_attr`."""
        assert isinstance(attribute, DictionaryAttr)
        form, width = attribute.data["form"], attribute.data["vector"]
        assert isa(form, ArrayAttr[Attribute])
        assert isa(width, IntegerAttr)
        return RowWay(RowForm.from_attr(form), width.value.data)


@dataclass(frozen=True)
class StitchedFusion:
    """A fusion that can be computed row by row.

    module          the IR that the passes of programs made of it: one fusion on buffers
    rows, columns   of the matrix that its reductions read
    row             what a thread may hold of a row, with accesses as wide as divide the columns
    """

    module: ModuleOp
    rows: int
    columns: int
    row: HeldRow


@once_per_view
def stitched(view: FusionView) -> StitchedFusion | str:
    """The fusion as the passes of programs see it; or a string: why it is not computed row by row."""
    if (why := _why_not(view)) is not None:
        return why
    module, options = program_of(view), CompileOptions(record="none", pass_options=WITH_SCANS)
    if isinstance(fusion := on_buffers(module, options, STITCH, "one chain of ops over the same rows"), str):
        return fusion
    graph = StitchGraph(fusion, roots_of(fusion))
    for op in graph.ops:
        if not graph.is_by_row(op) and (why := graph.why_not(op)):
            return f"%{op.instruction_name} is not computed row by row: {why}"
    rows, columns = (size.value for size in graph.matrix)
    assert rows is not None
    assert columns is not None
    if not graph.kept:
        return "nothing of a row is read again"
    row = row_of(graph, _width(columns, graph.most_bits))
    if graph.scans and rule_for(row, columns).kept == NOWHERE:
        return f"threads scan what they hold, and a row of {columns} columns does not fit a block"
    return StitchedFusion(module, rows, columns, row)


def _width(columns: int, most_bits: int) -> int:
    """Adjacent columns per access, for every array: the largest width that divides the columns."""
    most = LIMITS.vector_bits // max(LIMITS.element_bits, most_bits)
    return next(width for width in (8, 4, 2, 1) if width <= max(most, 1) and columns % width == 0)


def _why_not(view: FusionView) -> str | None:
    """What in a fusion prevents any stitched kernel, whatever it computes; or None."""
    types = [*view.parameter_types, *view.result_types]
    arrays = [*types, *(op.result.type for op in view.instructions if is_array(op.result.type))]
    if any(minor_to_major(each) != default_order(len(dims_of(each))) for each in arrays):
        return "not all of its arrays are row major"
    if any(element_of(each).bits < 8 and element_of(each).kind is not Kind.PRED for each in types):
        return "elements of less than a byte share one with other threads"
    if not all(prod(dims_of(each)) for each in types):
        return "it has no elements"
    if aliases_of(view):
        return "a result is in the buffer of an operand"
    if len(view.roots) != len(view.result_types):
        return "a reduction gives several arrays"
    if len(set(view.roots)) < len(view.roots):
        return "one result is there twice"
    if any(isinstance(root, ParameterOp) for root in view.roots):
        return "an operand is a result"
    return None


def program_of(view: FusionView) -> ModuleOp:
    """The fusion's computation as ENTRY of a separate module, its results in one tuple."""
    module = ModuleOp([called.clone() for called in view.called], sym_name=StringAttr(view.name))
    part = Part(view.computation)
    for parameter in sorted(view.parameters, key=lambda each: each.number.value.data):
        part.take(parameter.result)
    if SCANS in view.computation.attributes and (found := scan_of(view)) is not None:
        parts = ScanParts(part, found, module.body.block.add_op)
        scan = parts.window(part.take(found.array))
        part.taken[found.result] = parts.shaped(scan, dims_of(found.result))
    for op in view.instructions:
        if isinstance(op, ReduceOp) and (steps := two_steps_of(op)) is not None:
            dims = DenseArrayBase.from_list(i64, [len(dims_of(steps.array)) - 1])
            operands = [part.take(steps.array), part.take(op.operands[1])]
            made = ReduceOp(operands, op.result.type, op.instruction_name.data, {**op.properties, "dimensions": dims})
            part.taken[op.result] = part.insert(made, op)
    results = _without_reshapes([part.take(root.result) for root in view.roots])
    module.body.block.add_op(part.finish("main", results, view.computation, is_entry=True))
    for op in list(part.block.ops):
        # Between row-major arrays of one type a bitcast is a reshape, for which programs know that elements stay in their rows.
        if isinstance(op, BitcastOp) and element_of(op.operands[0]) == element_of(op.result):
            made = ReshapeOp([op.operands[0]], op.result.type, op.instruction_name.data)
            made.location = op.location
            Rewriter.replace_op(op, made)
    return module


def _without_reshapes(results: Sequence[SSAValue]) -> list[SSAValue]:
    """The results, or arrays with the same elements in the same order of which they are reshapes: those need no buffer of their own."""
    found = list[SSAValue]()
    for result in results:
        value = result
        while isinstance(op := value.owner, BitcastOp | ReshapeOp) and element_of(op.operands[0]) == element_of(value):
            value = op.operands[0]
        is_own = isinstance(value.owner, ParameterOp) or value in found or value in results
        found.append(result if is_own else value)
    return found


# ------------------------------------------------------------------------------------------------------------- ways


def ways_of(fusion: StitchedFusion) -> Sequence[RowWay]:
    """The ways to compute a fusion: rows in registers with few to many threads each, or read again."""
    return [RowWay(form, fusion.row.width) for form in stitch_forms.ways_of(fusion.row, fusion.columns)]


def rule_of(fusion: StitchedFusion, cores: int) -> RowWay | str:
    """The way by rule, or a string: why none is better than several kernels (docs/decisions/26 and 33).

    cores   multiprocessors: a block per row that is read again needs a row for each, as several kernels cut long rows
    """
    way = RowWay(rule_for(fusion.row, fusion.columns), fusion.row.width)
    if not way.keeps_rows and fusion.rows < cores:
        what = f"rows of {fusion.columns} columns, {fusion.row.kept_bytes} bytes each, do not fit a block"
        return f"{what}, and {fusion.rows} of them are fewer than {cores} multiprocessors"
    return way


# ----------------------------------------------------------------------------------------------------------- kernel


def emit_stitched(view: FusionView, device: Device, way: RowWay | None = None) -> ModuleOp:
    """The kernel of a fusion that `stitched` accepts: an entry on pointers, the form after xla-lower-tensors.

    way      None: the way given by its computation's attribute
    raises   InternalError if the passes of programs make something else of it
    """
    found = stitched(view)
    if isinstance(found, str):
        raise InternalError(f"fusion %{view.name} was to be computed row by row, but {found}", stage="stitch")
    way = way or RowWay.from_attr(view.computation.attributes[STITCHED])
    options = CompileOptions(target=device.name, record="none")
    module = found.module.clone()
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp))
    fusion.attributes[ROW_FORM] = way.form.to_attr()
    fusion.attributes[VECTOR] = IntegerAttr(way.width, i64)
    kernel, launch = kernel_of_fusion(module, view, options)
    how = "rows are read once"
    if not way.keeps_rows:
        how = f"rows of {found.columns} columns do not fit a block, and are read again in each loop"
    decide("emitter", f"stitch schedule: {how}", name="stitch", declined=[])
    decide("launch", str(launch), grid=list(launch.grid), block=list(launch.block))
    decide("rows", f"{found.rows} rows of {found.columns} columns: {way}", rows=found.rows, columns=found.columns)
    return kernel


def rounds_of(view: FusionView) -> str:
    """Which loop over a row computes what, as text: the stage "partition" of a stitched kernel."""
    found = stitched(view)
    if isinstance(found, str):
        return found
    (fusion,) = (op for op in found.module.walk() if isinstance(op, FusionOp))
    graph = StitchGraph(fusion, roots_of(fusion))
    lines = [f"{view.name}: {found.rows} rows of {found.columns} columns"]
    for number in graph.rounds:
        kept, sources = graph.kept, graph.sources[number]
        parts = {
            "reads": [buffer for buffer in sources if kept.get(buffer, number) == number],
            "takes what was kept of": [buffer for buffer in sources if kept.get(buffer, number) != number],
            "reduces to": [op.outputs[0] for op in graph.reduced_in(number)],
            "writes": [op.outputs[0] for op in graph.written_in(number)],
        }
        actions = (
            f"{verb} {', '.join(buffer.name_hint or '?' for buffer in found)}" for verb, found in parts.items() if found
        )
        lines.append(f"  round {number}: {'; '.join(actions)}")
    return "\n".join(lines)
