"""The concatenate emitter: one loop per operand, so that no thread compares its index with the operands' bounds.

    %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x) -> (%dim0, %dim1) in #map iter_args(%iter = %output) {        operand 0
      %pure_call = xla_gpu.pure_call @f_exp(%input, %input_0, %i, %j)             its element
      %pure_call_0 = xla_gpu.pure_call @f__epilogue__abs(%input, %input_0, %dim0, %dim1, %pure_call)     the epilogue
      %inserted = tensor.insert %pure_call_0 into %iter[%dim0, %dim1]
      xla_gpu.yield %inserted
    }
    %xla_loop_1 = xla_gpu.loop (...) in #map1 iter_args(%iter = %xla_loop) { ... }                                     operand 1

The grid covers the largest operand. Each thread copies the elements with its index from all operands, one operand after the other; smaller
operands use fewer threads. With many operands this would be much code with few active threads, so the loop emitter takes such fusions.
Source: seed document, "Concatenate emitter"; docs/reference/2 1.3 point 7, 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.shape_ops import ConcatenateOp
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major
from xla_emitters.dialects.xla_gpu import LoopOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder
from xla_emitters.emitters.emitter import Way, ways_of_works
from xla_emitters.emitters.entry_function import KernelEntry, entry_function
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, partition
from xla_emitters.errors import InternalError
from xla_emitters.graph.heroes import find_non_trivial_hero, place_map
from xla_emitters.graph.kinds import why_no_lone_concatenate
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.thread_work import ThreadWork, elements_per_thread, thread_works
from xla_emitters.graph.view import FusionView
from xla_emitters.rewrite.notes import decide


@dataclass(frozen=True)
class ConcatenateEmitter:
    """See the file's head.

    work  elements per thread; None: XLA's choice
    """

    work: ThreadWork | None = None
    name = "concatenate"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: there are several results, or the hero is not a concatenate, or it has too many operands."""
        return why_no_lone_concatenate(view)

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions the computation into a function per operand and one for the epilogue."""
        return _partition(view, *_root_and_hero(view))

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """Emitters that differ in the elements per thread; XLA's choice is the first."""
        _, hero = _root_and_hero(view)
        elements, own = math.prod(dims_of(_largest(hero))), _unroll(view, hero, device)
        works = thread_works(view, device, own, elements, math.gcd(elements, _piece(hero)))
        return ways_of_works(works, elements, device, view.place, lambda work: replace(self, work=work))

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        root, hero = _root_and_hero(view)
        partitioned = _partition(view, root, hero)
        largest, work = _largest(hero), self.work or ThreadWork(_unroll(view, hero, device))
        launch = launch_for(math.prod(dims_of(largest)), work.total, device, view.place)
        operand = owner_of(largest)
        decide("hero", f"%{hero.instruction_name.data}", instructions=[hero.instruction_name.data])
        over = f"{launch}, over %{operand.instruction_name.data}"
        decide("launch", over, grid=list(launch.grid), block=list(launch.block))
        decide("unroll", f"{work} a thread of each operand", elements_per_thread=work.total)
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        visited = work_item_map(launch, dims_of(largest), minor_to_major(largest.type), work.elements)
        entry = entry_function(view, launch)
        kernel = _Kernel(view, root, hero, partitioned, entry, visited)
        output = entry.outputs[0]
        for number, step in enumerate(hero.input_to_output()):
            output = kernel.write(number, step, output)
        entry.finish([output])
        return entry.module(view, partitioned)


def _root_and_hero(view: FusionView) -> tuple[HloOp, ConcatenateOp]:
    (root,) = view.roots
    hero = find_non_trivial_hero(view, root)
    if not isinstance(hero, ConcatenateOp):
        raise InternalError(f"no concatenate emitter for fusion %{view.name}", stage="emit")
    return root, hero


def _partition(view: FusionView, root: HloOp, hero: HloOp) -> PartitionedComputation:
    return partition(view.computation, epilogues=[Epilogue((root,), (hero,), (identity_map(dims_of(root.result)),))])


def _largest(hero: ConcatenateOp) -> SSAValue:
    """The first operand of the greatest length along the dimension."""
    return max(hero.operands, key=lambda operand: dims_of(operand)[hero.dimension])


def _piece(hero: ConcatenateOp) -> int:
    """A number of neighbouring elements, counted from the first, that are always in one operand: the least piece of one, or a part of it.

    f32[2,3,8] and f32[2,6,8] along dimension 1: 3 * 8 elements of the first, then 6 * 8 of the second   ->   24
    """
    order = minor_to_major(hero.result.type)
    inside = math.prod(dims_of(hero.result)[dim] for dim in order[: list(order).index(hero.dimension)])
    return inside * math.gcd(*(dims_of(operand)[hero.dimension] for operand in hero.operands))


def _unroll(view: FusionView, hero: ConcatenateOp, device: Device) -> int:
    """Elements per thread: a number that divides the lengths of all operands, so that a thread's elements are in one operand."""
    unroll = elements_per_thread(view, device, math.prod(dims_of(_largest(hero))))
    return math.gcd(unroll, *(dims_of(operand)[hero.dimension] for operand in hero.operands))


@dataclass(frozen=True, eq=False)
class _Kernel:
    """The body of the entry.

    visited  map from ids and symbols to an index of the largest operand
    """

    view: FusionView
    root: HloOp
    hero: ConcatenateOp
    partitioned: PartitionedComputation
    entry: KernelEntry
    visited: IndexingMap

    def write(self, number: int, step: IndexingMap, output: SSAValue) -> SSAValue:
        """The loop that writes the results for operand `number`. `step` maps an index of the operand to its index in the concatenate."""
        operand = owner_of(self.hero.operands[number])
        to_root = self.visited.compose(step).compose(place_map(self.hero, self.root)).simplify()
        if to_root.is_known_empty:
            return output
        loop = LoopOp(self.entry.ids, [output], to_root)
        body = FunctionBuilder(loop.body.block, self.view.location)
        read_at = build.apply_indexing(body, self.visited, [*self.entry.ids, *loop.induction_vars])
        inputs, indices = self.entry.inputs, loop.map_results
        element = body.call(self.partitioned.subgraph_of[operand], [*inputs, *read_at])
        (epilogue,) = self.partitioned.epilogues
        values = body.call(epilogue, [*inputs, *indices, *element])
        body.insert(YieldOp(*body.write(values, loop.iter_args, [indices])))
        self.entry.builder.insert(loop)
        return loop.results[0]
