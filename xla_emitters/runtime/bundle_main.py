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
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

try:
    import ml_dtypes  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import numpy as np
except ModuleNotFoundError as missing:
    print(f"error: {sys.executable} has no {missing.name}: pip install numpy ml_dtypes", file=sys.stderr)
    sys.exit(4)

from xla_emitters.errors import ExecutionError, XlaEmittersError
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.program.arrays import ArraySpec, Slot
from xla_emitters.program.as_json import array_from_json, kernel_from_json, steps_from_json
from xla_emitters.program.steps import Allocation, Kernel, LibraryCall, Release, Step, kernels_in
from xla_emitters.runtime.bundle_numbers import admitted, load_expected, redraw
from xla_emitters.runtime.bundle_programs import run_programs
from xla_emitters.runtime.cupy_platform import (
    Buffers,
    CupyPlatform,
    bytes_of,
    empty,
    find_cupy,
    load_functions,
    to_device,
    to_host,
)
from xla_emitters.runtime.steps import MOST_ITERATIONS, run_steps

FORMAT = 6
EXIT_CODES = {"ok": 0, "not run": 4, "differs": 3, "refused": 4}


@dataclass(frozen=True)
class Code:
    """Steps for the arrays of one case, "ours" or a rival's."""

    label: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class BundledCase:
    """One program of the manifest.

    row      its entry in the manifest
    arrays   of parameters, results and temporaries, by kind
    refused  why no GPU runs it; "" if no reason is known
    """

    name: str
    row: dict[str, Any]
    arrays: dict[str, list[ArraySpec]]
    codes: list[Code]
    refused: str

    def array(self, slot: Slot) -> ArraySpec:
        return self.arrays[slot.kind][slot.index]


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
            if cupy is None:
                row = {"verdict": "not run"} | ({"reason": f"refused on a GPU: {case.refused}"} if case.refused else {})
            elif case.refused:
                row = {"verdict": "refused", "reason": case.refused}
            else:
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
        constants = [program["constants"]] if program["constants"] else []
        shapes = [shape["expected"] for shape in program["shapes"]]
        for wanted in [program["source"], *program["ptx"], *constants, *shapes]:
            if wanted not in names:
                return f"'{wanted}' of program '{program['name']}' is missing"
    return None if manifest.get("cases") or manifest.get("programs") else "it has no cases"


def read_case(archive: zipfile.ZipFile, row: dict[str, Any]) -> BundledCase:
    """A case of the manifest with its PTX. raises LookupError, TypeError or ValueError where the manifest is not one that we wrote."""
    kinds = {"parameter": "parameters", "result": "results", "temporary": "temporaries"}
    arrays = {kind: list(map(array_from_json, row[key])) for kind, key in kinds.items()}
    texts = {kernel["ptx"]: "" for code in row["codes"] for kernel in code["kernels"]}
    texts = {name: archive.read(name).decode() for name in texts}
    codes: list[Code] = []
    for code in row["codes"]:
        kernels = [kernel_from_json(kernel, texts[kernel["ptx"]]) for kernel in code["kernels"]]
        codes.append(Code(code["label"], steps_from_json(code["steps"], kernels)))
    return BundledCase(row["name"], row, arrays, codes, row["refused"])


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


@dataclass(frozen=True)
class Checked(CupyPlatform):
    """Platform of the run whose results are compared: it counts, and fresh memory holds a pattern."""

    counts: Counts = field(default_factory=Counts)

    def launch(self, kernel: Kernel) -> None:
        self.counts.bytes += sum(argument.bytes for argument in kernel.arguments)
        super().launch(kernel)

    def call(self, call: LibraryCall) -> None:
        self.counts.bytes += sum(bytes_of(part.array) for part in (*call.operands, *call.results))
        super().call(call)

    def allocate(self, slot: Slot) -> None:
        self.buffers[slot.kind, slot.index] = poisoned(self.cupy, self.array(slot))

    def copy(self, source: Slot, target: Slot) -> None:
        self.counts.bytes += 2 * bytes_of(self.array(target))
        super().copy(source, target)

    def read(self, slot: Slot) -> int:
        self.counts.reads += 1
        return super().read(slot)


class Timed(CupyPlatform):
    """Platform of the timed runs: a temporary keeps the memory that it got in the first of them."""

    def allocate(self, slot: Slot) -> None:
        if (slot.kind, slot.index) not in self.buffers:
            super().allocate(slot)

    def release(self, slot: Slot) -> None:
        pass


