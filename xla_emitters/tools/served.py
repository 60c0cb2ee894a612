"""What `serve` answers: a text, compiled, priced and checked, as the data of its page; a text that is wrong, as messages with places.

    answer(Asked("gelu.hlo", text, part="first"), how)    {"costs": {...}, "verdict": {"ok": True, ...}, "seconds": 0.3}
    answer(Asked("gelu.hlo", text), how)                  {"index": {...}, "chunks": ["...", ...], "seconds": 0.2}
    answer(Asked("gelu.hlo", "HloModul"), how)            {"errors": [{"message": ..., "line": 1, "column": 1, ...}]}

`Answerer` asks in a process of its own: it has all modules loaded, and forks for each answer, so that an answer may die, or take too long
or too much memory, and the server goes on. The text is compiled and executed by the CPU executor; nothing else of it runs.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import AS_TEXT, XlaEmittersError
from xla_emitters.pipelines.options import CompileOptions, Replacement
from xla_emitters.support.limits import limited_memory
from xla_emitters.tools.failures import Terminated, limit_reached, stop_on_sigterm
from xla_emitters.tools.given import sizes_given
from xla_emitters.tools.workers import NamedWork, run_jobs

if TYPE_CHECKING:
    from xla_emitters.tools.page_index import Judgement

SERVED_KERNELS = 1
"""Kernels of a program with the IR after each pass: the one that is expected to take longest."""
WARM = """HloModule warm
ENTRY main {
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)
}
"""


@dataclass(frozen=True)
class Asked:
    """A text, and what is wanted of it.

    name      of the text in messages
    sizes     of a program, as `--sizes` takes them
    replaced  (stage, IR) of kernels of a module that were edited
    part      "first": its price, and whether its numbers are right before LLVM; "page": the data of its page, of a program
              its stages alone; "judged": the page with each pass, the price, and whether the numbers of each stage are right
    rewrites  whether each rewrite of each pass is to be recorded
    """

    name: str
    text: str
    sizes: str = ""
    replaced: Sequence[tuple[str, str]] = ()
    part: str = "page"
    rewrites: bool = False


def answer(asked: Asked, how: CompileOptions, max_memory: str | None = None) -> dict[str, Any]:
    """The data of the text's page, or what is wrong with it."""
    start = time.perf_counter()
    try:
        with limited_memory(max_memory):
            found = _page(asked, how)
    except XlaEmittersError as error:
        return {"errors": [_error(each) for each in (error, *error.others)]}
    except (RecursionError, MemoryError) as error:
        return {"errors": [_message(limit_reached(error))]}
    except Exception as error:
        return {"errors": [_message(f"a bug of ours: {type(error).__name__}: {error}")]}
    return {**found, "seconds": time.perf_counter() - start}


def _page(asked: Asked, how: CompileOptions) -> dict[str, Any]:
    # Imported here: the process that serves loads none of it.
    from xla_emitters.explore.compile import compile_text
    from xla_emitters.explore.page.data import Chunks
    from xla_emitters.pipelines.compiler import parse_module
    from xla_emitters.text.stablehlo import is_kernel_ir, is_stablehlo, module_for_devices
    from xla_emitters.tools import page_index

    how = replace(how, record="rewrites" if asked.rewrites else "passes")
    is_judged, chunks = asked.part == "judged", Chunks()
    text, name = asked.text if asked.text.endswith("\n") else f"{asked.text}\n", asked.name
    if (for_devices := module_for_devices(text, name)) is not None:
        text, name = for_devices, f"{name}{AS_TEXT}"
    if is_kernel_ir(text):
        if asked.part == "first":
            return {}  # it has no price, and is compared with itself
        index = page_index.kernel_index(text, asked.name, how, chunks, checked=is_judged)
    elif is_stablehlo(text):
        compiled, sizes = partial(compile_text, text, asked.name), sizes_given(asked.sizes or None)
        if asked.part == "first":
            return _first(page_index.program_judgement(compiled, how, sizes))
        judged = is_judged and (bool(sizes) or not compiled(replace(how, stage="stablehlo")).symbols)
        most = SERVED_KERNELS if is_judged or asked.rewrites else 0  # the stages first
        index = page_index.program_index(
            compiled, asked.name, how, sizes if judged else {}, chunks, most=most, checked=judged
        )
    else:
        module = parse_module(text, name)
        how = replace(how, replaced=tuple(Replacement(stage, ir, f"<{stage}>") for stage, ir in asked.replaced))
        if asked.part == "first":
            return _first(page_index.module_judgement(module, how))
        verdict = page_index.module_verdict(module, how, asked.name) if is_judged else None
        index = page_index.module_index(module, how, asked.name, chunks, verdict, priced=is_judged)
        if verdict is not None and not verdict.ok:
            index["culprit"] = _culprit(module, how)
    return {"index": index, "chunks": chunks.texts}


