"""Splits a reduction that is too large for one block: partial results, then a reduction of these. On HLO, before kernels are planned.

    r = f32[8192] reduce(p, z), dimensions={0}              partial: q = f32[1,64,128,8192] bitcast(p)
                                                                     s = f32[1,64,8192] reduce(q, z), dimensions={2}
    of p = f32[8192,8192]                            ->     rest:    t = f32[64,8192] bitcast(s)
                                                                     r = f32[8192] reduce(t, z), dimensions={0}

The first kernel also writes the fusion's other results, which have the size of its input; where no kernel can (the input is padded, or its
parts are too little work for a warp), xla-split-results separates them afterwards. The second computes the fusion's remaining instructions
from the reductions. If the length is not a product of two similar numbers, the operand is padded with a neutral element: the initial value
if it may be combined more than once, else the identity; then only the second kernel combines the initial value.
The results may have to be split again. A reduction without known identity is not split: one thread computes each of its results.
`parts` forces a split: "f=32" divides what the fusion %f reduces into 32 parts, though one block could reduce it.
Source: docs/reference/2 1.8; XLA tree_reduction_rewriter.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TupleType
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    ParameterOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, PadOp
from xla_emitters.dialects.hlo.types import (
    array_type,
    as_array,
    dims_of,
    element_of,
    leaf_types,
    minor_to_major,
    tuple_type,
)
from xla_emitters.errors import UsageError
from xla_emitters.graph.control_computations import fusions_of, fusions_run_by, is_one_kernel
from xla_emitters.graph.entry import computation_of, entry_of
from xla_emitters.graph.fusion_parts import Part, Parting, wrap_entry
from xla_emitters.graph.names import Names
from xla_emitters.graph.reduction_kinds import FusionReductions, Reduction, Split, find_reductions
from xla_emitters.graph.reduction_starts import identities_needed
from xla_emitters.graph.refusals import supported_view
from xla_emitters.graph.view import is_scheduled
from xla_emitters.rewrite.kernel_pass import KernelPass, Skip, skip_silently
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class SplitReductionsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    parts  "NAME=COUNT" for a fusion, or an ENTRY that is one kernel: splits its reductions into COUNT parts
    """

    name = "xla-split-reductions"

    parts: tuple[str, ...] = ()

    def apply_to(self, op: ModuleOp) -> None:
        split_reductions(op, self.skip, parts_asked(self.parts))


def parts_asked(texts: Sequence[str]) -> dict[str, int]:
    """Number of parts by name of a fusion. raises UsageError for a text that is not NAME=COUNT, COUNT at least 2"""
    found = dict[str, int]()
    for text in texts:
        name, _, count = text.rpartition("=")
        if not name or not count.isdecimal() or int(count) < 2:
            raise UsageError(
                f"'{text}' does not say into how many parts", stage="graph", help="NAME=COUNT: fusion.1=32"
            )
        found[name] = int(count)
    return found


def needs_split(
    source: FusionOp | ComputationOp, skip: Skip = skip_silently, parts: int | None = None
) -> FusionReductions | None:
    """The reductions of a future kernel, if they must be split and can be; `skip` gets the reason why they cannot.

    parts  number of parts to split into though one block could reduce them
    """
    if not any(isinstance(op, ReduceOp) for op in computation_of(source).instructions):
        return None
    if (view := supported_view(source)) is None or is_scheduled(view):
        return None
    found = find_reductions(view, are_split=True)
    if isinstance(found, str) or (found.shape.split is None and parts is None):
        return None
    for hero in found.reduce_heroes:
        if (reason := _why_whole(hero)) is not None:
            skip(hero, reason)
            return None
    return found


def _why_whole(hero: ReduceOp) -> str | None:
    """Why a reduction cannot be split; None if it can."""
    if isinstance(identities := identities_needed(hero), str):
        return identities
    return None if _is_uniform(hero) else "its operands have different layouts"


def _is_uniform(hero: ReduceOp) -> bool:
    """Whether all of its operands have the same order in memory."""
    return len({minor_to_major(array.type) for array in hero.arrays}) == 1


def split_reductions(module: ModuleOp, skip: Skip = skip_silently, parts: Mapping[str, int] | None = None) -> None:
    """Splits the reductions of fusions, or of an ENTRY that is one kernel, until one block can reduce each.

    skip   gets each reduction that stays, and the reason
    parts  name of a fusion -> number of parts to split its reductions into, though one block could reduce them
    """
    entry, left = entry_of(module), dict(parts or {})
    if is_one_kernel(entry):
        count = left.pop(entry.sym_name.data, None)
        if (found := needs_split(entry, skip, count)) is None:
            return
        (fusion,) = fusions_of(wrap_entry(entry))
        names = Names(module)
        pending = _Splitting(names, fusion, entry, found, count).split()
    else:
        names = Names(module)
        pending = list(fusions_run_by(entry))
    while pending:
        fusion = pending.pop()
        # The fusion's name now is that of the second part.
        count = left.pop(fusion.instruction_name.data, None)
        if (found := needs_split(fusion, skip, count)) is not None:
            pending += _Splitting(names, fusion, computation_of(fusion), found, count).split()


