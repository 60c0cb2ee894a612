"""`xla-emitters reduce`: shrinks a file while a property persists: a command's success, a wrong number, a crash. The result is verified.

    xla-emitters reduce big.hlo --keep 'xla-emitters compile {} | grep -q atom.global' -o small.hlo
    xla-emitters reduce big.hlo --keep-wrong --blocks 16         while `check` reports wrong numbers at the same stage
    xla-emitters reduce big.hlo --keep-crash                     while compiling fails by the same bug of ours
    xla-emitters reduce layer.mlir --keep-wrong --sizes b=2,s=16 a program: with these values for its sizes, even if reducing renames them

    wrong at the stage flat
    183 -> 2 instructions, 61 candidates, 31.5 s                 on stderr; the text is on stdout, or in the file of -o

The command is run by the shell, with the candidate's path for `{}` or as its last word; exit code 0 means that the candidate still has the
property. It is run twice on the original file and twice on the result: a command whose answers differ is refused.
A try that takes too long counts as a no; the last line says how many did. StableHLO is written in generic form.
Ctrl-C ends the search: the best so far is written, and the exit code is 130; after SIGTERM 143.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import UsageError
from xla_emitters.support.processes import kill_session, within
from xla_emitters.tools.given import read_given, sizes_given
from xla_emitters.tools.input_output import counted, write_file
from xla_emitters.tools.verb_options import add_compilation, add_file, add_seed, add_sizes, module_options, seconds
from xla_emitters.tools.workers import isolated

if TYPE_CHECKING:
    from xla_emitters.explore.reduce.reduce import Keep, Reduced
    from xla_emitters.pipelines.options import CompileOptions

LONGEST_SECONDS = 60.0
"""Default time limit of one try."""
BLOCKS = 16
LINES_SHOWN = 4
"""Lines that are shown of what a command printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_compilation(parser)
    kept = parser.add_mutually_exclusive_group(required=True)
    kept.add_argument(
        "--keep",
        metavar="COMMAND",
        help="a shell command that ends with 0 where the candidate, {}, is still of interest",
    )
    kept.add_argument(
        "--keep-wrong", action="store_true", help="keep that check finds wrong numbers, at the same stage"
    )
    kept.add_argument("--keep-crash", action="store_true", help="keep that compiling fails by the same bug of ours")
    parser.add_argument("-o", "--output", metavar="OUT", default="-", help="where to write; default: standard output")
    add_sizes(parser)
    parser.add_argument(
        "--blocks",
        type=int,
        metavar="N",
        help=f"for --keep-wrong, HLO: run at most N blocks; default {BLOCKS}, 0: all",
    )
    add_seed(parser, "for --keep-wrong: ")
    parser.add_argument("--budget", type=seconds, metavar="SECONDS", help="stop after so long with the best so far")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=LONGEST_SECONDS,
        metavar="SECONDS",
        help=f"a try that takes longer is not of interest; default {LONGEST_SECONDS:g}. Waiting for a busy CPU does not count",
    )
    parser.add_argument("--json", action="store_true", help="what was done, as JSON on stderr: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    """Writes the smallest text that was found, or the smallest so far after Ctrl-C or SIGTERM."""
    from xla_emitters.explore.reduce.reduce import reduce

    if (options.blocks or 0) < 0:
        raise UsageError("--blocks takes a number of 0 or more", stage="reduce")
    text = _verified_text(options)
    best = _Best(text)
    try:
        question, near = _question(options, text)
        found = reduce(text, question, near=near, seconds=options.budget, on_better=best.take)
        found = _confirmed(options, question, found, best)
    except KeyboardInterrupt:
        write_file(options.output, best.texts[-1])
        print(f"interrupted: the best of {counted(len(best.texts) - 1, 'step')} so far is written", file=sys.stderr)
        raise
    write_file(options.output, found.text)
    print(_report(found, question, options.json), file=sys.stderr)
    return 0


def _verified_text(options: argparse.Namespace) -> str:
    """The file's text. raises its parser's errors, with the file's name; UsageError for options of the other kind of text"""
    from xla_emitters.text.hlo import parse_hlo
    from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo

    given = read_given(options)
    if not given.is_program:
        parse_hlo(given.text, given.text_name)
        return given.text
    module = parse_stablehlo(given.text, given.text_name, options.entry)
    if not options.entry:
        return given.text
    options.entry = ""  # the only function of the text that is written
    return print_stablehlo(module)


@dataclass
class _Best:
    """The candidates that were accepted, the best last."""

    first: str

    def __post_init__(self) -> None:
        self.texts = [self.first]

    def take(self, text: str, instructions: int) -> None:
        self.texts.append(text)
        if sys.stderr.isatty():
            print(f"\r{counted(instructions, 'instruction')} left     ", end="", file=sys.stderr, flush=True)


def _report(found: Reduced, question: _Question, as_json: bool) -> str:
    before, after = found.instructions
    sizes = question.sizes_in(found.text)
    if as_json:
        data = {"before": before, "after": after, "candidates": found.asked, "seconds": round(found.seconds, 3)}
        data |= {"finished": found.is_finished, "too_long": question.too_long}
        return json.dumps(data | ({"sizes": sizes} if sizes else {}))
    lines = [
        f"{before} -> {counted(after, 'instruction')}, {counted(found.asked, 'candidate')}, {found.seconds:.1f} s"
        + ("" if found.is_finished else "; the time was over before nothing smaller was left to try")
    ]
    if question.too_long:
        lines.append(
            f"{counted(question.too_long, 'candidate')} took longer than {question.longest:g} s and counted as no: --timeout"
        )
    if sizes:
        lines.append(f"wrong with --sizes {','.join(f'{name}={value}' for name, value in sizes.items())}")
    return "\n".join(lines)


@dataclass
class _Question:
    """The property that candidates must keep.

    ask       returns whether a text has it; None: it took too long, or its process died
    longest   time limit of a try in seconds; `too_long` counts the tries that exceeded it
    sizes_of  for a wrong program: a question whose answer is the sizes
    """

    ask: Callable[[str], Any]
    longest: float
    sizes_of: Callable[[str], Any] = lambda text: None
    too_long: int = 0

    def __call__(self, text: str) -> bool:
        return bool(self._answered(self.ask, text))

    def sizes_in(self, text: str) -> dict[str, int]:
        return self._answered(self.sizes_of, text) or {}

    def _answered(self, ask: Callable[[str], Any], text: str) -> Any:
        began = time.monotonic()
        answer = ask(text)
        self.too_long += answer is None and time.monotonic() - began >= self.longest
        return answer


def _question(options: argparse.Namespace, text: str) -> tuple[_Question, tuple[str, ...]]:
    """The property that candidates must keep, and the instructions to begin with.

    raises UsageError where the original file does not have it, or not every time
    """
    from xla_emitters.explore.reduce.symptoms import Crash, crash_of

    compiling = module_options(options)
    if options.keep is not None:
        question = _Question(partial(is_interesting, options.keep, timeout_seconds=options.timeout), options.timeout)
        first, second = question(text), question(text)
        if question.too_long:
            raise UsageError(
                f"the command takes longer than {options.timeout:g} s for the file itself",
                stage="reduce",
                help="--timeout SECONDS",
            )
        if first != second:
            raise _changes_its_mind()
        if not first:
            raise _never_true(options.keep, text, options.timeout)
        return question, ()
    if options.keep_wrong:
        found: Any = isolated(partial(_wrong_in, options, text, compiling), None)
        wanted = "check finds nothing wrong in it"
        sizes = f" --sizes {options.sizes}" if options.sizes else ""
        way_out = f"xla-emitters check {options.file} --stages passes{sizes}; or other inputs: --seed 1"
    else:
        signature = isolated(partial(crash_of, text, compiling), options.timeout)
        found = Crash(compiling, signature) if signature else None
        wanted, way_out = "compiling it does not fail by a bug of ours", f"xla-emitters compile {options.file}"
    if found is None:
        raise UsageError(f"{options.file} cannot be reduced: {wanted}", stage="reduce", help=way_out)
    print(found, file=sys.stderr)
    near = found.near if options.keep_wrong else ()
    limit = options.timeout
    question = _Question(lambda candidate: isolated(partial(found, candidate), limit), limit)
    if options.keep_wrong:
        question.sizes_of = lambda candidate: isolated(partial(found.sizes_in, candidate), limit)
    return question, near


def _wrong_in(options: argparse.Namespace, text: str, compiling: CompileOptions) -> Any:
    """How the file's numbers are wrong; None where they are right."""
    from xla_emitters.explore.reduce.symptoms import wrong_in

    blocks = BLOCKS if options.blocks is None else options.blocks
    return wrong_in(text, compiling, sizes_given(options.sizes), blocks=blocks, seed=options.seed)


def is_interesting(command: str, text: str, *, timeout_seconds: float) -> bool | None:
    """Whether a shell command exits with 0 for a file with the text. None: it took too long."""
    done = _ran(command, text, timeout_seconds)
    return None if done is None else done.returncode == 0


def _ran(command: str, text: str, timeout_seconds: float) -> subprocess.CompletedProcess[bytes] | None:
    """Runs a shell command for a file with the text: its path replaces `{}` or is the last word. None: it took too long."""
    from xla_emitters.text.stablehlo import is_stablehlo

    with tempfile.TemporaryDirectory(prefix="xla-emitters-reduce-") as folder:
        path = Path(folder) / f"candidate.{'mlir' if is_stablehlo(text) else 'hlo'}"
        path.write_text(text, "utf-8")
        quoted = shlex.quote(str(path))
        whole = command.replace("{}", quoted) if "{}" in command else f"{command} {quoted}"
        pipe, said = subprocess.PIPE, list[tuple[bytes, bytes]]()
        with subprocess.Popen(
            whole, shell=True, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:

            def has_ended(seconds: float) -> bool:
                with suppress(subprocess.TimeoutExpired):
                    said.append(process.communicate(timeout=seconds))
                return bool(said)

            try:
                within(timeout_seconds, process.pid, has_ended)
            finally:
                if not said:
                    kill_session(process)
            return subprocess.CompletedProcess(whole, process.returncode, *said[0]) if said else None


def _never_true(command: str, text: str, timeout_seconds: float) -> UsageError:
    """Of a command that does not end with 0 for the file itself: what it ended with, and the end of what it printed."""
    done = _ran(command, text, timeout_seconds)
    printed = b"" if done is None else done.stderr or done.stdout
    said = printed.decode(errors="replace").strip().splitlines()[-LINES_SHOWN:]
    return UsageError(
        "what is to be kept is not true of the file as it is",
        stage="reduce",
        details=(f"the command ended with {done.returncode}{':' if said else ''}", *said) if done else (),
        help="the command must end with 0 for the file itself",
    )


def _confirmed(options: argparse.Namespace, keep: Keep, found: Reduced, best: _Best) -> Reduced:
    """The result, if it has the property a second time; raises UsageError for a command whose answers differ."""
    if len(best.texts) == 1 or keep(found.text):
        return found
    for number, text in enumerate(reversed(best.texts[:-1]), 1):
        if keep(text) and keep(text):
            write_file(options.output, text)
            raise _changes_its_mind(
                f"the text {counted(number, 'step')} before the smallest was yes twice, and is written"
            )
    raise _changes_its_mind()


def _changes_its_mind(*details: str) -> UsageError:
    return UsageError(
        "the command does not always say the same of one file",
        stage="reduce",
        details=details,
        help="make it deterministic: fixed seeds, no time limits, several runs inside the command",
    )
