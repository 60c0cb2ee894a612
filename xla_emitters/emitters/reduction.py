"""The reduction emitter: several threads compute each result, and combine their partial results by shuffles and shared memory.

    %xla_loop = xla_gpu.loop (%th_x, %bl_x)[%step, %vector_index] -> (...) in #map iter_args(%iter = %init) -> (f32) {
      %pure_call = xla_gpu.pure_call @f_exp(%input, %i, %j)             the reduction's operand (prologue)
      %next = xla_gpu.pure_call @add(%iter, %pure_call)
      xla_gpu.yield %next                                               each thread's partial result
    }
    %0 = xla_gpu.shuffle_reduce(%xla_loop) to 16 combiner=@add          each warp's, in its first lane
    %shmem = xla_gpu.allocate_shared : tensor<2x4xf32>                  written by first lanes, read by the first warps:
    %synced_tensor = xla_gpu.sync_threads %written
    %1 = xla_gpu.shuffle_reduce(%read) to 16 combiner=@add
    %2 = xla_gpu.pure_call @f__epilogue__log(%input, %k, %1)            the epilogue
    %3 = xla_gpu.predicated_insert %2 into %output[%k] if %is_first     written by one thread

The plan (`reduction_plans`) distributes the work over threads. Several reductions of one shape share the loop. So do side outputs:
unreduced results of the operand's shape, written at the index that is read. Reductions that share nothing get separate blocks along z.
The threads' first values are chosen so that an initial value counts once (`reduction_partials`).
Additions in bodies are nsz, so that 0 + x folds. Source: docs/reference/2 2.4.3; XLA reduction.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TensorType, VectorType, i64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import bitcast_map, identity_map
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.base import HloOp, integers, owner_of
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import same_place
from xla_emitters.dialects.hlo.types import as_array, default_order, dims_of, leaf_types, minor_to_major
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, func, scf, tensor, vector
from xla_emitters.dialects.xla_gpu import (
    AllocateSharedOp,
    LoopOp,
    PredicatedExtractOp,
    PredicatedInsertOp,
    ShuffleReduceOp,
    SyncThreadsOp,
    YieldOp,
)
from xla_emitters.emitters.elemental import FunctionBuilder, emit_functions
from xla_emitters.emitters.emitter import Way
from xla_emitters.emitters.entry_function import KernelEntry, entry_function, kernel_module
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, Subgraph, partition, partition_called
from xla_emitters.emitters.reduction_partials import Partials
from xla_emitters.emitters.reduction_plans import (
    ReductionPlan,
    ReductionWork,
    SharedStage,
    plan_for,
    reduction_works,
    stage_bytes,
)
from xla_emitters.graph.reduction_kinds import FusionReductions, find_reductions
from xla_emitters.graph.reduction_starts import identities_needed, rounding_of_sums
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.rewrite.notes import decide


@once_per_view
def _plan(view: FusionView, device: Device, work: ReductionWork | None) -> ReductionPlan:
    """`plan_for` the reductions of a fusion that has some: asked for when the emitter is chosen, and when it emits."""
    found = find_reductions(view)
    assert not isinstance(found, str)
    return plan_for(found, device, work)


@dataclass(frozen=True)
class ReductionEmitter:
    """See the file's head.

    work  work per thread; None: XLA's choice
    """

    work: ReductionWork | None = None
    name = "reduction"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: the hero is not a reduction, or its tiles need more shared memory than a block has."""
        found = find_reductions(view)
        if isinstance(found, str):
            return found
        wanted, most = stage_bytes(_plan(view, device, None), found), device.shared_bytes_per_block
        return f"its tiles take {wanted} bytes of shared memory, and a block has {most}" if wanted > most else None

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions into a function for each operand of a reduction, each group's epilogue, and each side output."""
        found = find_reductions(view)
        assert not isinstance(found, str)
        side_outputs = [root for number, root in enumerate(found.roots) if found.hero_of(number) is None]
        # The operands of a side output get functions of their own, like those of a hero.
        apart = {*side_outputs, *(operand.owner for root in side_outputs for operand in root.operands)}
        epilogues = [_epilogue(found, group) for group in found.groups if found.heroes_of(group)]
        return partition(view.computation, lambda op: op in apart, epilogues)

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """Emitters that differ in the number of threads per row or column and in the width of their reads; XLA's choice is the first."""
        found = find_reductions(view)
        assert not isinstance(found, str)
        own = _plan(view, device, None)
        ways = [Way(f"{own.name} as XLA's", self)]
        for work in reduction_works(found, device):
            plan = plan_for(found, device, work)
            where = f"{work.threads} threads a row" if found.shape.is_row else f"{work.threads} warps a column"
            same, largest = partial(plan.same_blocks, other=own), rounding_of_sums(found.reduce_heroes)
            ways.append(
                Way(
                    f"{where}, {work.vector} at once",
                    replace(self, work=work),
                    same,
                    (plan.chain + own.chain) * largest,
                )
            )
        return ways

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        found = find_reductions(view)
        assert not isinstance(found, str)
        plan = _plan(view, device, self.work)
        launch = replace(plan.launch, grid=(*plan.launch.grid[:2], len(found.groups)))
        reducing = [group for group in found.groups if found.heroes_of(group)]
        partitioned = self.partition(view, device)
        names = [f"%{hero.instruction_name.data}" for hero in found.reduce_heroes]
        decide("hero", f"{', '.join(names)}: {found.shape}", heroes=names, shape=list(found.shape.dims))
        decide("reduction", f"{plan.name}, {plan.vector} partial results a thread", variant=plan.name)
        for hero in found.reduce_heroes:
            if isinstance(reason := identities_needed(hero), str):
                decide("start", f"partial results say if they are one yet: {reason}", hero=hero.instruction_name.data)
        decide("launch", str(launch), grid=list(launch.grid), block=list(launch.block))
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        entry = entry_function(view, launch)
        called = partition_called(view.called)
        ids = dict(zip((name for name, _ in launch.ids), entry.ids, strict=True))
        epilogues = dict(zip(reducing, partitioned.epilogues, strict=True))
        kernel = _ReductionKernel(found, plan, entry, ids, partitioned, epilogues, called)
        kernel.emit()
        functions = emit_functions(entry.function, partitioned, called)
        bodies = {hero.to_apply.root_reference.data for hero in found.reduce_heroes}
        _let_zeros_fold(functions, [called[name] for name in bodies])
        return kernel_module(view, entry.function, [*functions, *kernel.combining_functions()])