@dataclass(frozen=True, eq=False)
class _Splitting(Parting):
    """One fusion being split in two.

    count  of parts, if requested
    """

    found: FusionReductions
    count: int | None

    @property
    def shape(self) -> Reduction:
        return self.found.shape

    @property
    def parts(self) -> Split:
        if (found := self.shape.split) is not None:
            return found
        assert self.count is not None
        return self.shape.split_in(self.count)

    def split(self) -> list[FusionOp]:
        """Replaces the fusion by two, and returns these."""
        heroes = self.found.reduce_heroes
        sides = [root for number, root in enumerate(self.found.roots) if self.found.hero_of(number) is None]
        reduced = [root for number, root in enumerate(self.found.roots) if self.found.hero_of(number) is not None]
        name = self.callee.sym_name.data

        first = Part(self.callee)
        results = [self._partial(first, hero) for hero in heroes] + [first.take(root.result) for root in sides]
        partial = self.call(first, f"{name}.partial", results, [], ".partial")
        leaves = [leaf for element in self.elements(partial.result) for leaf in self.elements(element)]
        arrays = sum(len(hero.arrays) for hero in heroes)
        given, side_leaves = leaves[:arrays], leaves[arrays:]

        second = Part(self.callee)
        inputs = [
            second.insert(ParameterOp(number, value.type, f"partial.{number}"), self.callee)
            for number, value in enumerate(given)
        ]
        second.parameters.extend(len(inputs) * [-1])
        for hero in heroes:
            own, inputs = inputs[: len(hero.arrays)], inputs[len(hero.arrays) :]
            second.taken[hero.result] = self._rest(second, hero, own)
        rest = self.call(second, f"{name}.rest", [second.take(root.result) for root in reduced], given, "")
        # The result of one root may be a tuple itself.
        values = self.elements(rest.result) if len(reduced) > 1 else [rest.result]
        self.replace(list(zip([*sides, *reduced], [*side_leaves, *values], strict=True)))
        return [partial, rest]

    def _partial(self, part: Part, hero: ReduceOp) -> SSAValue:
        """The reduction of runs of the operand of `hero`."""
        starts = self._starts(part, hero)
        major, middle, minor = self.shape.dims
        outer, inner = self.parts.outer, self.parts.inner
        if self.shape.is_row:
            lengths, padded, split = (
                (major, middle, minor),
                (major, middle, outer * inner),
                (major, middle, outer, inner),
            )
        else:
            lengths, padded, split = (major, middle, minor), (major, outer * inner, minor), (major, outer, inner, minor)
        name = hero.instruction_name.data
        operands = list[SSAValue]()
        for array, start in zip(hero.arrays, starts, strict=True):
            element = as_array(array.type).element_type
            value = part.insert(BitcastOp([part.take(array)], array_type(element, lengths), f"{name}.flat"), hero)
            if padded != lengths:
                edges = [integer_array([0, more - size, 0]) for size, more in zip(lengths, padded, strict=True)]
                properties = {"padding": ArrayAttr(edges)}
                value = part.insert(
                    PadOp([value, start], array_type(element, padded), f"{name}.padded", properties), hero
                )
            operands.append(part.insert(BitcastOp([value], array_type(element, split), f"{name}.parts"), hero))
        gone = 3 if self.shape.is_row else 2
        dims = [size for dim, size in enumerate(split) if dim != gone]
        return part.insert(_reduce(hero, [*operands, *starts], [gone], dims, f"{name}.partial"), hero)

    def _starts(self, part: Part, hero: ReduceOp) -> list[SSAValue]:
        """Initial values of partial results, and padding values of operands."""
        inits = hero.inits
        identities = identities_needed(hero)
        if identities is None:
            return [part.take(init) for init in inits]
        assert isinstance(identities, tuple)
        made = list[SSAValue]()
        for init, identity in zip(inits, identities, strict=True):
            if identity is None:
                made.append(part.take(init))
                continue
            row = element_of(init)
            constant = ConstantOp.from_array(np.asarray(identity).astype(row.numpy), row, f"identity.{identity}")
            made.append(part.insert(constant, hero))
        return made

    def _rest(self, part: Part, hero: ReduceOp, partials: Sequence[SSAValue]) -> SSAValue:
        """The reduction of partial results (from `_partial`) to the result of `hero`."""
        array = hero.operands[0].type
        sizes, gone = dims_of(array), set(integers(hero.dimensions))
        order = list(reversed(minor_to_major(array)))
        kept = [dim for dim in range(len(sizes)) if dim not in gone]
        in_memory = [kept.index(dim) for dim in order if dim in kept]
        if self.shape.is_row:
            before, extra = [], [self.shape.dims[0], self.parts.outer]
            sequence = [len(kept), *in_memory, len(kept) + 1]
        else:
            first = next(place for place, dim in enumerate(order) if dim in gone)
            before, extra = in_memory[: sum(dim in kept for dim in order[:first])], [self.parts.outer]
            sequence = [*before, len(kept), *in_memory[len(before) :]]
        dims = [*(sizes[dim] for dim in kept), *extra]
        name = hero.instruction_name.data
        operands = [
            part.insert(
                BitcastOp(
                    [value],
                    array_type(as_array(value.type).element_type, dims, sequence[::-1]),
                    f"{name}.regrouped",
                ),
                hero,
            )
            for value in partials
        ]
        inits = [part.take(init) for init in hero.inits]
        reduced = list(range(len(kept), len(dims)))
        part.names.discard(name)
        return part.insert(_reduce(hero, [*operands, *inits], reduced, None, name), hero)


def _reduce(
    hero: ReduceOp, operands: Sequence[SSAValue], gone: Sequence[int], dims: Sequence[int] | None, name: str
) -> ReduceOp:
    """A reduction by the computation of `hero`; `dims`: the shape of its results, None: that of `hero`."""
    ir_type = hero.result.type
    if dims is not None:
        leaves = [array_type(as_array(leaf).element_type, dims) for leaf in leaf_types(ir_type)]
        ir_type = tuple_type(leaves) if isinstance(ir_type, TupleType) else leaves[0]
    return ReduceOp(operands, ir_type, name, {"dimensions": integer_array(gone), "to_apply": hero.to_apply})
