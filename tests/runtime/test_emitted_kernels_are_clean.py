"""Errors that no GPU reports, on emitted kernels: they have none, a missing barrier is found, and each element is written once."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from long_lists import but_long
from runtime.small_programs import buffers_for
from runtime.test_mutations import stages_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import tensor
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.control_computations import drawn_for
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.runtime.cpu.cpu_launcher import run_kernel
from xla_emitters.runtime.inputs import draw_inputs
from xla_emitters.runtime.simt.memory import Access, Memory, Watcher
from xla_emitters.runtime.simt.sanitizer import Sanitizer

EMITTERS = Path(__file__).parents[1] / "filecheck" / "emitters"
THROUGH_SHARED_MEMORY = ["transpose/epilogue_reads", "transpose/packed_odd", "reduction/row", "reduction/column"]
BARRIERS = ("xla_gpu.sync_threads", "gpu.barrier", "nvvm.barrier0")
STAGES = EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :]


def text_of(name: str) -> str:
    return (EMITTERS / f"{name}.hlo").read_text()


def drawn(text: str) -> tuple[Program, list[Array]]:
    """The program and its parameters, drawn."""
    module = read_module(text)
    shapes = compile_module(module, CompileOptions(stage="hlo", record="none"))
    return shapes, draw_inputs(drawn_for(module, None), shapes.parameters, 0)


def results(
    planned: PlannedKernel, module: ModuleOp, given: tuple[Program, list[Array]], *watchers: Watcher
) -> list[Array]:
    return run_kernel(module, planned.arguments, buffers_for(*given, planned.arguments), watchers=watchers)[0]


def ops_named(module: ModuleOp, *names: str) -> list[Operation]:
    return [op for op in module.walk() if op.name in names]


@pytest.mark.parametrize("name", but_long(THROUGH_SHARED_MEMORY, ["transpose/packed_odd"]))
def test_a_missing_barrier_is_found_at_every_stage(name: str) -> None:
    """Threads in lockstep compute the right numbers without it: only the sanitizer finds that it is missing."""
    given = drawn(text_of(name))
    modules = stages_of(text_of(name))
    assert tuple(modules) == STAGES
    for stage, (planned, module) in modules.items():
        wanted = results(planned, module, given, Sanitizer())
        count = len(ops_named(module, *BARRIERS))
        assert count >= 1, stage
        for number in range(count):
            changed = module.clone()
            barrier = ops_named(changed, *BARRIERS)[number]
            for result, operand in zip(barrier.results, barrier.operands, strict=True):
                result.replace_all_uses_with(operand)
            barrier.detach()
            barrier.erase()
            assert all(map(same_bits, results(planned, changed, given), wanted))
            with pytest.raises(ExecutionError, match=r"of the shared|of @shared") as caught:
                results(planned, changed, given, Sanitizer())
            assert caught.value.message.endswith("of its block wrote: a race"), stage
            assert any(detail.startswith("from ") for detail in caught.value.details), stage


def test_swapped_indices_of_shared_memory_are_found() -> None:
    """A tile of 32 by 33, of which a thread would read the transposed element: some of these were never written."""
    text = text_of("transpose/epilogue_reads")
    planned, module = stages_of(text)["xla_gpu"]
    changed, given = module.clone(), drawn(text)
    (read,) = (
        op
        for op in changed.walk()
        if isinstance(op, tensor.ExtractOp) and op.tensor.owner in ops_named(changed, "xla_gpu.sync_threads")
    )
    first, *middle, last = read.indices
    read.operands = [read.tensor, last, *middle, first]
    results(planned, changed, given)
    with pytest.raises(ExecutionError, match=r"reads bytes .* of the shared .*, which no thread wrote"):
        results(planned, changed, given, Sanitizer())


# ---------------------------------------------------------------------------------------------- each element once


class Stores(Watcher):
    """Counts how often each element of each written array is stored: a store is one element, as emitted."""

    def __init__(self) -> None:
        self.counts: dict[int, Array] = {}

    def access(self, memory: Memory, access: Access) -> None:
        if access.is_store:
            elements = access.buffer.data.size // access.size
            counts = self.counts.setdefault(access.buffer.number, np.zeros(elements, np.int64))
            assert counts.size == elements, f"stores of several widths to {access.buffer.name}"
            shape = (len(memory.blocks), memory.launch.threads)
            active = np.broadcast_to(True if access.active is None else access.active, shape)
            offsets = np.broadcast_to(access.offsets, shape)[active]
            np.add.at(counts, offsets // access.size, 1)


def once_written() -> Iterator[str]:
    """Every listing but refusals, and those that update a few elements of what is there."""
    for path in sorted(EMITTERS.rglob("*.hlo")):
        if path.parent.name not in ("dynamic_update_slice", "scatter") and "// RUN: not " not in path.read_text():
            yield path.relative_to(EMITTERS).with_suffix("").as_posix()


@pytest.mark.parametrize("name", but_long(ONCE := list(once_written()), {"loop/gelu", *ONCE[1::2]}))
def test_threads_write_every_element_once(name: str) -> None:
    """The whole grid, as emitted: the threads' parts of the result do not overlap and leave nothing out."""
    module = read_module(text_of(name))
    given = drawn(text_of(name))

    def observer(planned: PlannedKernel) -> Observer:
        def observe(row: str, stage: str | None, kernel: ModuleOp) -> None:
            if stage == "xla_gpu":
                arguments, stores = planned.arguments, Stores()
                results(planned, kernel, given, stores)
                updated = {argument.slice_index for argument in arguments if argument.kind == "parameter"}
                for argument in arguments:
                    if argument.written and argument.slice_index not in updated and argument.array.elements:
                        # What is updated in place is an argument twice, in one memory.
                        same = [n for n, other in enumerate(arguments) if other.slice_index == argument.slice_index]
                        counts = sum(stores.counts[number] for number in same if number in stores.counts)
                        assert np.all(counts == 1), f"{planned.name}: {argument.kind} {argument.index}"

        return observe

    compile_module(module, CompileOptions(stage="xla_gpu", record="none"), observers=observer)