def _first(found: Judgement) -> dict[str, Any]:
    verdict = found.verdict
    if verdict is None:
        return {"costs": found.costs, "verdict": None}
    # Of a module the verdict is on "1 stage", which is this one.
    summary = verdict.summary.replace("ok  1 stage: ", "ok  llvm-dialect: ")
    said = {"ok": verdict.ok, "summary": summary, "details": list(verdict.details)}
    return {"costs": found.costs, "verdict": said}


def _culprit(module: Any, how: CompileOptions) -> dict[str, Any] | None:
    """The pass that made the numbers wrong, in the lines of `bisect`, and the wrong thread."""
    from xla_emitters.explore.bisect.bisect import bisect
    from xla_emitters.tools.bisect_verb import culprit_lines
    from xla_emitters.tools.page_index import CHECKED_BLOCKS

    found = bisect(module, blocks=CHECKED_BLOCKS, **replace(how, verify=True).as_keywords()).culprit
    if found is None:
        return None
    thread = {"block": found.thread.block, "thread": found.thread.thread} if found.thread else None
    return {"kernel": found.kernel, "lines": list(culprit_lines(found)), "thread": thread}


def _error(error: XlaEmittersError) -> dict[str, Any]:
    place = error.place
    # A text that was made of the given one has lines of its own.
    is_given = place is not None and not place.file.endswith(AS_TEXT)
    at = {"file": place.file, "line": place.line, "column": place.column} if place and is_given else {}
    return {"message": error.message, "help": error.help, "details": list(error.details), **at}


def _message(text: str) -> dict[str, Any]:
    return {"message": text, "help": "", "details": []}


class Answerer:
    """Answers in other processes, one at a time.

    how         of every compilation
    seconds     the limit of one answer, of the time that its process takes itself
    max_memory  of one answer, as `--max-memory`
    """

    def __init__(self, how: CompileOptions, seconds: float, max_memory: str | None) -> None:
        self._arguments, self._lock, self._is_over = (how, seconds, max_memory), Lock(), False
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # the server has threads, which a fork would not have
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_answer_all, args=(other, *self._arguments))
        self._process.start()
        other.close()

    def __call__(self, asked: Asked) -> dict[str, Any]:
        """The answer, as `answer`. One that died or was late is an error that says so."""
        with self._lock:
            try:
                self._connection.send(asked)
                return self._connection.recv()
            except (OSError, EOFError):
                if self._is_over:
                    return {"errors": [_message("the server has ended")]}
                self._stop()
                self._start()
                return {"errors": [_message("the compiler's process ended; it was started again")]}

    def end(self) -> None:
        """Ends the process, and the one that answers."""
        self._is_over = True
        self._stop()

    def _stop(self) -> None:
        self._connection.close()
        self._process.join(0.5)  # an idle one ends by itself; SIGTERM in its last steps would be a traceback
        self._process.terminate()
        self._process.join(1)
        self._process.kill()


def _answer_all(connection: Any, how: CompileOptions, seconds: float, max_memory: str | None) -> None:
    """Answers until the other end is closed, or SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, which ends this process
    stop_on_sigterm()
    with suppress(Terminated, BrokenPipeError):
        _answer_each(connection, how, seconds, max_memory)


def _answer_each(connection: Any, how: CompileOptions, seconds: float, max_memory: str | None) -> None:
    answer(Asked("warm.hlo", WARM, part="judged"), how, max_memory)  # loads what the forked processes share
    while True:
        try:
            asked = connection.recv()
        except (EOFError, OSError):
            return
        job = NamedWork(asked.name, partial(answer, asked, how, max_memory))
        (done,) = run_jobs([job], 1, seconds, lambda name, left: name)
        said = f"{done.failure}; it was ended" if done.result is None else ""
        connection.send(done.result or {"errors": [_message(said)]})
