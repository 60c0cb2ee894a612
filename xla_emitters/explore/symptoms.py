"""The property that a reduction keeps: wrong numbers at a stage, or one crash of ours. Each is tested in a process that may crash.

wrong = wrong_in(text, options)            wrong at the stage flat    where `bisect` finds the first wrong pass
wrong(smaller)                             True                       still wrong there
crash_of(text, options)                    "KeyError in lower_tensors.py:_stored"

Wrong numbers of programs in StableHLO are in `program_symptoms`.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from xla_emitters.errors import InternalError, XlaEmittersError
from xla_emitters.explore.bisect import bisect
from xla_emitters.explore.check import check
from xla_emitters.explore.programs import compile_text
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.stablehlo_text import is_stablehlo

PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Wrong:
    """Numbers are wrong.

    stage   the first stage that `check` executes and finds wrong, or "passes"
    blocks  number of blocks of each kernel that are run; 0: all
    seed    of the inputs, which are drawn anew for every text
    near    names of the HLO instructions that were found to be wrong: where to look first
    """

    options: CompileOptions
    stage: str
    blocks: int = 0
    seed: int = 0
    near: tuple[str, ...] = ()

    def __call__(self, text: str) -> bool:
        """Whether `text` is wrong in this way; False for a text that cannot be compiled or run."""
        try:
            verdict = check(
                text,
                target=self.options.target,
                hero_rules=self.options.hero_rules,
                triton=self.options.triton,
                pipeline=self.options.pipeline,
                pass_options=self.options.pass_options,
                tune=self.options.tune,
                stages=self.stage,
                blocks=self.blocks,
                seed=self.seed,
                verify=False,
            )
        except Exception:
            # A crash, for example: that is another bug than the one looked for.
            return False
        return not verdict.ok

    def __str__(self) -> str:
        return "wrong after single passes" if self.stage == "passes" else f"wrong at the stage {self.stage}"


def wrong_in(text: str, options: CompileOptions, blocks: int = 0, seed: int = 0) -> Wrong | None:
    """How a module is wrong; None if it is not. raises what `bisect` raises."""
    search = bisect(
        text,
        target=options.target,
        hero_rules=options.hero_rules,
        triton=options.triton,
        pipeline=options.pipeline,
        pass_options=options.pass_options,
        tune=options.tune,
        blocks=blocks,
        seed=seed,
    )
    culprit = search.culprit
    if culprit is None:
        return None
    wrong = Wrong(options, culprit.stage, blocks, seed, culprit.blame.instructions)
    if culprit.kind == "crash":
        # IR that does not verify may still run, and be wrong.
        wrong = replace(wrong, stage="all")
        return wrong if wrong(text) else None
    # An error that a later pass hides, or one of a pass that only the tools need.
    if culprit.stage in EXECUTABLE_STAGES and wrong(text):
        return wrong
    return replace(wrong, stage="passes")


@dataclass(frozen=True)
class Crash:
    """Compiling fails by one particular bug of ours."""

    options: CompileOptions
    signature: str

    def __call__(self, text: str) -> bool:
        return crash_of(text, self.options) == self.signature

    def __str__(self) -> str:
        return self.signature


def crash_of(text: str, options: CompileOptions) -> str | None:
    """The signature of the bug of ours by which compiling and verifying a text fails; None if it does not: see `signature_of`."""
    verified = replace(options, verify=True)
    if is_stablehlo(text):
        return crash_in(lambda: compile_text(text, "program.mlir", verified).code)
    return crash_in(lambda: compile_module(read_module(text), verified))


def crash_in(work: Callable[[], object]) -> str | None:
    """The signature of the bug that calling `work` shows; None for errors that are meant for users."""
    try:
        work()
    except InternalError as error:
        return signature_of(error)
    except (XlaEmittersError, OSError, RecursionError, MemoryError):
        return None
    except Exception as error:
        return signature_of(error)
    return None


_PARTICULAR = re.compile(r"%[\w.\-]+|'[^']*'|\d+|\[[^]]*\]|<[^>]*>")


def signature_of(error: BaseException) -> str:
    """Identifies a crash: its type, our innermost function, and its message without names and numbers.

    For IR that does not verify: the pass and the message.
    """
    cause = error.__cause__ if isinstance(error, InternalError) and error.__cause__ is not None else error
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if frame.filename.startswith(PACKAGE)]
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    message = error.message if isinstance(error, InternalError) else str(error)
    return f"{type(cause).__name__}{place}: {_PARTICULAR.sub('_', message.splitlines()[0] if message else '')}"
