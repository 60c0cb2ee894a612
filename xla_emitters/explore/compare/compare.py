"""A module's kernels against those that the real XLA:GPU makes of it, pass by pass and in machine code, without a GPU.

    FILE.hlo -XLA-> *.mlir-passes.log, *.ptx, thunk_sequence.txt ─┐
    FILE.hlo -ours, each pass observed-> IR, PTX ─────────────────┴─ passes aligned by name, states compared, PTX through one ptxas

`pass_rows.py` aligns the passes; `ir_difference.py` has the verdicts. Both PTX texts are assembled by one ptxas
for the architecture that XLA's text names, and counted alike (`pricing/sass.py`).
Not compared: kernels that only one side has, and XLA's own choice of kernels, which it made before.
Source: XLA's dumps for `--xla_dump_to` and `--xla_dump_emitter_re`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.errors import DataError
from xla_emitters.explore.compare.pass_rows import ComparedPass, compare_passes
from xla_emitters.explore.compare.xla_log import XlaLog, parse_log
from xla_emitters.explore.optimize import FAILED, ask_xla
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.kept_programs import read_text
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.pricing.price import MachineCode, machine_code_of
from xla_emitters.pricing.sass import executed
from xla_emitters.program import Kernel, LaunchDimensions
from xla_emitters.rewrite.kernel_entry import sanitize


@dataclass(frozen=True)
class XlaKernel:
    """What XLA wrote of one kernel.

    name   of the instruction, as a function's name
    log    its passes; None where the log holds none, as of a kernel that XLA's emitters do not make
    ptx    the text of the module that it is in; "" where there is none
    """

    name: str
    launch: LaunchDimensions
    shared_bytes: int
    log: XlaLog | None
    ptx: str


OurKernel = tuple[Kernel, Sequence[tuple[str, ModuleOp]]]
"""A kernel that was made here; its passes by name, "emit" first, each with the IR after it."""


@dataclass(frozen=True)
class KernelFigures:
    """Machine code of one kernel on one side.

    instructions           executed by a thread, an upper bound; `unknown_loops` loops counted once
    loads, stores, atomics  of global memory, of one thread: bytes -> how many
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    instructions: int
    unknown_loops: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    loads: dict[int, int]
    stores: dict[int, int]
    atomics: dict[int, int]
    ptx_instructions: int
    ptx: str


@dataclass(frozen=True)
class KernelComparison:
    """passes  in order; none where XLA's kernel is not of its emitters"""

    name: str
    passes: tuple[ComparedPass, ...]
    ours: KernelFigures
    xla: KernelFigures

    def to_json(self) -> dict[str, Any]:
        sides = {"ours": asdict(self.ours), "xla": asdict(self.xla)}
        return {"name": self.name, "passes": [row.to_json() for row in self.passes], **sides}


@dataclass(frozen=True)
class Comparison:
    """name       of the module
    kernels    that both have, by name
    only_ours, only_xla   names of kernels that one side alone has: a fusion that is split here, a sort, a copy
    """

    name: str
    target: str
    kernels: tuple[KernelComparison, ...]
    only_ours: tuple[str, ...]
    only_xla: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        return {**vars(self), "kernels": [kernel.to_json() for kernel in self.kernels]}


def compare(source: str | Path, options: CompileOptions | None = None) -> Comparison:
    """Both ways for a module that XLA optimized, or a fusion.

    raises  what `compile` raises; DataError with XLA's message or the check that failed in it; ToolError without the extra [xla] or [ptxas]
    """
    options = replace(options or CompileOptions(), stage="ptx", record="none")
    text, name = read_text(source)
    module = read_module(source)
    return compare_kernels(module, options, kernels_of_xla(text, name, options))


def kernels_of_xla(text: str, name: str, options: CompileOptions) -> tuple[XlaKernel, ...]:
    """What XLA makes of a module's text for the target. raises as `compare`; needs no ptxas"""
    with tempfile.TemporaryDirectory(prefix="xla-emitters-") as directory:
        request = {"work": "compile", "text": text, "target": options.target, "directory": directory}
        try:
            ask_xla(request, text, name, options.toolchain)
        except DataError as error:
            if error.message.startswith(FAILED):
                error.help = (
                    error.help or "XLA's optimizer is not run: compare what `xla-emitters optimize` makes of the file"
                )
            raise
        return read_dump(Path(directory))


def read_dump(directory: Path) -> tuple[XlaKernel, ...]:
    """The kernels among XLA's dumps of one module, in the order of their launches."""
    logs = {
        sanitize(path.name.removesuffix(".mlir-passes.log").split(".", 2)[2]): path.read_text("utf-8")
        for path in directory.glob("*.mlir-passes.log")
    }
    texts = [path.read_text("utf-8") for path in sorted(directory.glob("*.ptx"))]
    ptx = {entry: text for text in texts for entry in _entries(text)}
    thunks = next((path.read_text("utf-8") for path in directory.glob("*thunk_sequence.txt")), "")
    found: dict[str, XlaKernel] = {}
    for thunk in _THUNK.finditer(thunks):
        name, sizes = sanitize(thunk[1]), [int(size) for size in thunk.groups()[1:]]
        log = parse_log(logs[name], name) if name in logs else None
        x, y, z, in_x, in_y, in_z, shared_bytes = sizes
        launch = LaunchDimensions((x, y, z), (in_x, in_y, in_z))
        found[name] = XlaKernel(name, launch, shared_bytes, log, ptx.get(name, ""))
    return tuple(found.values())