def _let_zeros_fold(functions: Sequence[func.FuncOp], bodies: Sequence[PartitionedComputation]) -> None:
    """Sets nsz on additions: the sign of a zero sum does not matter in a reduction, so 0 + x folds to x."""
    names = {subgraph.name for body in bodies for subgraph in body.subgraphs}
    nsz = arith.FastMathFlagsAttr([FastMathFlag.NO_SIGNED_ZEROS])
    for function in functions:
        if function.sym_name.data in names:
            for op in function.walk():
                if isinstance(op, arith.AddfOp):
                    op.fastmath = nsz


def _epilogue(found: FusionReductions, group: Sequence[int]) -> Epilogue:
    """The epilogue of a group: one element of each root of the group that is computed from a reduction."""
    roots = [found.roots[number] for number in group if found.hero_of(number) is not None]
    first = roots[0]
    maps = tuple(identity_map(_first_dims(first)) if root is first else _between(first, root) for root in roots)
    return Epilogue(tuple(roots), found.heroes_of(group), maps)


def _first_dims(op: HloOp) -> tuple[int, ...]:
    return dims_of(leaf_types(op.result.type)[0])


def _between(source: HloOp, target: HloOp) -> IndexingMap:
    """The map from an index of one result to the index of another at the same linear index; of a tuple, its first array is used."""
    one, other = (as_array(leaf_types(op.result.type)[0]) for op in (source, target))
    return same_place(one, other)


