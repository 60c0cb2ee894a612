"""Runs a bundle: `python KERNELS.zip [--json OUT.json] [--repeat N] [--max-iterations N]`.

Needs Python, NumPy and ml_dtypes, and to run programs also CuPy and an NVIDIA GPU. Draws the inputs again from their recipe, runs the steps
of every program, loops and library calls among them, compares its results with the bounds in the bundle, times it, prints a table
and writes JSON. Without a GPU it checks the manifest, redraws the inputs and prints 'not run'.

Times are medians over the whole sequence of steps, by CUDA events, with buffers rotated so that the cache is cold. A program that reads
predicates back, as its loops and branches do, is timed end to end by the host's clock; its row says so.

Exit codes: 0 all results right; 1 the bundle is damaged; 2 usage; 3 numbers differ; 4 nothing ran, because CuPy or a GPU is missing, the
driver rejects a kernel, CuPy lacks a library function, or this Python has no NumPy or ml_dtypes. This file is `__main__.py` of the zip,
where the files of xla_emitters that it imports are too. Nothing else in a bundle is executed, but the PTX.
"""

import argparse
import json
import platform
import statistics
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

try:
    import ml_dtypes  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import numpy  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as missing:
    print(f"error: {sys.executable} has no {missing.name}: pip install numpy ml_dtypes", file=sys.stderr)
    sys.exit(4)

from xla_emitters.library.arguments import Array
from xla_emitters.program.as_json import array_from_json, call_from_json, kernel_from_json, value_from_json
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.executable import executable_of
from xla_emitters.program.step_values import Arrays
from xla_emitters.program.steps import Allocate, ArrayPlace, Call, Copy, Launch, Load, Move, Release, Step, steps_within
from xla_emitters.runtime.bundle.bundle_numbers import attempted, by_clock, load_expected, redraw, unrun, wrong_elements
from xla_emitters.runtime.bundle.bundle_programs import run_programs
from xla_emitters.runtime.cuda.cupy_flat import FlatCupyPlatform
from xla_emitters.runtime.cuda.cupy_platform import bytes_of, find_cupy, to_device, to_host
from xla_emitters.runtime.cuda.cupy_steps import CupyMemory
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.walk import Frame, Run
from xla_emitters.support.limits import MOST_ITERATIONS, limited_iterations

FORMAT = 6
EXIT_CODES = {"ok": 0, "not run": 4, "differs": 3, "refused": 4}


@dataclass(frozen=True)
class Code:
    """Steps for the arrays of one case, "ours" or a rival's."""

    label: str
    kernels: list[Kernel]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class BundledCase:
    """One program of the manifest.

    row      its entry in the manifest
    calls    of library functions, by the numbers of steps
    refused  why no GPU runs it; "" if no reason is known
    """

    name: str
    row: dict[str, Any]
    arrays: Arrays
    calls: list[LibraryCall]
    codes: list[Code]
    refused: str


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python KERNELS.zip", description="Check and time a bundle of programs.")
    parser.add_argument("--bundle", default=sys.path[0], help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="OUT", help="write the results as JSON")
    parser.add_argument("--repeat", type=int, default=50, help="timed runs of each program (default 50)")
    limit = f"a loop that runs longer is an error; default {MOST_ITERATIONS}"
    parser.add_argument("--max-iterations", metavar="N", type=int, default=MOST_ITERATIONS, help=limit)
    options = parser.parse_args(argv)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if options.max_iterations < 0:
        parser.error("--max-iterations must not be negative")
    try:
        archive = zipfile.ZipFile(options.bundle)
        if damaged := archive.testzip():
            raise ValueError(f"'{damaged}' is damaged")
        manifest = json.loads(archive.read("manifest.json"))
        problem = manifest_problem(manifest, set(archive.namelist()))
        cases = [] if problem else [read_case(archive, row) for row in manifest["cases"]]
    except (OSError, LookupError, TypeError, ValueError, zipfile.BadZipFile) as error:
        print(f"error: {options.bundle} is not a bundle: {error}", file=sys.stderr)
        return 1
    if problem:
        print(f"error: {options.bundle}: {problem}", file=sys.stderr)
        return 1
    cupy, reason = find_cupy()
    rows: list[dict[str, Any]] = []
    for case in cases:
        try:
            inputs = redraw(case.row)
        except ValueError as error:
            print(f"error: {case.name}: {error}", file=sys.stderr)
            return 1
        for code in case.codes:
            if not (row := unrun(cupy, case.refused)):
                with limited_iterations(options.max_iterations):
                    row = run_code(cupy, case, code, inputs, load_expected(archive, case.row), options)
            rows.append({"case": case.name, "code": code.label, **row})
    try:
        rows += run_programs(cupy, archive, manifest.get("programs", []), options.repeat)
    except (LookupError, TypeError, ValueError, zipfile.BadZipFile) as error:
        print(f"error: {options.bundle} is damaged: {error}", file=sys.stderr)
        return 1
    print_table(rows, "not run: " + reason if cupy is None else describe(cupy))
    if options.json:
        report = {"device": None if cupy is None else describe(cupy), "reason": reason, "rows": rows}
        try:
            Path(options.json).write_text(json.dumps(report, indent=1), "utf-8")
        except OSError as error:
            print(f"error: cannot write {options.json}: {error.strerror}", file=sys.stderr)
            return 2
    return max(EXIT_CODES[row["verdict"]] for row in rows)