_THUNK = re.compile(
    r"(\S+) grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\]\s+shared_memory: (\d+)", re.MULTILINE
)


def _entries(ptx: str) -> list[str]:
    return re.findall(r"^\s*(?:\.visible |\.weak )?\.entry ([\w$]+)", ptx, re.MULTILINE)


def compare_kernels(module: ModuleOp, options: CompileOptions, theirs: Sequence[XlaKernel]) -> Comparison:
    """Our kernels of a module that was read against XLA's of the same text: as XLA chooses them, unless the options say otherwise."""
    options = options if options.tune else replace(options, tune="xla")
    ours = {made[0].name: made for made in compiled(module, options)}
    by_name = {kernel.name: kernel for kernel in theirs if kernel.ptx}
    both = same_kernels(ours, by_name)

    @cache
    def code_of(ptx: str, architecture: str) -> MachineCode:
        """Of a text with several kernels once."""
        return machine_code_of(ptx, architecture, options.toolchain)

    kernels = tuple(_compared(ours[name], by_name[of_xla], code_of) for name, of_xla in both.items())
    only_ours = tuple(name for name in ours if name not in both)
    only_xla = tuple(name for name in by_name if name not in both.values()) if options.fusion is None else ()
    named = module.sym_name.data if module.sym_name else next(iter(ours), "module")
    return Comparison(named, options.device.name, kernels, only_ours, only_xla)


def same_kernels(ours: Iterable[str], theirs: Iterable[str]) -> dict[str, str]:
    """Our name of a kernel -> XLA's, in the order of `ours`; without those that only one side has.

    XLA makes names of instructions unique in the whole module: the fusion `add` is `add.1` if the computation that it calls has an `add`.
    """
    names, free = list(ours), list(theirs)
    found = {name: name for name in names if name in free}
    free = [name for name in free if name not in found]
    for name in names:
        renamed = next((other for other in free if re.fullmatch(rf"{re.escape(name)}_\d+", other)), None)
        if name not in found and renamed is not None:
            found[name] = renamed
            free.remove(renamed)
    return {name: found[name] for name in names if name in found}


def compiled(module: ModuleOp, options: CompileOptions) -> list[OurKernel]:
    """Our kernels, with the IR that each pass left."""
    kept: dict[str, list[tuple[str, ModuleOp]]] = {}

    def keep(planned: PlannedKernel) -> Observer:
        passes = kept.setdefault(sanitize(planned.name), [])
        return lambda name, stage, kernel: passes.append((name, kernel.clone()))

    program = compile_module(module, replace(options, stage="ptx", record="none"), observers=keep)
    ends = {"xla-convert-ids-to-calls"}
    return [
        (kernel, [(name, ir) for name, ir in kept.get(kernel.name, []) if name not in ends])
        for kernel in program.kernels
    ]


# ---- machine code -----------------------------------------------------------------------------------------------------------------------


def _compared(ours: OurKernel, theirs: XlaKernel, code_of: Callable[[str, str], MachineCode]) -> KernelComparison:
    (own, passes), target = ours, re.search(r"^\.target (\w+)", theirs.ptx, re.MULTILINE)
    assert target is not None
    return KernelComparison(
        own.name,
        compare_passes(passes, theirs.log) if theirs.log else (),
        _figures(own, 0, code_of(own.ptx, target[1])),
        _figures(theirs, theirs.shared_bytes, code_of(theirs.ptx, target[1])),
    )


def _figures(kernel: Kernel | XlaKernel, dynamic_bytes: int, code: MachineCode) -> KernelFigures:
    name = kernel.name
    resources, counted, body = code.resources[name], executed(code.sass[name]), kernel_ptx(kernel.ptx, name)
    return KernelFigures(
        grid=kernel.launch.grid,
        block=kernel.launch.block,
        registers=resources.registers,
        instructions=counted.instructions,
        unknown_loops=counted.unknown_loops,
        spill_bytes=resources.spill_bytes,
        stack_bytes=resources.stack_bytes,
        shared_bytes=resources.shared_bytes + dynamic_bytes,
        loads=dict(counted.loads),
        stores=dict(counted.stores),
        atomics=dict(counted.atomics),
        ptx_instructions=sum(1 for line in body.splitlines() if _is_instruction(line)),
        ptx=body,
    )


def kernel_ptx(ptx: str, name: str) -> str:
    """The lines of one entry, from `.entry` to its closing brace."""
    found = re.search(rf"^[^\n]*\.entry {re.escape(name)}\b.*?^\}}", ptx, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def _is_instruction(line: str) -> bool:
    line = line.strip()
    return line.endswith(";") and not line.startswith((".", "//"))
