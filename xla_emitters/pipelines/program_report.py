"""Explains a program with unknown sizes: what it runs, dearest first; its symbols and their sources, what a run checks, its memory.

    jit_layer for h200: 3 kernels and 4 library calls, 14.1 us
      share     time  what                   how        source
        15%  2.09 us  dot_general.5          call gemm  layer.py:9 in attention
    fusions
      main_kLoop_multiply_0  kLoop  12 ops  f32[b,s,64]
        source  layer.py:12 in attention (9 of 12 instructions), layer.py:11 in scaled (3 of 12 instructions)
    ops outside of kernels
      ENTRY  concatenate.3  s32[2]  cpu  on the host
    symbols
      b     argument 0 (p0) 'x', axis 0; in [1, ∞)
    checked before a run
      argument 0 (p0) 'x' is f32[b,s,32]
    memory at b = 2, s = 16
      69 buffers, at most 32768 bytes of them at once: ...

Source: docs/reference/4 2.1, 7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from xla_emitters.dynamic.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.pipelines.lowerings import Lowerings
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.program_listing import (
    ListedFusion,
    ProgramListing,
    list_fusions,
    list_program,
)
from xla_emitters.pipelines.program_outline import not_in_kernels
from xla_emitters.pipelines.program_passes import ON_TENSORS
from xla_emitters.pipelines.program_steps import ProgramSteps
from xla_emitters.program import Program
from xla_emitters.runtime.memory_history import MemoryHistory
from xla_emitters.support.columns import aligned
from xla_emitters.text.hlo.stack_frames import PythonLines
from xla_emitters.trace import Remark

Deviations = Callable[[Sequence[Any]], Sequence[Any]]
"""Arguments -> how far mixed precision is from the program in its own types."""


def report(program: Program, made: Lowerings, values: Mapping[str, int], deviations: Deviations) -> list[str]:
    """The lines of an explanation after the outline.

    values  symbol -> size, for the memory of a run; without them memory is shown only if all sizes are known
    raises  DataError like `drawn_inputs`, if only some of the values are given
    """
    lines = _described(made)
    lines += ["on the CPU", f"  {made.cpu.name}: {made.cpu.reason}"]
    if values or not program.symbols:
        lines += _memory(program, values)
        lines += _precision(program, made, values, deviations)
    return lines + [str(remark) for remark in _remarks(made)]


def report_of_passes(made: Lowerings) -> list[str]:
    """The part of `report` that needs neither a run nor machine code for this CPU."""
    return [*_described(made), *(str(remark) for remark in _remarks(made))]


def _described(made: Lowerings) -> list[str]:
    return [*_fusions(made), *_others(made), made.sizes.report(), *_donations(made)]


def report_json(program: Program, made: Lowerings, values: Mapping[str, int], deviations: Deviations) -> dict[str, Any]:
    """What only such a program has of the same as plain data: see docs/json.md."""
    guards = made.sizes.guards
    memory = precision = None
    if values or not program.symbols:
        sums, measured = _measured(program, values)
        memory = {**sums, **measured.to_json()}
        if made.options.mixed_precision:
            found = deviations(drawn_inputs(program, values, 0))
            precision = {"to": made.options.mixed_precision, "deviations": list(map(asdict, found))}
    return {
        "symbols": [
            {
                "name": solved.symbol,
                "argument": solved.axis.argument,
                "axis": solved.axis.axis,
                "size": str(guards.parameters[solved.axis.argument].shape[solved.axis.axis]),
            }
            for solved in guards.plan.solved
        ],
        "unresolved": len(made.sizes.unresolved),
        "ops": [asdict(op) for op in _listing(made).ops],
        "fusions": [asdict(fusion) for fusion in _listed_fusions(made)],
        "donated": [{"argument": number, "is_overwritten": number in made.overwritten} for number in made.donated],
        "cpu": {"computed_by": made.cpu.name, "reason": made.cpu.reason},
        "memory": memory,
        "mixed_precision": precision,
        "remarks": [{"pass": r.pass_name, "text": r.text, "place": r.place} for r in _remarks(made)],
        "kernels": list(_explained_kernels(made)),
    }


def _explained_kernels(made: Lowerings) -> Iterator[dict[str, Any]]:
    """The choices for each kernel; nothing for a program with an op that no kernel computes."""
    try:
        lowering = made.lowering
        steps = ProgramSteps(lowering.steps, made.sizes) if lowering.kernels else None
    except Unsupported:
        return
    for kernel in lowering.kernels if steps else ():
        launch = steps.kernel(kernel, "").launch if steps else None
        assert launch is not None
        grid = list(launch.blocks_of_axes)
        blocks = ", ".join(str(extent) if extent is not None else "?" for extent in grid)
        threads = "x".join(map(str, kernel.block))
        yield {
            "name": kernel.name,
            "emitter": [{"text": f"{kernel.schedule} schedule", "name": kernel.schedule, "declined": []}],
            "launch": [{"text": f"({blocks}) blocks of {threads} threads", "grid": grid, "block": list(kernel.block)}],
            "declined": [],
        }


def _remarks(made: Lowerings) -> list[Remark]:
    """The remarks of the passes on tensors, and why fusions were not made; other passes' remarks about buffers are shown by `--remarks`."""
    found, is_on_tensors = list[Remark](), True
    for step in made.passes.steps:
        if is_on_tensors or step.name == DiscFuseOnBufferPass.name:
            found += step.remarks
        is_on_tensors = is_on_tensors and step.stage != "placed"
    return found