def manifest_problem(manifest: dict[str, Any], names: set[str]) -> str | None:
    """What is wrong with the manifest, or None."""
    if manifest.get("format") != FORMAT:
        found = f"its format is {manifest.get('format')!r}, but this script reads {FORMAT}"
        return f"{found}; make it again with 'xla-emitters bundle'"
    for case in manifest.get("cases", []):
        kernels = [kernel for code in case["codes"] for kernel in code["kernels"]]
        for wanted in [case["expected"], case["hlo"], *(kernel["ptx"] for kernel in kernels)]:
            if wanted not in names:
                return f"'{wanted}' of case '{case['name']}' is missing"
    for program in manifest.get("programs", []):
        constants = [program["elements_of"]] if program["constants"] else []
        shapes = [shape["expected"] for shape in program["shapes"]]
        for wanted in [program["source"], *program["ptx"], *constants, *shapes]:
            if wanted not in names:
                return f"'{wanted}' of program '{program['name']}' is missing"
    return None if manifest.get("cases") or manifest.get("programs") else "it has no cases"


def read_case(archive: zipfile.ZipFile, row: dict[str, Any]) -> BundledCase:
    """A case of the manifest with its PTX. raises LookupError, TypeError or ValueError where the manifest is not one that we wrote."""
    arrays = Arrays(*(tuple(map(array_from_json, row[kind])) for kind in ("parameters", "results", "temporaries")))
    texts = {kernel["ptx"]: "" for code in row["codes"] for kernel in code["kernels"]}
    texts = {name: archive.read(name).decode() for name in texts}
    codes: list[Code] = []
    for code in row["codes"]:
        kernels = [kernel_from_json(kernel, texts[kernel["ptx"]]) for kernel in code["kernels"]]
        steps, names = value_from_json(code["steps"]), {kernel.name for kernel in kernels}
        for step in steps_within(steps):
            if isinstance(step, Launch) and step.kernel not in names:
                raise ValueError(f"no kernel is called {step.kernel!r}")
        codes.append(Code(code["label"], kernels, steps))
    return BundledCase(row["name"], row, arrays, list(map(call_from_json, row["calls"])), codes, row["refused"])


def describe(cupy: Any) -> str:
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    driver = cupy.cuda.runtime.driverGetVersion()
    return (
        f"{properties['name'].decode()}, driver {driver}, CuPy {cupy.__version__}, Python {platform.python_version()}"
    )


# ---- on a GPU ---------------------------------------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """Counters of one run.

    bytes   accessed: arguments of kernels and library functions, and twice the bytes copied
    reads   predicates and numbers of branches that came back to the host
    """

    bytes: int = 0
    reads: int = 0


class CountingFrame(Frame):
    """The frame of the run whose results are compared: it counts what the steps of `code` do."""

    case: BundledCase
    code: Code
    counts: Counts

    def prepare(self, step: Step) -> Run | None:
        run, counts = super().prepare(step), self.counts
        moved = self._bytes(step)
        if run is None or not (moved or isinstance(step, Load)):
            return run

        def counted() -> None:
            counts.bytes += moved
            counts.reads += isinstance(step, Load)
            run()

        return counted

    def _bytes(self, step: Step) -> int:
        match step:
            case Launch():
                (kernel,) = (each for each in self.code.kernels if each.name == step.kernel)
                return sum(argument.bytes for argument in kernel.arguments)
            case Call():
                call = self.case.calls[step.op]
                return sum(map(bytes_of, (*call.operands, *call.results)))
            case Copy():
                arrays = self.case.arrays
                return 2 * bytes_of(arrays.spec(arrays.slot(step.target.slot)))
            case _:
                return 0


def run_code(
    cupy: Any,
    case: BundledCase,
    code: Code,
    inputs: list[Array],
    expected: dict[str, Array],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Runs the steps, compares the results, and times the whole sequence. Returns a row of the report."""
    counts = Counts()
    counting = type("Counting", (CountingFrame,), {"case": case, "code": code, "counts": counts})

    def check() -> dict[str, Any]:
        checked = loaded(cupy, case, code, CupyMemory(cupy, POISON))
        results = checked.run_in(counting, arguments_of(cupy, case, inputs))
        cupy.cuda.Device().synchronize()
        specs = case.arrays.results
        found = [to_host(cupy, *pair) for pair in zip(results, specs, strict=True)]
        wrong = wrong_elements(found, [spec.dtype for spec in specs], expected)
        return {"verdict": "differs" if wrong else "ok", "wrong": wrong}

    row = attempted(check)
    if "wrong" not in row:
        return row
    try:
        return row | timed(cupy, case, code, counts, inputs, options)
    except MemoryError as error:
        return row | {"reason": f"not timed, out of memory: {error}"}


