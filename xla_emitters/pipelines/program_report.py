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
from typing import Any, Protocol

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.hlo_text.stack_frames import PythonLines
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CpuBackend
from xla_emitters.pipelines.program_inputs import Described, drawn_inputs
from xla_emitters.pipelines.program_json import kernels_json
from xla_emitters.pipelines.program_kernels import GpuLowering
from xla_emitters.pipelines.program_listing import (
    ListedFusion,
    ProgramListing,
    list_fusions,
    list_program,
    parameter_types,
    result_types,
)
from xla_emitters.pipelines.program_outline import not_in_kernels, outline_of
from xla_emitters.pipelines.program_passes import ON_TENSORS
from xla_emitters.runtime.memory import Memory
from xla_emitters.sizes import Sizes
from xla_emitters.trace import Remark, Trace


class Compiled(Described, Protocol):
    """The part of `DynamicProgram` that this file uses."""

    @property
    def target(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def fused(self) -> ModuleOp | None: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...
    @property
    def stages(self) -> tuple[str, ...]: ...
    @property
    def passes(self) -> Trace: ...
    @property
    def cpu(self) -> CpuBackend: ...
    @property
    def donated(self) -> tuple[int, ...]: ...
    @property
    def overwritten(self) -> tuple[int, ...]: ...
    @property
    def options(self) -> CompileOptions: ...
    def at(self, stage: str) -> ModuleOp: ...
    def deviations(self, inputs: Sequence[Any]) -> Sequence[Any]: ...
    def memory(self, inputs: Sequence[Any]) -> Memory: ...


def report(program: Compiled, values: Mapping[str, int] | None = None) -> str:
    """The whole explanation as text.

    values  symbol -> size, for the memory of a run; without them memory is shown only if all sizes are known
    raises  DataError like `drawn_inputs`, if only some of the values are given
    """
    found = outline_of(program, values)
    lines = [*found.summary(), *_fusions(program), *_others(program), program.sizes.report()]
    lines += _donations(program)
    lines += ["on the CPU", f"  {program.cpu.name}: {program.cpu.reason}"]
    if values or not program.symbols:
        lines += _memory(program, values or {})
        lines += _precision(program, values or {})
    lines += [str(remark) for remark in _remarks(program)]
    return "\n".join(lines)


def signature(program: Compiled) -> str:
    """Name, device, and the types of parameters and results with the program's symbols."""
    parameters = ", ".join(parameter_types(program.sizes))
    results = ", ".join(result_types(program.source, program.sizes))
    return f"{program.name} for {program.target}: ({parameters}) -> ({results})"


def report_json(program: Compiled, values: Mapping[str, int], lowering: Callable[[], GpuLowering]) -> dict[str, Any]:
    """The same as plain data: see docs/json.md.

    lowering  makes the kernels
    """
    guards = program.sizes.guards
    memory = precision = None
    if values or not program.symbols:
        sums, measured = _measured(program, values)
        memory = {**sums, **measured.to_json()}
        if program.options.mixed_precision:
            deviations = program.deviations(drawn_inputs(program, values, 0))
            precision = {
                "to": program.options.mixed_precision,
                "deviations": [asdict(deviation) for deviation in deviations],
            }
    return {
        "name": program.name,
        "target": program.target,
        **outline_of(program, values).to_json(),
        "symbols": [
            {
                "name": solved.symbol,
                "argument": solved.axis.argument,
                "axis": solved.axis.axis,
                "size": str(guards.parameters[solved.axis.argument].shape[solved.axis.axis]),
            }
            for solved in guards.plan.solved
        ],
        "guards": list(guards.lines()),
        "unresolved": len(program.sizes.unresolved),
        "ops": [asdict(op) for op in _listing(program).ops],
        "fusions": [asdict(fusion) for fusion in _listed_fusions(program)],
        "donated": [
            {"argument": number, "is_overwritten": number in program.overwritten} for number in program.donated
        ],
        "cpu": {"computed_by": program.cpu.name, "reason": program.cpu.reason},
        "memory": memory,
        "mixed_precision": precision,
        "remarks": [{"pass": r.pass_name, "text": r.text, "place": r.place} for r in _remarks(program)],
        "kernels": list(_explained_kernels(lowering, program.sizes)),
    }


def _explained_kernels(lowering: Callable[[], GpuLowering], sizes: Sizes) -> Iterator[dict[str, Any]]:
    """The choices for each kernel; nothing for a program with an op that no kernel computes."""
    try:
        made = lowering()
    except Unsupported:
        return
    for kernel, data in zip(made.kernels, kernels_json(made, sizes), strict=True):
        blocks = ", ".join(str(extent) if extent is not None else "?" for extent in data["grid"])
        threads = "x".join(map(str, kernel.block))
        yield {
            "name": kernel.name,
            "emitter": [{"text": f"{kernel.schedule} schedule", "name": kernel.schedule, "declined": []}],
            "launch": [
                {"text": f"({blocks}) blocks of {threads} threads", "grid": data["grid"], "block": data["block"]}
            ],
            "declined": [],
        }


def _remarks(program: Compiled) -> list[Remark]:
    """The remarks of the passes on tensors, and why fusions were not made; other passes' remarks about buffers are shown by `--remarks`."""
    found, is_on_tensors = list[Remark](), True
    for step in program.passes.steps:
        if is_on_tensors or step.name == DiscFuseOnBufferPass.name:
            found += step.remarks
        is_on_tensors = is_on_tensors and step.stage != "placed"
    return found


def _listing(program: Compiled) -> ProgramListing:
    """The listing of the last stage on tensors, which has the most information. raises UsageError if no such stage was recorded"""
    stages = [stage for stage in program.stages if stage in ON_TENSORS]
    if not stages:
        help_text = "compile with CompileOptions(record='stages')"
        raise UsageError("no stage was recorded that could be explained", stage="explain", help=help_text)
    return list_program(program.at(stages[-1]))


def _others(program: Compiled) -> list[str]:
    """The ops on data that neither a fusion nor a library computes, and how many ops compute sizes."""
    listing = _listing(program)
    found = list(listing.ops) if program.fused is None else not_in_kernels(listing, program.fused)
    rows = [(op.computation, op.name, op.type, op.device or "", op.reason) for op in found]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = ["ops outside of kernels"] if rows else []
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False) if width]
        lines.append("  " + "  ".join([*cells, row[4]]).rstrip())
    return [*lines, f"{len(listing.ops)} ops on data; {listing.of_sizes} more compute sizes, on the host"]