def _listing(made: Lowerings) -> ProgramListing:
    """The listing of the last stage on tensors, which has the most information. raises UsageError if no such stage was recorded"""
    stages = [stage for stage in made.stages if stage in ON_TENSORS]
    if not stages:
        help_text = "compile with CompileOptions(record='stages')"
        raise UsageError("no stage was recorded that could be explained", stage="explain", help=help_text)
    return list_program(made.at(stages[-1]))


def _others(made: Lowerings) -> list[str]:
    """The ops on data that neither a fusion nor a library computes, and how many ops compute sizes."""
    listing = _listing(made)
    found = list(listing.ops) if made.fused is None else not_in_kernels(listing, made.fused)
    rows = [(op.computation, op.name, op.type, op.device or "", op.reason) for op in found]
    head = ["ops outside of kernels"] if rows else []
    lines = [f"  {line}" for line in aligned(rows)]
    return [*head, *lines, f"{len(listing.ops)} ops on data; {listing.of_sizes} more compute sizes, on the host"]


def _listed_fusions(made: Lowerings) -> list[ListedFusion]:
    """The fusions of the stage that makes them; none if compilation stopped before it."""
    return [] if made.fused is None else list_fusions(made.fused, PythonLines(made.source))


def _fusions(made: Lowerings) -> list[str]:
    found = _listed_fusions(made)
    kinds = Counter(fusion.kind for fusion in found)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    end = [f"  {len(found)} fusion{'' if len(found) == 1 else 's'}: {counted}"] if found else ["  none"]
    return ["fusions", *(f"  {line}" for fusion in found for line in fusion.lines()), *end]


def _donations(made: Lowerings) -> list[str]:
    """How the program uses each donated argument; empty if there are none."""
    lines = ["donated arguments"] if made.donated else []
    for number in made.donated:
        fate = "written into, or returned" if number in made.overwritten else "freed after its last use"
        lines.append(f"  argument {number} (p{number}): {fate}")
    return lines


def _precision(program: Program, made: Lowerings, values: Mapping[str, int], deviations: Deviations) -> list[str]:
    """The difference between mixed precision and the program in its own types, on random arrays of these sizes."""
    if not made.options.mixed_precision:
        return []
    return [
        f"mixed precision ({made.options.mixed_precision}), against the program in its own types",
        *(f"  {deviation}" for deviation in deviations(drawn_inputs(program, values, 0))),
    ]


def _measured(program: Program, values: Mapping[str, int]) -> tuple[dict[str, Any], MemoryHistory]:
    """The memory of one run at these sizes: bytes of arguments and results, and its buffers."""
    inputs = drawn_inputs(program, values, 0)
    memory: MemoryHistory = program.memory(inputs)
    returned = [event.buffer.bytes for event in memory.events if event.what == "returned"]
    sums = {
        "sizes": dict(values),
        "arguments": sum(array.nbytes for array in inputs),
        "results": sum(returned),
        "buffers": sum(event.what == "made" for event in memory.events),
    }
    return sums, memory


def _memory(program: Program, values: Mapping[str, int]) -> list[str]:
    found, memory = _measured(program, values)
    at = ", ".join(f"{name} = {value}" for name, value in values.items())
    return [
        f"memory{f' at {at}' if at else ''}",
        f"  {found['arguments']} bytes of arguments, {found['results']} of results",
        f"  {found['buffers']} buffers, at most {memory.peak} bytes of them at once:",
        *(f"    {line}" for line in memory.peak_lines()),
        "  bytes that live after each step that makes a buffer",
        *(f"    {line}" for line in memory.lines()),
    ]
