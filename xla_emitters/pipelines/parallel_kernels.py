"""The kernels of a module compiled by several processes: `compile(..., jobs=2)`, `xla-emitters compile -j 2`.

    kernels      0 1 2 3 4 5 6
    this process 0   2   4   6          a child, forked now: 1 3 5

    child  -> what is known of its kernels (`KernelFacts`), the steps of their traces
    parent -> the new names of their symbols      child -> PTX of its kernels as one module          `Shares.ptx`
    parent -> None                                child -> its modules (`dialects/ir_bytes`)         `Shares.modules`

A child knows the module, the plan and all that analyses found, because it is a copy of this process; only what it makes is sent. Passes do
not depend on other kernels, so the answer is the same as one process's. PTX of several modules is put together by
`lowering/toolchain/ptx_parts`; where that cannot be, and at other stages, the modules are sent, and one text is made of all of them
here. A kernel that a child could not compile, or not send, is compiled here, so that an error is raised here too, and the same one.
One process does it all where the system cannot fork, and in a process that may not have children.
"""

from __future__ import annotations

import gc
import pickle
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import context_of_thread
from xla_emitters.errors import XlaEmittersError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import FOR_TOOLS
from xla_emitters.pipelines.recorder import Recorder
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_entry import launch_of, shared_bytes
from xla_emitters.rewrite.merge import Symbols, merge_modules, symbols_of
from xla_emitters.support.late_dataclass import dataclass

# Imported where a child is: most modules are compiled by one process.
if TYPE_CHECKING:
    from xla_emitters.lowering.toolchain.toolchain import PtxCompiler

LEAST_KERNELS = 4
"""For a process more; with fewer, starting it takes longer."""

Names = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class KernelFacts:
    """What is known of a kernel that is compiled, wherever its module is."""

    symbols: Symbols
    launch: LaunchDimensions
    shared_bytes: int


def facts_of(module: ModuleOp) -> KernelFacts:
    return KernelFacts(symbols_of(module), launch_of(module), shared_bytes(module))


