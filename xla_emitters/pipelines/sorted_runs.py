"""A kernel that sorts each run of some elements, by any comparator: a pass of the merge sort of programs, at a fusion's own sizes.

    s.runs.128 { ... sort(...), to_apply=by_magnitude ... } {xla.sorted_runs = [128, 0]}

    ENTRY { x = f32[100,3] parameter(0);  ROOT s = sort(x), to_apply=by_magnitude }     ─PROGRAM_FUSED─> one lmhlo.fusion {kSingleOp}
    ─disc.sorted_runs = 128, PROGRAM_LOOPS─> merges runs of 64 of %x into runs of 128 of %s, one launch (`dynamic/loops/merge_passes`)

Made by `split_sorts`. The sort of programs has row-major arrays: here its dimensions are in the order of memory, the same for all arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.computation import ParameterOp, find_computation
from xla_emitters.dialects.hlo.rule_ops import RuleOp, one_or_tuple
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, minor_to_major
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dynamic.buffers.fusion_rules import SINGLE
from xla_emitters.dynamic.loops.merge_passes import first_run
from xla_emitters.dynamic.loops.sort_schedule import RUNS
from xla_emitters.errors import InternalError
from xla_emitters.graph.fusion_parts import NewComputation
from xla_emitters.graph.view import SORTED_RUNS, FusionView, view_of
from xla_emitters.pipelines.fusion_kernel import kernel_of_fusion, on_buffers
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.rewrite.notes import decide


def sort_on_buffers(sort: RuleOp, types: Sequence[Attribute], along: int) -> ModuleOp | str:
    """A sort of arrays as the passes of programs see it, one fusion on buffers; or why no kernel sorts by its comparator.

    types   of the arrays, all with one layout
    along   their dimension that is sorted
    """
    order = minor_to_major(types[0])[::-1]
    inside, dims = NewComputation(), [dims_of(types[0])[dim] for dim in order]
    arrays = [
        inside.insert(ParameterOp(number, array_type(element_of(each).ir_type, dims), f"array.{number}"), sort)
        for number, each in enumerate(types)
    ]
    properties = {**sort.properties, "dimensions": DenseArrayBase.from_list(i64, [order.index(along)])}
    alone = type(sort)(arrays, one_or_tuple([array.type for array in arrays]), "sorted", properties)
    entry = inside.finish("main", [inside.insert(alone, sort)], sort, is_entry=True)
    called = view_of(find_computation(sort, sort.symbols("to_apply")[0]))
    module = ModuleOp([*(op.clone() for op in (*called.called, called.computation)), entry])
    found = on_buffers(module, CompileOptions(record="none"), SINGLE, "one sort")
    return found if isinstance(found, str) else module


def emit_sorted_runs(view: FusionView, device: Device) -> ModuleOp:
    """The kernel of a fusion that `split_sorts` made: an entry on pointers, the form after xla-lower-tensors."""
    width, along = _runs_of(view)
    sort = _sort_in(view)
    module = sort_on_buffers(sort, view.parameter_types, along)
    if isinstance(module, str):
        raise InternalError(f"fusion %{view.name} was to be sorted by its comparator, but {module}", stage="sort")
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp))
    fusion.attributes[RUNS] = IntegerAttr(width, i64)
    kernel, launch = kernel_of_fusion(module, view, CompileOptions(target=device.name, record="none"))
    decide("emitter", f"sort schedule: {runs_text(view)}", name="sort", declined=[])
    decide("launch", str(launch), grid=list(launch.grid), block=list(launch.block))
    return kernel


def runs_text(view: FusionView) -> str:
    """What the kernel does, as text: the stage "partition" of a kernel that sorts runs."""
    width, along = _runs_of(view)
    comparator = _sort_in(view).symbols("to_apply")[0].root_reference.data
    size, half = dims_of(view.parameter_types[0])[along], width // 2
    is_first = width == first_run(dims_of(view.parameter_types[0]), along)
    what = f"sorts runs of {width}" if is_first else f"merges pairs of runs of {half}"
    return f"{view.name}: {what} of the {size} elements along dimension {along}, by {comparator}"


def _runs_of(view: FusionView) -> tuple[int, int]:
    width, along = integers(view.computation.attributes[SORTED_RUNS])
    return width, along


def _sort_in(view: FusionView) -> RuleOp:
    sort = next(iter(view.with_opcode("sort")))
    assert isinstance(sort, RuleOp)
    return sort
