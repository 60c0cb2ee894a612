"""The generated Python of a host program, loaded: a function of arrays.

    run = LoadedProgram(source, functions, dtypes)
    run([x], context)      -> [y]

The globals of the source are the functions that execute its buffer ops, made here; `ral`, which returns the runtime function of a
full name; element types; and `empty` for the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.memory_limit import allowed_memory
from xla_emitters.program.arrays import Extents
from xla_emitters.program.ral_name import RalName
from xla_emitters.runtime.ral.buffer_ops import function_of
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import HOST_PROGRAM, Call, CallOnGarbage, Context, garbage
from xla_emitters.runtime.ral.functions import COPIES, OF_THE_CALL, OUTPUTS, function_named
from xla_emitters.runtime.ral.heat import TIMED, Heat
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.kernels import Kernels
from xla_emitters.runtime.ral.memory import Memory, WatchedCall
from xla_emitters.runtime.ral.native_program import NativeProgram
from xla_emitters.runtime.ral.plans import Owner, Plans
from xla_emitters.runtime.ral.recording import MOST_EVENTS, MOST_SEGMENTS, Recording, Unplanned, elements_of
from xla_emitters.runtime.ral.segment_code import Steps
from xla_emitters.runtime.reference import call_beside
from xla_emitters.runtime.simt.loops import compile_loops

Watch: TypeAlias = Callable[[str, Callable[..., Any]], Callable[..., Any]]
"""(name, function) -> the function that is called instead"""

MOST_STEPS = 4_000
"""Buffers and launches by Python, of all calls, after which a program whose loops are plain (`host/loop_blocks`) is machine code.
So many reads of data by plans have the same effect: each costs as much."""
WITH_EFFECTS = frozenset(
    ("custom-call", "infeed", "outfeed", "recv", "recv-done", "rng", "rng-get-and-update-state", "send", "send-done")
)
"""Ops with results that are not determined by their operands, or with side effects: plans execute them in each call."""


class LimitedCall(Call):
    """A call by Python that raises `Unplanned` after a given number of buffers and launches."""

    __slots__ = ("_most", "steps")

    def __init__(self, context: Context, inputs: Sequence[Array], most: int) -> None:
        super().__init__(context, inputs)
        self._most, self.steps = most, 0

    def alloc(self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "") -> Array:
        self._count()
        return super().alloc(shape, dtype, name)

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        self._count()
        super().launch(name, grid, block, shared_bytes, arguments)

    def _count(self) -> None:
        self.steps += 1
        if self.steps > self._most:
            raise Unplanned("the loops of the program are long")


class LoadedProgram:
    """A host program with a context of its own.

    source     Python that defines `main(ctx, ...)`
    functions  name of a global -> the buffer op that it executes, or the fusion whose loops it runs
    dtypes     name of a global -> HLO's name of the element type that it is
    constants  read by `ral_const`
    kernels    launched by the program; None if it launches none
    donated    indices of the arguments whose memory a run may take for its results
    steps      runs its plans; None: it has none
    watch      called by its `lmhlo.watch` ops: (number, values ...); None: it has none
    by_code    compiles the same program to machine code, for calls without a plan after MOST_STEPS by Python; None: not available
    heat       counts its fusions, and runs the hot ones; None: not used
    """

    def __init__(
        self,
        source: str,
        functions: Mapping[str, BufferOp | FusionOp],
        dtypes: Mapping[str, str],
        constants: Constants,
        kernels: Kernels | None = None,
        donated: frozenset[int] = frozenset(),
        steps: Steps | None = None,
        watch: Callable[..., None] | None = None,
        by_code: Callable[[], NativeProgram | None] | None = None,
        heat: Heat | None = None,
    ) -> None:
        self.source = source
        self._code = compile(source, HOST_PROGRAM, "exec")
        self._dtypes: dict[str, Any] = {name: dtype(wanted).numpy for name, wanted in dtypes.items()}
        self._ops = functions
        self._functions = {name: _function(op, kernels) for name, op in functions.items()}
        self._constants = constants
        self._watch = watch
        self._main = self._loaded(np.empty, self._functions, partial(function_named, constants=constants))
        self._takes_arguments = self._main.__code__.co_argcount > 1
        self.context = Context(kernels, heat, source)
        self.donated = donated
        self._recording: Recording | None = None
        self._by_code, self._code_making = by_code, Lock()
        self.native: NativeProgram | None = None
        self._steps = 0
        self.plans: Plans | None = None
        if steps is not None and isinstance(kernels, HostKernels):
            wait = TIMED if heat is not None else 1
            most_reads = MOST_SEGMENTS if self._may_stop else MOST_EVENTS
            self.plans = Plans(kernels, steps, self._record, donated, wait, most_reads)

    def _loaded(self, empty: Callable[..., Array], functions: Mapping[str, Any], ral: Callable[[str], Any]) -> Any:
        """The source's function `main`, with these globals."""
        scope: dict[str, Any] = {**self._dtypes, **functions, "empty": empty, "ral": ral, "watch": self._watch}
        exec(self._code, scope)
        return scope["main"]

    def repeat(self, inputs: Sequence[Any], own: Owner | None = None) -> list[Array] | None:
        """The results for arguments like those of an earlier call; None: they are to be checked, and the program is to run.

        own  makes those that are overwritten the program's; None: they are
        """
        if self.plans is None or allowed_memory() is not None:
            return None
        found = self.plans.run(inputs, self.context, own)
        if self.plans.slow_reads > MOST_STEPS and self._may_stop:
            self.plans.slow_reads = 0
            self._make_code()
        return found

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for these arguments, which fit the program's parameters. raises DataError, ExecutionError.

        The results may take the memory of donated arguments: the caller must not need these arrays afterwards.
        """
        if (found := self.repeat(inputs)) is not None:
            return found
        # A plan does not check how much memory it takes: a call with a limit of its own is made by the host program.
        plans = self.plans if allowed_memory() is None else None
        try:
            found = plans.record(inputs, self.context, may_stop=self._may_stop) if plans is not None else None
            if found is not None:
                return found
            if self.native is not None:
                return self.native.run(inputs)
            if not self._may_stop:
                return self._run(Call(self.context, inputs, self.donated), self._main)
            call = LimitedCall(self.context, inputs, MOST_STEPS - self._steps)
            try:
                return self._run(call, self._main)
            finally:
                self._steps += call.steps
        except Unplanned:
            self._make_code()
        return self.run(inputs)

    @property
    def _may_stop(self) -> bool:
        """Whether a call by Python may stop and be restarted as machine code: only if no argument was changed."""
        return (self._by_code is not None or self.native is not None) and not self.donated

    def _make_code(self) -> None:
        """Switches calls without a plan to machine code, if it can be made."""
        with self._code_making:
            if self._by_code is not None:
                if (native := self._by_code()) is not None:
                    self.take_native(native)
                self._by_code = None

    def take_native(self, native: NativeProgram) -> None:
        """Switches calls without a plan to this machine code of the same program; Python then runs only recordings."""
        native.context = self.context
        self.native = native
        if self.plans is not None:
            self.plans.limit_reads()

    def run_seen(self, inputs: Sequence[Array], watch: Watch) -> list[Array]:
        """Like `run`, by the host program, with each function that it calls replaced by `watch` of it."""
        functions = {name: watch(name, function) for name, function in self._functions.items()}
        main = self._loaded(np.empty, functions, lambda text: watch(text, function_named(text, self._constants)))
        return self._run(Call(self.context, inputs, self.donated), main)

    def run_on_garbage(self, inputs: Sequence[Array]) -> list[Array]:
        """Like `run`, by the host program, on memory in which nothing is right by chance: NaN, -1, True.

        For checks: memory that was just freed may contain the very numbers that a wrong program forgets to write.
        """
        main = self._loaded(garbage, self._functions, partial(function_named, constants=self._constants))
        return self._run(CallOnGarbage(self.context, inputs, self.donated), main)

    def run_watched(self, inputs: Sequence[Array]) -> tuple[list[Array], Memory]:
        """Like `run`; also returns the memory of the call."""
        call = WatchedCall(self.context, inputs, self.donated)
        return self._run(call, self._main), call.memory()

    def _record(self, recording: Recording) -> list[Array]:
        """Runs the program and records its events. raises like `run`; Unplanned if it may stop and the call cannot be repeated"""
        self._recording = recording
        try:
            return self._run(recording, self._recorded_main)
        finally:
            self._recording = None

    @cached_property
    def _recorded_main(self) -> Any:
        """The program with functions that report to the recorded call."""

        def recording() -> Recording:
            assert self._recording is not None
            return self._recording

        def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
            return recording().empty(shape, dtype)

        def watched(function: Callable[..., Any], op: BufferOp | FusionOp) -> Callable[..., None]:
            outputs, is_pure = 0, False
            if isinstance(op, BufferOp):
                outputs, is_pure = len(op.outputs), opcode_of(op.HLO) not in WITH_EFFECTS
            return lambda *arguments: recording().run(function, arguments, outputs, is_pure=is_pure)

        def ral(text: str) -> Callable[..., Any]:
            function, called = function_named(text, self._constants), RalName.parse(text).call
            if called in OF_THE_CALL:
                return function
            if called in COPIES:

                def copy(ctx: Recording, stream: None, source: Any, target: Any) -> None:
                    function(ctx, stream, elements_of(source), elements_of(target))
                    ctx.copy(source, target)

                return copy
            outputs = OUTPUTS.get(called, 1)

            def run(ctx: Recording, *arguments: Any) -> None:
                ctx.run(function, (ctx, *arguments), outputs)

            return run

        functions = {name: watched(function, self._ops[name]) for name, function in self._functions.items()}
        return self._loaded(empty, functions, ral)

    def _run(self, call: Call, main: Callable[..., Any]) -> list[Array]:
        return call.run_host_program(main, takes_arguments=self._takes_arguments)


def _function(op: BufferOp | FusionOp, kernels: Kernels | None) -> Callable[..., None]:
    """The function that executes an op on buffers, or the loops of a fusion."""
    return compile_loops(op) if isinstance(op, FusionOp) else function_of(op, call_beside(op), kernels)