def run_code(
    cupy: Any,
    case: BundledCase,
    code: Code,
    inputs: list[Array],
    expected: dict[str, Array],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Runs the steps, compares the results, and times the whole sequence. Returns a row of the report."""
    run = partial(run_steps, code.steps, most_iterations=options.max_iterations)
    try:
        functions = load_functions(cupy, kernels_in(code.steps))
        checked = Checked(cupy, case.array, functions, arguments_of(cupy, case, inputs))
        run(checked)
        cupy.cuda.Device().synchronize()
        wrong = compare(cupy, case, checked.buffers, expected)
    except ExecutionError as error:
        return {"verdict": "differs", "reason": error.message}
    except XlaEmittersError as error:
        return {"verdict": "refused", "reason": error.message}
    except MemoryError as error:
        return {"verdict": "refused", "reason": f"out of memory: {error}"}
    except RuntimeError as error:  # base class of what CuPy raises for the driver and for NVIDIA's libraries
        return {"verdict": "differs", "reason": f"it stops with: {error}"}
    row = {"verdict": "differs" if wrong else "ok", "wrong": wrong}
    try:
        return row | timed(cupy, case, code, checked, inputs, run, options.repeat)
    except MemoryError as error:
        return row | {"reason": f"not timed, out of memory: {error}"}


def timed(
    cupy: Any,
    case: BundledCase,
    code: Code,
    checked: Checked,
    inputs: list[Array],
    run: Callable[[CupyPlatform], None],
    repeat: int,
) -> dict[str, Any]:
    """The median time of the steps, after a run on each set of buffers, and what was timed: columns of the row."""
    counts = checked.counts
    # Enough copies that twice the size of the L2 cache is accessed between two uses of one buffer.
    l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
    copies = min(16, max(1, 2 * l2 // max(counts.bytes, 1)))
    sets = [checked.buffers, *(arguments_of(cupy, case, inputs) for _ in range(copies))]
    runs = [partial(run, Timed(cupy, case.array, checked.functions, in_place(buffers, code))) for buffers in sets]
    time_one = by_clock if counts.reads else by_events
    warm_ups = max(5, len(runs))
    seconds = [time_one(cupy, runs[number % len(runs)]) for number in range(warm_ups + repeat)]
    median = statistics.median(seconds[warm_ups:])
    return {
        "microseconds": median * 1e6,
        "gigabytes_per_second": counts.bytes / median / 1e9,
        "timed": f"end to end, {counts.reads} reads by the host" if counts.reads else "events",
    }


def by_events(cupy: Any, run: Callable[[], None]) -> float:
    """Seconds between two events on the device, before and after."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    run()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) / 1e3


def by_clock(cupy: Any, run: Callable[[], None]) -> float:
    """Seconds of the host's clock until the device is done."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    run()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


def arguments_of(cupy: Any, case: BundledCase, inputs: list[Array]) -> Buffers:
    """Fresh memory for parameters and results."""
    buffers: Buffers = {}
    for number, (array, spec) in enumerate(zip(inputs, case.arrays["parameter"], strict=True)):
        buffers["parameter", number] = to_device(cupy, array, spec)
    for number, spec in enumerate(case.arrays["result"]):
        buffers["result", number] = poisoned(cupy, spec)
    return buffers


def poisoned(cupy: Any, spec: ArraySpec) -> Any:
    """Memory that holds an unlikely result, so that an element which no step writes is found to differ."""
    memory = empty(cupy, spec)
    memory.view(np.uint8)[...] = 0xA5
    return memory


def in_place(buffers: Buffers, code: Code) -> Buffers:
    """The same buffers, but a result that shares a parameter's memory is that parameter, so that no copy is timed.

    Only for programs of kernels alone: a loop may depend on the parameter, which must then be the same in each run.
    """
    if not all(isinstance(step, Kernel | Allocation | Release) for step in code.steps):
        return buffers
    for kernel in kernels_in(code.steps):
        first: dict[int, Slot] = {}
        for argument in kernel.arguments:
            source = first.setdefault(argument.slice_index, argument.slot)
            if (argument.kind, source.kind) == ("result", "parameter"):
                buffers[argument.kind, argument.index] = buffers[source.kind, source.index]
    return buffers


def compare(cupy: Any, case: BundledCase, buffers: Buffers, expected: dict[str, Array]) -> int:
    """Number of compared elements that are outside their bounds."""
    wrong = 0
    for number, spec in enumerate(case.arrays["result"]):
        # NumPy reads any nonzero byte as true, so an unwritten byte of a pred would compare equal to true.
        dtype = np.dtype(np.uint8) if spec.dtype == "pred" else numpy_type(spec.dtype)
        positions, low, high = (expected[f"r{number}.{part}"] for part in ("positions", "low", "high"))
        got = to_host(cupy, buffers["result", number], spec).reshape(-1)[positions]
        wrong += int(np.count_nonzero(~admitted(got.view(dtype), low.view(dtype), high.view(dtype))))
    return wrong


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
