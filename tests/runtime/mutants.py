"""Finds what the tests do not see: seeded changes of the compiler's source, each against the tests nearest to it.

    make mutants                                                  a sample of 300, seed 0, of all rooms
    PYTHONPATH=tests python -m runtime.mutants --count 20 --seed 3 xla_emitters/rewrite
    PYTHONPATH=tests python -m runtime.mutants --list xla_emitters/rewrite/folders.py

    xla_emitters/rewrite/folders.py:254  operand order  arith.SubiOp: lambda a, b: a - b, -> ... b - a,
        killed by tests/unit/rewrite/test_folders.py (1.9 s)

`source_mutants.py` makes the mutants. Each is run in a copy of the tree, in a process of its own that is forked from one that has
pytest, xDSL and NumPy loaded but nothing of `xla_emitters`. Tests run in order of their distance, up to the first that fails:

    0  those with the file's stem: test_<stem>.py, <stem>.mlir, <stem>_*.mlir, <stem>/*.hlo
    1  those that import the file, and those of the table `ELSEWHERE`
    2  those with the stem of a file that imports it
    3  the room's
    4  `GENERAL`: every pass on small programs, whole pipelines, every emitter

A test that computes for `--longest` seconds, a process that dies, and one that is silent for `SILENT_SECONDS` count as killed.
At the end the files of the tests that killed run once without a mutant: a test that fails there proves nothing.

A mutant that changes nothing is listed in `mutants_equivalent.toml` with the reason; it is run with `--check-listed` only.
Ends with 1 when one survives that is not listed, or one that is listed is killed; with 2 when a test fails without a mutant.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import gc
import hashlib
import importlib.util
import os
import py_compile
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from runtime.source_mutants import KINDS, Identity, Mutant, is_python, mutants_of

ROOMS = ("algebra", "graph", "rewrite", "emitters", "transforms", "lowering")
GENERAL = (
    "tests/runtime/test_passes_keep_meaning.py",
    "tests/filecheck/pipelines",
    "tests/unit/pipelines/test_compiler.py",
    "tests/filecheck/emitters",
)
ELSEWHERE = {"narrow_floats": "tests/runtime/test_conversions.py"}
"""Stems that are tested by a file that neither has the stem nor imports them."""
TREE = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "benchmarks", "node_modules", "*.egg-info")

SILENT_SECONDS = 180
MEMORY_BYTES = 8 << 30


@dataclass(frozen=True)
class Outcome:
    """The result for a mutant: the test that failed and why it was run, or no test."""

    mutant: Mutant
    killer: str | None
    reason: str
    seconds: float


# What is run -----------------------------------------------------------------------------------------------------------


def sources(tree: Path, paths: Sequence[str]) -> list[str]:
    """The files to change, relative to the tree: those of `ROOMS`, or those under `paths`."""
    package = tree / "xla_emitters"
    if not paths:
        places = [package / room for room in ROOMS]
    else:
        places = [path if (path := tree / name).exists() else package / name for name in paths]
    for place in places:
        if not place.exists():
            raise SystemExit(f"error: {place} does not exist")
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return [str(file.relative_to(tree)) for file in files]


def sample(tree: Path, files: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """`count` mutants drawn from those of all `files`, or all of them, in the order of the files.

    Each mutant gets a number computed from the seed and its identity, and the smallest are taken: moving code does not change the sample,
    and changing some code changes little else.
    """
    numbered = list[tuple[str, Mutant]]()
    for file in files:
        found = mutants_of(file, (tree / file).read_bytes())
        seen = Counter[Identity]()
        for mutant in found:
            key = f"{seed} {mutant.identity} {mutant.text} {seen[mutant.identity]}"
            seen[mutant.identity] += 1
            numbered.append((hashlib.sha256(key.encode()).hexdigest(), mutant))
    numbered.sort(key=lambda pair: pair[0])
    chosen = list[Mutant]()
    for _, mutant in numbered:
        if len(chosen) == count:
            break
        if is_python(mutant, (tree / mutant.file).read_bytes()):
            chosen.append(mutant)
    return sorted(chosen, key=lambda m: (files.index(m.file), m.start, m.end, m.text))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The names of the package's modules that a file imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in found if name.startswith("xla_emitters"))


def tests_of_stem(tree: Path, file: Path) -> Iterator[Path]:
    """Files and folders of tests with the stem of a file of the package, those of the file's room first."""
    tests, stem = tree / "tests", file.stem
    found = [
        *tests.rglob(f"test_{stem}.py"),
        *tests.glob(f"filecheck/**/{stem}.*"),
        *tests.glob(f"filecheck/**/{stem}_*"),
    ]
    found += [path for path in tests.glob(f"filecheck/**/{stem}") if path.is_dir()]
    room = file.parent.relative_to(tree / "xla_emitters")
    own = [tests / kind / room for kind in ("unit", "filecheck")]
    yield from sorted(found, key=lambda path: (path.parent not in own, path))


