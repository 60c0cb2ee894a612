"""Runs a bundle of kernels: `python KERNELS.zip [--json OUT.json] [--repeat N]`.

Needs Python, NumPy and ml_dtypes, and to run kernels also CuPy and an NVIDIA GPU. Draws the inputs again from their recipe, launches every
kernel, compares its results with the bounds in the bundle, times it (CUDA events, median, buffers rotated so that the cache is cold),
prints a table and writes JSON. Without a GPU it checks the manifest, redraws the inputs and prints 'not run'.

Exit codes: 0 all results right, or not run; 1 the bundle is damaged; 2 usage; 3 numbers differ; 4 the driver rejects a kernel, or this
Python has no NumPy or ml_dtypes. This file is `__main__.py` of the zip: it imports `draws.py` and `packing.py` of the zip and nothing of
xla_emitters. Nothing in a bundle is executed but these three files and the PTX.
"""

import argparse
import hashlib
import importlib
import io
import json
import math
import platform
import statistics
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

try:
    import ml_dtypes
    import numpy as np
except ModuleNotFoundError as missing:
    print(f"error: {sys.executable} has no {missing.name}: pip install numpy ml_dtypes", file=sys.stderr)
    sys.exit(4)

FORMAT = 3
EXIT_CODES = {"ok": 0, "not run": 0, "differs": 3, "refused": 4}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python KERNELS.zip", description="Check and time a bundle of kernels.")
    parser.add_argument("--bundle", default=sys.path[0], help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="OUT", help="write the results as JSON")
    parser.add_argument("--repeat", type=int, default=50, help="timed launches of each kernel (default 50)")
    options = parser.parse_args(argv)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    try:
        archive = zipfile.ZipFile(options.bundle)
        if damaged := archive.testzip():
            raise ValueError(f"'{damaged}' is damaged")
        manifest = json.loads(archive.read("manifest.json"))
        problem = manifest_problem(manifest, set(archive.namelist()))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        print(f"error: {options.bundle} is not a bundle: {error}", file=sys.stderr)
        return 1
    if problem:
        print(f"error: {options.bundle}: {problem}", file=sys.stderr)
        return 1
    gpu, reason = find_gpu()
    rows: list[dict[str, Any]] = []
    for case in manifest["cases"]:
        try:
            inputs = redraw(case)
        except ValueError as error:
            print(f"error: {case['name']}: {error}", file=sys.stderr)
            return 1
        if gpu is None:
            rows += [{"case": case["name"], "code": code["label"], "verdict": "not run"} for code in case["codes"]]
        else:
            expected = load_expected(archive, case)
            for code in case["codes"]:
                row = run_code(gpu, archive, case, code, inputs, expected, options.repeat)
                rows.append({"case": case["name"], "code": code["label"], **row})
    print_table(rows, "not run: " + reason if gpu is None else describe(gpu))
    if options.json:
        report = {"device": None if gpu is None else describe(gpu), "reason": reason, "rows": rows}
        try:
            Path(options.json).write_text(json.dumps(report, indent=1), "utf-8")
        except OSError as error:
            print(f"error: cannot write {options.json}: {error.strerror}", file=sys.stderr)
            return 2
    return max(EXIT_CODES[row["verdict"]] for row in rows)


def manifest_problem(manifest: dict[str, Any], names: set[str]) -> str | None:
    """What is wrong with the manifest, or None."""
    if manifest.get("format") != FORMAT:
        return f"its format is {manifest.get('format')!r}, but this script reads {FORMAT}"
    for case in manifest.get("cases", []):
        kernels = [kernel for code in case["codes"] for kernel in code["kernels"]]
        for wanted in [case["expected"], case["hlo"], *(kernel["ptx"] for kernel in kernels)]:
            if wanted not in names:
                return f"'{wanted}' of case '{case['name']}' is missing"
    return None if manifest.get("cases") else "it has no cases"


def numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def standing_beside(name: str) -> Any:
    """A module of the zip; the zip is on `sys.path`."""
    return importlib.import_module(name)


def redraw(case: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The inputs, in the order of the parameters; raises ValueError when they are not those of the reference."""
    draws = standing_beside("draws")
    inputs: list[np.ndarray[Any, Any]] = []
    for number, spec in enumerate(case["parameters"]):
        array = draws.draw(
            spec["kind"],
            spec["bits"],
            numpy_type(spec["numpy"]),
            tuple(spec["shape"]),
            seed=case["seed"],
            number=number,
            places=None if spec["places"] is None else draws.Places(**spec["places"]),
        )
        digest = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()
        if digest != spec["sha256"]:
            raise ValueError(
                f"parameter {number} as drawn by this NumPy ({np.__version__}) differs from the reference's input"
            )
        inputs.append(array)
    return inputs


def load_expected(archive: zipfile.ZipFile, case: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(io.BytesIO(archive.read(case["expected"])), allow_pickle=False) as entries:
        return {key: entries[key] for key in entries.files}


def find_gpu() -> tuple[Any, str]:
    """(CuPy, "") if it has a device, else (None, the reason)."""
    try:
        cupy: Any = importlib.import_module("cupy")
        return (cupy, "") if cupy.cuda.runtime.getDeviceCount() else (None, "no CUDA device")
    except ImportError:
        return None, "CuPy is not installed"
    except Exception as error:  # CuPy raises its own, driver-dependent classes when there is no driver
        return None, f"no CUDA device ({error})"


def describe(cupy: Any) -> str:
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    driver = cupy.cuda.runtime.driverGetVersion()
    return (
        f"{properties['name'].decode()}, driver {driver}, CuPy {cupy.__version__}, Python {platform.python_version()}"
    )


def run_code(
    cupy: Any,
    archive: zipfile.ZipFile,
    case: dict[str, Any],
    code: dict[str, Any],
    inputs: list[np.ndarray[Any, Any]],
    expected: dict[str, np.ndarray[Any, Any]],
    repeat: int,
) -> dict[str, Any]:
    """Launches the kernels of one case in order, compares the results and times the whole sequence."""
    try:
        functions = [
            load_function(cupy, archive.read(kernel["ptx"]).decode(), kernel["name"]) for kernel in code["kernels"]
        ]
    except cupy.cuda.driver.CUDADriverError as error:
        return {"verdict": "refused", "reason": f"the driver rejects the PTX: {error}"}

    def launch(buffers: dict[tuple[str, int], Any]) -> None:
        for function, kernel in zip(functions, code["kernels"], strict=True):
            pointers = tuple(buffers[argument["kind"], argument["index"]] for argument in kernel["arguments"])
            function(tuple(kernel["grid"]), tuple(kernel["block"]), pointers)

    buffers = allocate(cupy, case, code, inputs)
    launch(buffers)
    cupy.cuda.Device().synchronize()
    wrong = compare(cupy, case, buffers, expected)
    moved = sum(argument["bytes"] for kernel in code["kernels"] for argument in kernel["arguments"])
    # Enough copies that twice the size of the L2 cache is accessed between two uses of one buffer.
    l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
    copies = min(16, max(1, 2 * l2 // max(moved, 1)))
    sets = [buffers] + [allocate(cupy, case, code, inputs) for _ in range(copies)]
    seconds: list[float] = []
    for number in range(repeat + 5):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        launch(sets[number % len(sets)])
        end.record()
        end.synchronize()
        if number >= 5:
            seconds.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    median = statistics.median(seconds)
    return {
        "verdict": "differs" if wrong else "ok",
        "wrong": wrong,
        "microseconds": median * 1e6,
        "gigabytes_per_second": moved / median / 1e9,
    }


def load_function(cupy: Any, ptx: str, name: str) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "kernel.ptx"
        path.write_text(ptx, "utf-8")
        return cupy.RawModule(path=str(path)).get_function(name)


def allocate(
    cupy: Any, case: dict[str, Any], code: dict[str, Any], inputs: list[np.ndarray[Any, Any]]
) -> dict[tuple[str, int], Any]:
    """Fresh device memory for every parameter, result and temporary; arguments of one slice share a buffer."""
    buffers: dict[tuple[str, int], Any] = {}
    for number, (array, spec) in enumerate(zip(inputs, case["parameters"], strict=True)):
        physical = np.ascontiguousarray(array.transpose(spec["physical"])).reshape(-1).view(np.uint8)
        if spec["packed"]:
            physical = standing_beside("packing").packed_bytes(physical, spec["bits"])
        buffers["parameter", number] = cupy.asarray(physical)
    for kernel in code["kernels"]:
        by_slice: dict[int, Any] = {}
        for argument in kernel["arguments"]:
            key = argument["kind"], argument["index"]
            shared = by_slice.get(argument["slice_index"])
            if shared is not None:
                buffers[key] = shared
            elif key not in buffers:
                # An unlikely result, so that an element which the kernels do not write is found to differ.
                buffers[key] = cupy.full(argument["bytes"], 0xA5, dtype=np.uint8)
            by_slice[argument["slice_index"]] = buffers[key]
    return buffers


def compare(
    cupy: Any,
    case: dict[str, Any],
    buffers: dict[tuple[str, int], Any],
    expected: dict[str, np.ndarray[Any, Any]],
) -> int:
    """Number of compared elements that are outside their bounds."""
    wrong = 0
    for number, spec in enumerate(case["results"]):
        key, dtype, physical = f"r{number}", numpy_type(spec["numpy"]), tuple(spec["physical"])
        data = cupy.asnumpy(buffers["result", number])
        if spec["packed"]:
            data = standing_beside("packing").unpacked_elements(data, spec["bits"])[: math.prod(spec["shape"])]
        array = data.view(dtype).reshape(tuple(spec["shape"][dim] for dim in physical))
        logical = array.transpose(np.argsort(physical)) if physical else array
        got = logical.reshape(-1)[expected[f"{key}.positions"]]
        low, high = expected[f"{key}.low"].view(dtype), expected[f"{key}.high"].view(dtype)
        wrong += int(np.count_nonzero(~admitted(got, low, high)))
    return wrong


def admitted(got: np.ndarray[Any, Any], low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Mask of low <= got <= high, for complex numbers of both parts; NaN is admitted where a bound is NaN, or where nothing is known."""
    if got.dtype.kind == "c":
        return admitted(got.real, low.real, high.real) & admitted(got.imag, low.imag, high.imag)
    with np.errstate(invalid="ignore"):
        inside = (got >= low) & (got <= high)
        if "float" not in got.dtype.name:
            return inside
        least, most = extremes(got.dtype)
        is_unknown = (low == least) & (high == most)
        return inside | ((got != got) & ((low != low) | (high != high) | is_unknown))


def extremes(kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The least and the greatest value of a float type: infinities, where it has them."""
    infinities = np.array([-np.inf, np.inf]).astype(kind)
    finfo: Any = ml_dtypes.finfo
    limits = finfo(kind)
    return np.where(infinities != infinities, np.array([float(limits.min), float(limits.max)]).astype(kind), infinities)


def print_table(rows: list[dict[str, Any]], headline: str) -> None:
    print(headline)
    width = max(len(row["case"]) for row in rows)
    print(f"{'case':<{width}}  {'code':<12} {'verdict':<8} {'us':>10} {'GB/s':>8}")
    for row in rows:
        timing = (
            f"{row['microseconds']:>10.2f} {row['gigabytes_per_second']:>8.0f}"
            if "microseconds" in row
            else f"{'-':>10} {'-':>8}  "
        )
        print(f"{row['case']:<{width}}  {row['code']:<12} {row['verdict']:<8} {timing}{row.get('reason', '')}")


if __name__ == "__main__":
    sys.exit(main())