class KeptMemory(CupyMemory):
    """An array keeps the memory that it got in the first run, so that no allocation is timed."""

    def __init__(self, cupy: Any) -> None:
        super().__init__(cupy)
        self._kept = dict[int, Any]()

    def empty(self, place: ArrayPlace, shape: tuple[int, ...]) -> Any:
        if place.slot not in self._kept:
            self._kept[place.slot] = super().empty(place, shape)
        return self._kept[place.slot]


POISON = 0xA5
"""A byte of an unlikely result, so that an element which no step writes is found to differ."""


def loaded(cupy: Any, case: BundledCase, code: Code, memory: CupyMemory) -> LoadedProgram:
    """The steps, ready to run. raises ToolError where the driver rejects the kernels"""
    platform = FlatCupyPlatform(cupy, code.kernels, case.calls)
    arguments = {kernel.name: kernel.arguments for kernel in code.kernels}
    made = executable_of(case.arrays, code.steps, case.calls, arguments)
    return LoadedProgram(made, platform, memory)


def timed(
    cupy: Any, case: BundledCase, code: Code, counts: Counts, inputs: list[Array], options: argparse.Namespace
) -> dict[str, Any]:
    """The median time of the steps, after a run on each set of buffers, and what was timed: columns of the row.

    A program of kernels alone may update its donated parameters where they are, so that no copy is timed. A loop may depend on one, which
    must then be the same in each run: its copy is timed too.
    """
    is_kernels = all(isinstance(step, Launch | Allocate | Release | Move) for step in code.steps)
    # Enough copies that twice the size of the L2 cache is accessed between two uses of one buffer.
    l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
    copies = 1 + min(16, max(1, 2 * l2 // max(counts.bytes, 1)))
    runs = list[Callable[[], object]]()
    for _ in range(copies):  # each with an arena of its own
        program = loaded(cupy, case, code, KeptMemory(cupy))
        overwritten = frozenset[int]() if is_kernels else program.donated
        runs.append(partial(run_on_copies, program, arguments_of(cupy, case, inputs), overwritten))
    time_one = by_clock if counts.reads else by_events
    warm_ups = max(5, len(runs))
    seconds = [time_one(cupy, runs[number % len(runs)]) for number in range(warm_ups + options.repeat)]
    median = statistics.median(seconds[warm_ups:])
    return {
        "microseconds": median * 1e6,
        "gigabytes_per_second": counts.bytes / median / 1e9,
        "timed": f"end to end, {counts.reads} reads by the host" if counts.reads else "events",
    }


def run_on_copies(program: LoadedProgram, arguments: Sequence[Any], copied: frozenset[int]) -> None:
    """A run that leaves these arguments as they are."""
    program.run([array.copy() if number in copied else array for number, array in enumerate(arguments)])


def by_events(cupy: Any, run: Callable[[], object]) -> float:
    """Seconds between two events on the device, before and after."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    run()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) / 1e3


def arguments_of(cupy: Any, case: BundledCase, inputs: list[Array]) -> list[Any]:
    """The parameters' arrays on the device."""
    return [to_device(cupy, array, spec) for array, spec in zip(inputs, case.arrays.parameters, strict=True)]


def print_table(rows: list[dict[str, Any]], headline: str) -> None:
    print(headline)
    width = max(len(row["case"]) for row in rows)
    print(f"{'case':<{width}}  {'code':<12} {'verdict':<8} {'us':>10} {'GB/s':>8}")
    for row in rows:
        time_one = f"{row['microseconds']:.2f}" if "microseconds" in row else "-"
        rate = f"{row['gigabytes_per_second']:.0f}" if "gigabytes_per_second" in row else "-"
        timing = f"{time_one:>10} {rate:>8}"
        note = row.get("reason") or row.get("timed", "").removeprefix("events")
        line = f"{row['case']:<{width}}  {row['code']:<12} {row['verdict']:<8} {timing}  {note}"
        print(line.rstrip())


if __name__ == "__main__":
    sys.exit(main())