Values: TypeAlias = dict[ReduceOp, Sequence[SSAValue]]
"""For each reduction, its partial results: one number per array that it reduces, and optionally a flag that they are not empty."""


@dataclass(frozen=True, eq=False)
class _ReductionKernel:
    """The body of one kernel.

    ids        thread and block ids by name
    epilogues  by group, for groups that reduce
    called     the computations that instructions call for each element, by name
    """

    found: FusionReductions
    plan: ReductionPlan
    entry: KernelEntry
    ids: Mapping[str, SSAValue]
    partitioned: PartitionedComputation
    epilogues: Mapping[tuple[int, ...], Subgraph]
    called: Mapping[str, PartitionedComputation]

    @property
    def builder(self) -> FunctionBuilder:
        return self.entry.builder

    @cached_property
    def map_ids(self) -> list[SSAValue]:
        """The ids that are the dims of the plan's maps."""
        return [self.ids[name] for name, _ in self.plan.launch.ids]

    @cached_property
    def thread_ids(self) -> list[SSAValue]:
        """The ids that are the dims of the shared stage's maps."""
        return [self.ids["th_x"]] if "th_x" in self.ids else []

    @cached_property
    def outputs_of(self) -> list[range]:
        """For each root, the range of the kernel's outputs that are its results."""
        ranges, at = list[range](), 0
        for root in self.found.roots:
            count = len(leaf_types(root.result.type))
            ranges.append(range(at, at + count))
            at += count
        return ranges

    def emit(self) -> None:
        groups = self.found.groups
        if len(groups) == 1:
            self.entry.finish(self._group(groups[0]))
            return
        default, *cases = [Region(Block()) for _ in groups]
        numbers = DenseArrayBase.from_list(i64, range(1, len(groups)))
        types = [output.type for output in self.entry.outputs]
        switch = self.builder.insert(scf.IndexSwitchOp(self.ids["bl_z"], numbers, default, cases, types))
        for group, region in zip(groups, (default, *cases), strict=True):
            with self.builder.inside(InsertPoint.at_end(region.block)):
                self.builder.insert(scf.YieldOp(*self._group(group)))
        self.entry.finish(switch.results)

    def _group(self, group: tuple[int, ...]) -> list[SSAValue]:
        """The outputs after the writes of one group."""
        heroes = self.found.heroes_of(group)
        starts = dict[ReduceOp, Sequence[SSAValue]]()
        for hero in heroes:
            with self.builder.located(hero.location):
                starts[hero] = self.partials[hero].starts(self.builder)
        partial, outputs = self._per_thread(group, starts)
        if not heroes:
            return outputs
        partial = self._shuffled(partial, self.plan.distance)
        if self.plan.shared is None:
            return self._written(group, partial, (), outputs)
        return self._through_shared(group, partial, starts, self.plan.shared, outputs)

    def _element(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """An element of an operand of a reduction or of a side output."""
        callee = self.partitioned.subgraph_of[owner_of(value)]
        return self.builder.call(callee, [*self.entry.inputs, *indices])[0]

    @cached_property
    def partials(self) -> dict[ReduceOp, Partials]:
        """How each reduction's partial results are combined."""
        return {
            hero: Partials(
                hero, self.called[hero.to_apply.root_reference.data].root, lambda init: self._element(init, ())
            )
            for hero in self.found.reduce_heroes
        }

    def combining_functions(self) -> list[func.FuncOp]:
        """The distinct combining functions of partial results with a flag; the functions that they call are in the module already."""
        made = {partials.combiner: partials.combining_function() for partials in self.partials.values()}
        return [function for function in made.values() if function is not None]

    # ---- Per thread: reading and combining

    def _per_thread(self, group: Sequence[int], starts: Values) -> tuple[Values, list[SSAValue]]:
        """Each thread's partial results (vectors if the plan has several per thread), and the outputs after writing the side outputs."""
        sides = [number for number in group if self.found.hero_of(number) is None]
        written = [output for number in sides for output in self.outputs_of[number]]
        outputs = list(self.entry.outputs)
        begun = [self._repeated(value) for values in starts.values() for value in values]
        loop = self.builder.insert(LoopOp(self.map_ids, [*(outputs[n] for n in written), *begun], self.plan.input))
        with self.builder.inside(InsertPoint.at_end(loop.body.block)):
            tensors, carried = loop.iter_args[: len(written)], loop.iter_args[len(written) :]
            combined = list[SSAValue]()
            for hero in starts:
                own, carried = self._parted(hero, carried)
                combined += self._step(hero, loop, own)
            self.builder.insert(YieldOp(*self._side_outputs(sides, loop, tensors), *combined))
        for number, result in zip(written, loop.results[: len(written)], strict=True):
            outputs[number] = result
        partial, rest = dict[ReduceOp, Sequence[SSAValue]](), loop.results[len(written) :]
        for hero in starts:
            partial[hero], rest = self._parted(hero, rest)
        return partial, outputs

    def _parted(self, hero: ReduceOp, values: Sequence[SSAValue]) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        """Splits a list into the values of one reduction's partial results, which are first, and the rest."""
        count = self.partials[hero].count
        return values[:count], values[count:]

    def _repeated(self, value: SSAValue) -> SSAValue:
        """A thread's partial results, all equal to `value`: a vector if there are several."""
        if self.plan.vector == 1:
            return value
        return self.builder.insert(vector.BroadcastOp(value, VectorType(value.type, [self.plan.vector]))).vector

    def _step(self, hero: ReduceOp, loop: LoopOp, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The partial results after one more element of each array."""
        with self.builder.located(hero.location):
            so_far = self._chosen(carried, loop.induction_vars)
            at = build.apply_indexing(self.builder, self._from_input(hero.operands[0].type), loop.map_results)
            elements = [self._element(array, at) for array in hero.arrays]
            combined = self.partials[hero].with_element(self.builder, so_far, elements)
            if self.plan.vector == 1:
                return combined
            index = loop.induction_vars[-1]
            pairs = zip(combined, carried, strict=True)
            return [self.builder.insert(vector.InsertOp(new, old, [index])).result for new, old in pairs]

    def _chosen(self, values: Sequence[SSAValue], symbols: Sequence[SSAValue]) -> list[SSAValue]:
        """The element of each value at the last symbol, if a thread has several results and values are vectors."""
        found = list[SSAValue]()
        for value in values:
            if isa(value.type, VectorType):
                value = self.builder.insert(vector.ExtractOp(value, [symbols[-1]], value.type.element_type)).result
            found.append(value)
        return found

    def _from_input(self, output: Attribute) -> IndexingMap:
        """The map from an index of the plan's `input_shape` to the index at the same linear place in an array of as many elements."""
        shape = self.plan.input_shape
        return bitcast_map(shape, default_order(len(shape)), dims_of(output), minor_to_major(output))

    def _side_outputs(self, sides: Sequence[int], loop: LoopOp, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The side outputs' tensors after writing one more element of each: all are computed before the first is written."""
        places, values = list[Sequence[SSAValue]](), list[SSAValue]()
        for number in sides:
            root = self.found.roots[number]
            with self.builder.located(root.location):
                step = self._from_input(root.result.type)
                places.append(build.apply_indexing(self.builder, step, loop.map_results))
                values.append(self._element(root.result, places[-1]))
        return self.builder.write(values, tensors, places)

    # ---- Combining across threads

    def _shuffled(self, values: Values, distance: int) -> Values:
        """Combines values over runs of 2 * `distance` lanes of a warp; the first lane of each run has the result."""
        if distance == 0:
            return values
        found: Values = {}
        for hero, own in values.items():
            with self.builder.located(hero.location):
                found[hero] = self.builder.insert(ShuffleReduceOp(own, self.partials[hero].combiner, distance)).results
        return found

    def _through_shared(
        self, group: tuple[int, ...], partial: Values, starts: Values, stage: SharedStage, outputs: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Writes the partial results of threads or warps into a shared tile, which the threads of one warp read and combine."""
        own = [value for values in partial.values() for value in values]
        fallbacks = [value for values in starts.values() for value in values]
        tiles = [self._tile(value.type, stage) for value in fallbacks]

        def write(inner: Builder, symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            with self.builder.inside(inner.insertion_point):
                place = build.apply_indexing(self.builder, stage.write, [*self.thread_ids, *symbols])
                return [
                    self.builder.insert(tensor.InsertOp(value, tile, list(place))).result
                    for value, tile in zip(self._chosen(own, symbols), carried, strict=True)
                ]

        written = build.loop_nest(self.builder, stage.write, self.thread_ids, tiles, write)
        synced = self.builder.insert(SyncThreadsOp(written)).results

        def read(symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> list[SSAValue]:
            place = build.apply_indexing(self.builder, stage.read, [*self.thread_ids, *symbols])
            condition = build.constraints_check(self.builder, stage.read, self.thread_ids, symbols)
            extracted = [
                self.builder.insert(PredicatedExtractOp(tile, place, condition, fallback)).result
                for tile, fallback in zip(synced, fallbacks, strict=True)
            ]
            found: Values = {}
            for hero in partial:
                found[hero], extracted = self._parted(hero, extracted)
            return self._written(group, self._shuffled(found, stage.distance), symbols, carried)

        if not stage.read.range_vars:
            return read((), outputs)

        def each(inner: Builder, symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            with self.builder.inside(inner.insertion_point):
                return read(symbols, carried)

        # All lanes of a warp must take part in shuffles, including those outside the tile, which read nothing.
        all_threads = IndexingMap((), (), stage.read.range_vars)
        return list(build.loop_nest(self.builder, all_threads, (), list(outputs), each))

    def _tile(self, element_type: Attribute, stage: SharedStage) -> SSAValue:
        return self.builder.insert(AllocateSharedOp(TensorType(element_type, stage.tile))).result

    # ---- Writing the results

    def _written(
        self, group: tuple[int, ...], totals: Values, symbols: Sequence[SSAValue], outputs: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The outputs, after the threads that hold the group's results have written them."""
        arguments = list[SSAValue]()
        for hero, values in totals.items():
            with self.builder.located(hero.location):
                arguments += self.partials[hero].with_init(self.builder, values)
        roots = [number for number in group if self.found.hero_of(number) is not None]
        operands = [*self.map_ids, *symbols]
        places = [build.apply_indexing(self.builder, self._output_map(number), operands) for number in roots]
        results = list(self.builder.call(self.epilogues[group], [*self.entry.inputs, *places[0], *arguments]))
        condition = build.constraints_check(self.builder, self.plan.output, self.map_ids, symbols)
        written = list(outputs)
        for number, place in zip(roots, places, strict=True):
            for output in self.outputs_of[number]:
                insertion = PredicatedInsertOp(results.pop(0), written[output], place, condition)
                written[output] = self.builder.insert(insertion).result
                written[output].name_hint = "inserted"
        return written

    def _output_map(self, number: int) -> IndexingMap:
        """The map from ids and symbols to the index of a root's results that a thread writes."""
        hero, root = self.found.hero_of(number), self.found.roots[number]
        assert hero is not None
        gone = set(integers(hero.dimensions))
        kept = [dim for dim in range(len(dims_of(hero.operands[0]))) if dim not in gone]
        # The layout of the result's elements is the operand's, without the reduced dims.
        order = [kept.index(dim) for dim in minor_to_major(hero.operands[0].type) if dim not in gone]
        shape = self.found.shape.kept
        index = bitcast_map(shape, default_order(len(shape)), _first_dims(hero), order)
        return self.plan.output.compose(index).compose(_between(hero, root)).simplify()