def nearest_tests(tree: Path, file: str) -> list[list[str]]:
    """Test files and folders by distance, each of them once; see the head of the file."""
    path = tree / file
    module = ".".join(Path(file).with_suffix("").parts)
    room = path.parent.relative_to(tree / "xla_emitters")
    package, tests = tree / "xla_emitters", tree / "tests"
    elsewhere = tree / ELSEWHERE[path.stem] if path.stem in ELSEWHERE else None
    by_distance = [
        list(tests_of_stem(tree, path)),
        [test for test in sorted(tests.rglob("test_*.py")) if module in imports_of(test) or test == elsewhere],
        [
            test
            for user in sorted(package.rglob("*.py"))
            if module in imports_of(user)
            for test in tests_of_stem(tree, user)
        ],
        [place for kind in ("unit", "filecheck") if (place := tests / kind / room).exists()],
        [place for name in GENERAL if (place := tree / name).exists()],
    ]
    seen = set[Path]()
    kept = list[list[str]]()
    for places in by_distance:
        new = list[str]()
        for place in places:
            if place not in seen and not seen & set(place.parents):
                new.append(str(place.relative_to(tree)))
                seen.add(place)
        kept.append(new)
    return kept


# In the process of a mutant ------------------------------------------------------------------------------------------------


class Watch:
    """A plugin of pytest that writes a line for each test that starts, and for the first that fails."""

    def __init__(self, pipe: int, longest: float) -> None:
        self.pipe, self.longest = pipe, longest

    def say(self, word: str, name: str) -> None:
        os.write(self.pipe, f"{word} {' '.join(name.split())}\n".encode())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, self.longest)
        self.say("test", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.say("killed", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say("killed", report.nodeid)


def run_tests(copy: Copy, by_distance: Sequence[Sequence[str]], pipe: int, stop: bool) -> None:
    """Runs tests in this process, which was forked for it, and ends it. `pipe` gets what `Watch` writes, and "survived".

    stop  at the first test that fails
    """
    tree = copy.tree
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    out = os.open(copy.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.chdir(tree)
    sys.path[:] = [str(tree), str(tree / "tests"), *(path for path in sys.path[1:] if Path(path) != TREE / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.partition(".")[0] == "runtime"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    watch = Watch(pipe, copy.longest)
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=short", f"--rootdir={tree}"]
    if stop:
        options.append("-x")
    if "hypothesis" in sys.modules:
        options.append("--hypothesis-seed=0")
    for distance, places in enumerate(by_distance):
        if not places:
            continue
        watch.say("distance", str(distance))
        watch.say("test", places[0])
        signal.setitimer(signal.ITIMER_PROF, copy.longest)
        code = int(pytest.main([*options, *places], plugins=[watch]))
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            watch.say("ended", str(code))
            os._exit(0)
    watch.say("survived", "")
    os._exit(0)


# In the process that forks the others ------------------------------------------------------------------------------------


@dataclass
class Copy:
    """A copy of the tree with its code compiled, in which one mutant at a time is run."""

    tree: Path
    longest: float
    pid: int = 0
    pipe: int = -1
    said: bytes = b""
    began: float = 0.0
    last: float = 0.0
    mutant: Mutant | None = None
    kept: dict[Path, bytes] = field(default_factory=dict[Path, bytes])

    @property
    def log(self) -> Path:
        return self.tree.with_suffix(".log")

    def start(self, mutant: Mutant | None, by_distance: Sequence[Sequence[str]], stop: bool = True) -> None:
        if mutant is not None:
            path = self.tree / mutant.file
            compiled = Path(importlib.util.cache_from_source(str(path)))
            self.kept = {path: path.read_bytes(), compiled: compiled.read_bytes()}
            compiled.unlink()
            path.write_bytes(mutant.applied(self.kept[path]))
        self.mutant, self.said = mutant, b""
        self.began = self.last = time.monotonic()
        self.pipe, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                run_tests(self, by_distance, writer, stop)
            finally:
                os._exit(70)
        os.close(writer)

    def read(self) -> bool:
        """Takes what the process has written; False once it has ended."""
        data = os.read(self.pipe, 1 << 16)
        self.said += data
        self.last = time.monotonic()
        return bool(data)

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self.last

    def kill(self) -> None:
        """Kills the process, and with its group the tools that it has started."""
        os.killpg(self.pid, signal.SIGKILL)

    def finish(self) -> tuple[str | None, str]:
        """Ends the process and puts the source back; the test that failed, if any, and why it was run or what ended it."""
        silent = self.silent_seconds > SILENT_SECONDS
        if silent:
            self.kill()
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        for path, content in self.kept.items():
            path.write_bytes(content)
        self.kept = {}
        lines = [line.partition(" ")[::2] for line in self.said.decode().splitlines()]
        said = {word: rest for word, rest in lines}  # the last line of each kind
        if "survived" in said:
            return None, ""
        reason = f"distance {said['distance']}"
        if killers := [name for word, name in lines if word == "killed"]:
            return killers[0], reason
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            reason += ", too long" if silent or number == signal.SIGPROF else f", signal {number}"
        elif "ended" in said:
            reason += f", pytest ended with {said['ended']}"
        else:
            raise SystemExit(f"error: no test could run for {self.mutant}:\n{self.log.read_text()[-4000:]}")
        return said["test"], reason


def copied(tree: Path, place: Path, longest: float) -> Copy:
    shutil.copytree(tree, place, ignore=NOT_COPIED, symlinks=True)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for folder in ("xla_emitters", "tests"):
        compileall.compile_dir(place / folder, quiet=2, invalidation_mode=unchecked)
    return Copy(place, longest)


def load_what_tests_need(tree: Path) -> None:
    """Imports here, once, what the package and its tests import from elsewhere; what is not installed is left out."""
    names = set[str]()
    for path in (*(tree / "xla_emitters").rglob("*.py"), *(tree / "tests").rglob("*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    for name in sorted(names):
        top = name.partition(".")[0]
        if (
            top != "xla_emitters"
            and not list((tree / "tests").rglob(f"{top}.py"))
            and not (tree / "tests" / top).exists()
        ):
            try:
                importlib.import_module(name)
            except ImportError:
                continue
    gc.collect()
    gc.freeze()


def examine(copies: Sequence[Copy], work: Sequence[tuple[Mutant, list[list[str]]]]) -> Iterator[Outcome]:
    """Runs every mutant against its tests, one in each copy at a time."""
    waiting, selector, free = list(reversed(work)), selectors.DefaultSelector(), list(copies)
    busy = list[Copy]()
    try:
        while waiting or busy:
            while waiting and free:
                copy = free.pop()
                copy.start(*waiting.pop())
                selector.register(copy.pipe, selectors.EVENT_READ)
                busy.append(copy)
            ready = {key.fd for key, _ in selector.select(timeout=5)}
            for copy in tuple(busy):
                if copy.read() if copy.pipe in ready else copy.silent_seconds <= SILENT_SECONDS:
                    continue
                selector.unregister(copy.pipe)
                busy.remove(copy)
                killer, reason = copy.finish()
                assert copy.mutant is not None
                yield Outcome(copy.mutant, killer, reason, time.monotonic() - copy.began)
                free.append(copy)
    finally:
        for copy in busy:
            copy.kill()


def wrong_without_mutant(copy: Copy, killers: set[str]) -> list[str]:
    """Which of the tests fail on the tree as it is. Their files are run whole."""
    copy.start(None, [sorted({killer.partition("::")[0] for killer in killers})], stop=False)
    while copy.read():
        pass
    copy.finish()
    failed = {line.partition(" ")[2] for line in copy.said.decode().splitlines() if line.startswith("killed ")}
    return sorted(killers & failed)


# What is printed ------------------------------------------------------------------------------------------------------------


def equivalents(path: Path = EQUIVALENT) -> dict[Identity, str]:
    """Mutants without effect, by identity, with the reason."""
    rows = tomllib.loads(path.read_text())["equivalent"]
    return {(row["file"], row["function"], row["before"], row["after"]): row["why"] for row in rows}


def place_and_change(mutant: Mutant) -> str:
    """The mutant in one line of moderate length: its text from a little before the first difference."""
    before, after = mutant.before, mutant.after
    same = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    start = before.rfind(" ", 0, max(0, same - 24)) + 1
    shown = [text[start : start + 72] + ("..." if len(text) > start + 72 else "") for text in (before, after)]
    place = f"{mutant.file}:{mutant.line}  {mutant.kind}"
    return f"{place}  {'... ' if start else ''}{shown[0]}  ->  {shown[1]}"


def row(outcome: Outcome, listed: bool) -> str:
    how = f"killed by {outcome.killer} ({outcome.reason}, " if outcome.killer else "SURVIVED ("
    known = "listed as equivalent, " if listed else ""
    return f"{place_and_change(outcome.mutant)}\n    {known}{how}{outcome.seconds:.1f} s)"


def table(outcomes: Sequence[Outcome], listed: set[Identity]) -> Iterator[str]:
    """Killed of all, by room and kind; those that are listed as equivalent are left out."""
    killed, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    rooms = list(dict.fromkeys(Path(outcome.mutant.file).parent.name for outcome in outcomes))
    for outcome in outcomes:
        if outcome.mutant.identity in listed:
            continue
        room, kind = Path(outcome.mutant.file).parent.name, outcome.mutant.kind
        for key in ((room, kind), (room, "all"), ("all", kind), ("all", "all")):
            total[key] += 1
            killed[key] += outcome.killer is not None
    columns = (*KINDS, "all")
    yield f"{'killed of':<12}" + "".join(f"{kind:>19}" for kind in columns)
    for room in (*rooms, "all"):
        yield f"{room:<12}" + "".join(f"{f'{killed[room, kind]} of {total[room, kind]}':>19}" for kind in columns)


def verdict(outcomes: Sequence[Outcome], listed: set[Identity], wrong: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code, and the last lines.

    wrong  tests that fail without a mutant
    """
    survived = [outcome for outcome in outcomes if outcome.killer is None]
    unlisted = [outcome for outcome in survived if outcome.mutant.identity not in listed]
    contradicted = [outcome for outcome in outcomes if outcome.killer and outcome.mutant.identity in listed]
    lines = [f"listed as equivalent, and killed: {place_and_change(outcome.mutant)}" for outcome in contradicted]
    lines.append(
        f"{len(outcomes)} mutants: {len(outcomes) - len(survived)} killed, {len(survived)} survived,"
        f" {len(unlisted)} of them not listed as equivalent"
    )
    if wrong:
        return 2, [*lines, *(f"{name} fails without a mutant" for name in wrong)]
    return int(bool(unlisted or contradicted)), lines


def end(number: int, _: object) -> None:
    """Ends by a signal as by an exception: processes and copies go too."""
    raise SystemExit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="*", help="files or folders, of the tree or of the package; all rooms without")
    parser.add_argument("--count", type=int, default=300, help="how many mutants to draw (default 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print the mutants and their tests; run nothing")
    parser.add_argument("--check-listed", action="store_true", help="run those that are listed as equivalent, too")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1, help="processes")
    parser.add_argument("--distance", type=int, default=4, help="the largest distance of tests to run (default 4)")
    parser.add_argument(
        "--longest", type=float, default=15, help="seconds of computing that one test may take (default 15)"
    )
    parser.add_argument("--tree", type=Path, default=TREE, help="the checkout to change a copy of")
    options = parser.parse_args()
    tree: Path = options.tree.resolve()
    mutants = sample(tree, sources(tree, options.paths), options.count, options.seed)
    nearest = {
        file: nearest_tests(tree, file)[: options.distance + 1]
        for file in dict.fromkeys(mutant.file for mutant in mutants)
    }
    if options.list:
        for mutant in mutants:
            print(place_and_change(mutant), f"    {' '.join(nearest[mutant.file][0])}", sep="\n")
        return 0

    signal.signal(signal.SIGTERM, end)
    began = time.monotonic()
    listed = set(equivalents(tree / EQUIVALENT.relative_to(TREE)))
    load_what_tests_need(tree)
    outcomes = list[Outcome]()
    with tempfile.TemporaryDirectory(prefix="xla-emitters-mutants-") as folder:
        copies = [copied(tree, Path(folder) / f"copy{n}", options.longest) for n in range(options.jobs)]
        work = [mutant for mutant in mutants if options.check_listed or mutant.identity not in listed]
        for outcome in examine(copies, [(mutant, nearest[mutant.file]) for mutant in work]):
            outcomes.append(outcome)
            print(row(outcome, outcome.mutant.identity in listed), flush=True)
        killers = {outcome.killer for outcome in outcomes if outcome.killer}
        wrong = wrong_without_mutant(copies[0], killers) if killers else []
    for mutant in mutants:
        if mutant not in work:
            print(f"{place_and_change(mutant)}\n    listed as equivalent, not run")
    code, lines = verdict(outcomes, listed, wrong)
    print(*table(outcomes, listed), *lines, f"{time.monotonic() - began:.0f} s", sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