def _listed_fusions(program: Compiled) -> list[ListedFusion]:
    """The fusions of the stage that makes them; none if compilation stopped before it."""
    return [] if program.fused is None else list_fusions(program.fused, PythonLines(program.source))


def _fusions(program: Compiled) -> list[str]:
    found = _listed_fusions(program)
    kinds = Counter(fusion.kind for fusion in found)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    end = [f"  {len(found)} fusion{'' if len(found) == 1 else 's'}: {counted}"] if found else ["  none"]
    return ["fusions", *(f"  {line}" for fusion in found for line in fusion.lines()), *end]


def _donations(program: Compiled) -> list[str]:
    """How the program uses each donated argument; empty if there are none."""
    lines = ["donated arguments"] if program.donated else []
    for number in program.donated:
        fate = "written into, or returned" if number in program.overwritten else "freed after its last use"
        lines.append(f"  argument {number} (p{number}): {fate}")
    return lines


def _precision(program: Compiled, values: Mapping[str, int]) -> list[str]:
    """The difference between mixed precision and the program in its own types, on random arrays of these sizes."""
    if not program.options.mixed_precision:
        return []
    deviations = program.deviations(drawn_inputs(program, values, 0))
    return [
        f"mixed precision ({program.options.mixed_precision}), against the program in its own types",
        *(f"  {deviation}" for deviation in deviations),
    ]


def _measured(program: Compiled, values: Mapping[str, int]) -> tuple[dict[str, Any], Memory]:
    """The memory of one run at these sizes: bytes of arguments and results, and its buffers."""
    inputs = drawn_inputs(program, values, 0)
    memory = program.memory(inputs)
    returned = [event.buffer.bytes for event in memory.events if event.what == "returned"]
    sums = {
        "sizes": dict(values),
        "arguments": sum(array.nbytes for array in inputs),
        "results": sum(returned),
        "buffers": sum(event.what == "made" for event in memory.events),
    }
    return sums, memory


def _memory(program: Compiled, values: Mapping[str, int]) -> list[str]:
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