class _Child:
    """A process with kernels that it compiled, as the parent sees it."""

    def __init__(self, process: Any, connection: Any) -> None:
        self._process = process
        self.connection = connection
        self.numbers: Sequence[int] = ()
        """Its kernels."""

    def ask(self, request: Names | None) -> None:
        try:
            self.connection.send(request)
        except OSError:  # it died
            self.numbers = ()

    def answer(self) -> Any:
        """None from a child that died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


class Shares:
    """The kernels of all processes."""

    def __init__(
        self,
        work: Sequence[Callable[[], ModuleOp]],
        recorders: Sequence[Recorder],
        options: CompileOptions,
        children: Sequence[_Child],
    ) -> None:
        self._work = work
        self._recorders = recorders
        self._options = options
        self._children = children
        jobs = len(children) + 1
        self._made = {number: work[number]() for number in range(0, len(work), jobs)}
        facts = dict[int, KernelFacts]()
        for child in children:
            rows: list[tuple[int, KernelFacts, bytes]] = child.answer() or []
            for number, of_kernel, steps in rows:
                facts[number] = of_kernel
                recorders[number].trace.steps[:] = pickle.loads(steps)
            child.numbers = tuple(number for number, _, _ in rows)
        self._made |= {number: make() for number, make in enumerate(work) if number not in self._made | facts}
        facts |= {number: facts_of(module) for number, module in self._made.items()}
        self.facts = tuple(facts[number] for number in range(len(work)))

    @property
    def are_parts(self) -> bool:
        """Whether each process may make PTX of its own: there are several, and no option needs the module as a whole."""
        options = self._options
        needs_whole = options.record != "none" or options.verify or options.line_info or options.pipeline is not None
        return options.stage == "ptx" and not needs_whole and any(child.numbers for child in self._children)

    def ptx(self, tool: PtxCompiler, renamed: Names, kernels: Sequence[str]) -> str | None:
        """PTX of all kernels, each process's by itself; None where they are not separate parts, or a child has none.

        tool     for the part of this process
        kernels  their entries, in order
        """
        # Imported here: a process alone does not need it.
        from xla_emitters.lowering.toolchain.ptx_parts import join_ptx

        start, recorder = time.perf_counter(), Recorder("", "none", False, None)
        asked = [child for child in self._children if child.numbers]
        for child in asked:
            child.ask([renamed[number] for number in child.numbers])
        modules, names = list(self._made.values()), [renamed[number] for number in self._made]
        parts = [tool.finish(_part(modules, names, self._options, recorder)), *(child.answer() for child in asked)]
        if None in parts or (ptx := join_ptx(parts, kernels)) is None:
            return None
        seconds = (time.perf_counter() - start) / len(kernels)
        for each in self._recorders:
            each.trace.steps += recorder.trace.steps
            each.tool("ptx", ptx, seconds)
        return ptx

    def modules(self) -> list[ModuleOp]:
        """The modules of all kernels, in order."""
        made = dict(self._made)
        for child in self._children:
            child.ask(None)
        for child in self._children:
            rows: list[tuple[int, bytes]] = child.answer() or []
            from xla_emitters.dialects.ir_bytes import ir_from_bytes

            made |= {number: ir_from_bytes(data) for number, data in rows}
        return [made[number] if number in made else make() for number, make in enumerate(self._work)]


def _part(modules: Sequence[ModuleOp], renamed: Names, options: CompileOptions, recorder: Recorder) -> ModuleOp:
    """Copies of these kernels as one module, ready for the tools."""
    part, _ = merge_modules([module.clone() for module in modules], renamed)
    for row in FOR_TOOLS:
        recorder.run(row.make(options), row.stage, context_of_thread(), part)
    return part


@contextmanager
def compile_kernels(
    work: Sequence[Callable[[], ModuleOp]], recorders: Sequence[Recorder], options: CompileOptions
) -> Generator[Shares]:
    """What each of `work` returns; what they record is in `recorders`, which they write to. The children end with the `with`."""
    jobs = min(options.jobs, len(work) // LEAST_KERNELS)
    children = list[_Child]()
    try:
        if jobs > 1 and sys.platform == "linux":
            import multiprocessing  # imported here: it loads slowly, and one kernel does not need it

            context = multiprocessing.get_context("fork")
            may_fork = not multiprocessing.current_process().daemon
            for number in range(1, jobs if may_fork else 1):
                here, there = context.Pipe()
                share = range(number, len(work), jobs)
                parents = [here, *(child.connection for child in children)]
                given = (there, parents, share, work, recorders, options)
                process = context.Process(target=_serve, args=given, daemon=True)
                process.start()
                there.close()
                children.append(_Child(process, here))
        yield Shares(work, recorders, options, children)
    finally:
        for child in children:
            child.end()


def _serve(
    connection: Any,
    parents: Sequence[Any],
    share: range,
    work: Sequence[Callable[[], ModuleOp]],
    recorders: Sequence[Recorder],
    options: CompileOptions,
) -> None:
    """In a child: compiles its share, and answers until the parent ends it, or has ended itself.

    parents  the parent's ends of connections, which this process has copies of: with them it would not see that the parent has ended
    """
    for copy in parents:
        copy.close()
    gc.freeze()  # what the parent made stays as long as this process
    made = dict[int, ModuleOp]()
    rows = list[tuple[int, KernelFacts, bytes]]()
    for number in share:
        try:
            made[number] = work[number]()
            rows.append((number, facts_of(made[number]), pickle.dumps(recorders[number].trace.steps)))
        except (XlaEmittersError, ValueError, TypeError, AttributeError, pickle.PicklingError):
            made.pop(number, None)  # the other process does it again, and says what is wrong
    connection.send(rows)
    while True:
        try:
            renamed: Names | None = connection.recv()
        except EOFError:
            return
        if renamed is None:
            from xla_emitters.dialects.ir_bytes import ir_to_bytes

            connection.send([(number, ir_to_bytes(module)) for number, module in made.items()])
            continue
        try:
            part = _part(list(made.values()), renamed, options, Recorder("", "none", False, None))
            from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx

            ptx = compile_to_ptx(part, options.device.architecture, options.toolchain)
        except XlaEmittersError:
            ptx = None
        connection.send(ptx)
