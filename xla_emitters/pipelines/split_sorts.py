"""Turns sorts by comparators that no library has into kernels: one that sorts short runs, and one for each doubling of them. On HLO.

    s = f32[600,3] sort(x), dimensions={0},         s.64 = f32[600,3] fusion(x), calls=s.runs.64        {xla.sorted_runs = [64, 0]}
        to_apply=by_magnitude                ->     s.128 = ...;  s = fusion(s.512), calls=s.runs       {xla.sorted_runs = [1024, 0]}

    s.runs.64 { x = f32[600,3] parameter(0)         each run of 64 elements sorted, and the rest
                a = slice(x), 0:576;  b = slice(x), 576:600
                ROOT r = concatenate(sort(a), sort(b)), dimensions={0} }

A short sort is one kernel (`merge_passes.first_run`). Each computation has its kernel's value; a kernel of longer runs relies on the one
before it, which sorted both halves of each run. The kernels are those of programs (`sorted_runs`, `dynamic/loops/merge_passes`), and always
stable. Sorts by keys (`dialects/hlo/comparators`), and of at most one element, are left to a library. So is what the kernels cannot sort,
with a remark: comparators that are not of scalars alone, elements of less than a byte, arrays of different layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.comparators import keys_of
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, find_computation
from xla_emitters.dialects.hlo.rule_ops import RuleOp, one_or_tuple
from xla_emitters.dialects.hlo.shape_ops import ConcatenateOp, ReshapeOp, SliceOp
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, leaf_types, minor_to_major
from xla_emitters.dtypes import Kind
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.entry import tuple_elements
from xla_emitters.graph.fusion_parts import Part, new_fusion
from xla_emitters.graph.names import Names
from xla_emitters.graph.view import SORTED_RUNS
from xla_emitters.rewrite.kernel_pass import KernelPass


class SplitSortsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect whose calls are inlined."""

    name = "xla-split-sorts"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for computation in control_computations(op):
            for sort in list(computation.instructions):
                if not isinstance(sort, RuleOp) or not _calls_its_comparator(sort):
                    continue
                if (why := _why_not(sort)) is not None:
                    self.skip(sort, f"no kernel calls its comparator: {why}")
                    continue
                widths = _split(names, sort)
                self.remark(sort, f"no library has its comparator: kernels for runs of {_listed(widths)}")


def _listed(widths: Sequence[int]) -> str:
    return ", ".join(map(str, widths))


def _calls_its_comparator(op: RuleOp) -> bool:
    """Whether an instruction is a sort that a library of a GPU does not do."""
    if op.opcode != "sort":
        return False
    dims, (along,) = dims_of(op.operands[0]), op.numbers("dimensions")
    return prod(dims) > 0 and dims[along] > 1 and keys_of(_comparator(op)) is None


def _comparator(sort: RuleOp) -> ComputationOp:
    return find_computation(sort, sort.symbols("to_apply")[0])


def _why_not(sort: RuleOp) -> str | None:
    """Why kernels do not sort by a comparator, or None."""
    types = [*(operand.type for operand in sort.operands), *leaf_types(sort.result.type)]
    if len({minor_to_major(each) for each in types}) > 1:
        return "its arrays have different layouts"
    if any(element_of(each).bits < 8 and element_of(each).kind is not Kind.PRED for each in types):
        return "elements of less than a byte share one with other threads"
    if not has_scalar_code(_comparator(sort)):
        return "it is not of scalars alone"
    # Imported here, and below: libraries have the comparators of most sorts.
    from xla_emitters.pipelines.sorted_runs import sort_on_buffers

    found = sort_on_buffers(sort, [operand.type for operand in sort.operands], sort.numbers("dimensions")[0])
    return found if isinstance(found, str) else None


def _split(names: Names, sort: RuleOp) -> list[int]:
    """Replaces a sort by the fusions of its kernels; returns the lengths of the runs that they sort."""
    from xla_emitters.dynamic.loops.merge_passes import first_run

    (along,) = sort.numbers("dimensions")
    dims, values = dims_of(sort.operands[0]), list(sort.operands)
    size, widths = dims[along], [first_run(dims, along)]
    while widths[-1] < size:
        widths.append(2 * widths[-1])
    for width in widths:
        name = sort.instruction_name.data
        result = _runs(names, sort, values, width, name if width == widths[-1] else f"{name}.{width}")
        if width == widths[-1]:
            names.replace(sort, result)
        else:
            values = tuple_elements(result, lambda op: names.add(op, sort), "element")
    return widths


def _runs(names: Names, sort: RuleOp, values: Sequence[SSAValue], width: int, name: str) -> SSAValue:
    """A fusion before the sort that sorts each run of arrays along its dimension."""
    around = sort.parent_op()
    assert isinstance(around, ComputationOp)
    part, (along,) = Part(around), sort.numbers("dimensions")
    taken = [
        part.insert(ParameterOp(number, value.type, f"array.{number}"), sort) for number, value in enumerate(values)
    ]
    dims = dims_of(taken[0])
    size = dims[along]
    whole = size - size % width
    pieces = list[list[SSAValue]]()
    for start, limit in [(0, whole), (whole, size)]:
        if start == limit:
            continue
        count = (limit - start) // width or 1
        inner = [*dims[:along], limit - start, *dims[along + 1 :]]
        split = [*dims[:along], count, (limit - start) // count, *dims[along + 1 :]]
        arrays = taken
        if limit - start < size:
            ranges = [(start, limit) if dim == along else (0, of_dim) for dim, of_dim in enumerate(dims)]
            cut = ArrayAttr([DenseArrayBase.from_list(i64, [*each, 1]) for each in ranges])
            arrays = [
                part.insert(SliceOp([array], _type(array, inner), "piece", {"slice": cut}), sort) for array in arrays
            ]
        if count > 1:
            arrays = [part.insert(ReshapeOp([array], _type(array, split), "runs"), sort) for array in arrays]
        made = type(sort)(
            arrays,
            one_or_tuple([array.type for array in arrays]),
            "sorted",
            {**sort.properties, "name": StringAttr("sorted"), "dimensions": _numbers(along + (count > 1))},
        )
        found = tuple_elements(part.insert(made, sort), lambda op: part.insert(op, sort), "element")
        if count > 1:
            found = [part.insert(ReshapeOp([array], _type(array, inner), "joined"), sort) for array in found]
        pieces.append(found)
    types = leaf_types(sort.result.type)
    results = [
        part.insert(ConcatenateOp(both, ir_type, "whole", {"dimensions": _numbers(along)}), sort)
        for *both, ir_type in zip(*pieces, types, strict=True)
    ]
    callee = part.finish(f"{name}.runs", results, sort)
    callee.attributes[SORTED_RUNS] = _numbers(width, along)
    names.add_computation(callee, around)
    return names.add(new_fusion(values, callee, name), sort)


def _type(array: SSAValue, dims: Sequence[int]) -> Attribute:
    return array_type(element_of(array).ir_type, dims)


def _numbers(*numbers: int) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, numbers)
