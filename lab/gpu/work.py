"""One worker of the checks on a GPU: takes cases from a shared counter, writes one JSON line a case.

usage: work.py CASES.json OUT.jsonl COUNTER NUMBER

A case is {"kind": fusion | sweep | module | program | model | function | big_model | peer, "name": ...}. After an error that ruins the CUDA
context the worker starts itself anew.
"""

import fcntl
import gzip
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(os.environ["GPU_HERE"])  # folder with corpus/, extra/, xla_*.json.gz
PROJECT = Path(os.environ["GPU_PROJECT"])
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests")]

import numpy as np  # noqa: E402

DRY = os.environ.get("GPU_DRY")  # without a GPU: everything but launches
STICKY = ("illegal", "misaligned", "launch failure", "LAUNCH_FAILED", "ILLEGAL", "MISALIGNED", "unspecified", "assert")


def take(counter: Path) -> int:
    with counter.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        number = int(file.read() or 0)
        file.seek(0)
        file.write(str(number + 1))
        file.truncate()
        return number


def timed(run: Any, cupy: Any, *, cold: bool, repeats: int) -> float:
    """Median microseconds of a graph of one run, between two events."""
    scratch = getattr(timed, "scratch", None)
    if cold and scratch is None:
        scratch = timed.scratch = cupy.empty(64 << 20, dtype=cupy.float32)  # 256 MB: more than L2
    found = []
    for _ in range(repeats):
        if cold:
            scratch.fill(1.0)
        start, stop, stream = cupy.cuda.Event(), cupy.cuda.Event(), cupy.cuda.get_current_stream()
        start.record(stream)
        run()
        stop.record(stream)
        stop.synchronize()
        found.append(1e3 * cupy.cuda.get_elapsed_time(start, stop))
    return float(np.median(found))


def captured(run: Any, cupy: Any) -> Any:
    stream = cupy.cuda.get_current_stream()
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
    try:
        run()
    finally:
        graph = stream.end_capture()
    return graph


def empty_time(cupy: Any, cold: bool) -> float:
    key = f"empty{cold}"
    if not hasattr(empty_time, key):
        ptx = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry nothing(){ret;}\n"
        path = Path(f"/tmp/nothing{os.getpid()}.ptx")
        path.write_text(ptx)
        function = cupy.RawModule(path=str(path)).get_function("nothing")
        function((1,), (32,), ())
        cupy.cuda.Device().synchronize()
        graph = captured(lambda: function((1,), (32,), ()), cupy)
        timed(graph.launch, cupy, cold=cold, repeats=5)
        setattr(empty_time, key, timed(graph.launch, cupy, cold=cold, repeats=21))
    return getattr(empty_time, key)


def fusion(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    from xla_emitters.explore.check.verdict import reference_for
    from xla_emitters.graph.control_computations import drawn_for
    from xla_emitters.pipelines.compiler import compile_module, read_module
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.runtime.cuda.cupy_launcher import launch_program
    from xla_emitters.runtime.inputs import draw_inputs

    folder, _, rest = name.partition("/")
    path = (PROJECT / "tests" / "corpus" if folder == "corpus" else HERE / "extra") / rest
    start = time.perf_counter()
    module = read_module(path)
    program = compile_module(module, CompileOptions(target="h100", record="none"))
    row["compile_s"] = time.perf_counter() - start
    inputs = draw_inputs(drawn_for(module), program.parameters, 0)
    row["bytes"] = sum(getattr(a, "bytes", 0) for k in program.kernels for a in k.arguments)
    row["kernels"] = len(program.kernels)
    if DRY:
        return
    import cupy

    from xla_emitters.runtime.cuda.cupy_flat import load_functions

    start = time.perf_counter()
    load_functions(cupy, program.kernels)
    row["load_s"] = time.perf_counter() - start
    with gpu_to_itself():
        start = time.perf_counter()
        results = launch_program(program, inputs)
        row["first_s"] = time.perf_counter() - start
    start = time.perf_counter()
    reference = reference_for(module, inputs)
    verdict = reference.compare(results)
    row["reference_s"] = time.perf_counter() - start
    row["ok"], row["says"] = (
        bool(verdict.ok),
        verdict.summary + (" | " + " | ".join(verdict.details)[:300] if not verdict.ok else ""),
    )
    # Times: the kernels alone, ours and XLA's, on the same buffers.
    if os.environ.get("GPU_NO_TIMES"):
        return
    kernel_times(name, row, xla, program, inputs, cupy)


def kernel_times(name: str, row: dict[str, Any], xla: dict[str, Any], program: Any, inputs: Any, cupy: Any) -> None:
    """Times and bits of the only kernel, ours and XLA's; inputs: NumPy's, or flat arrays of the device."""
    from xla_emitters.program.step_values import place_of
    from xla_emitters.runtime.cuda import cupy_flat, cupy_platform, cupy_steps

    if len(program.kernels) != 1 or len(program.steps) != 1:
        row["steps"] = len(program.steps)
        return
    (kernel,) = program.kernels
    buffers: dict[tuple[str, int], Any] = {}
    for number, (array, spec) in enumerate(zip(inputs, program.parameters, strict=True)):
        buffers["parameter", number] = (
            cupy_platform.to_device(cupy, array, spec) if isinstance(array, np.ndarray) else array
        )
    for number, spec in enumerate(program.results):
        buffers["result", number] = cupy_steps.CupyMemory(cupy).empty(place_of(number, spec), (spec.elements,))
    functions = cupy_flat.load_functions(cupy, [kernel])
    pointers, by_slice = [], {}
    for argument in kernel.arguments:
        buffer = buffers[argument.kind, argument.index]
        source = by_slice.get(argument.slice_index)
        if source is not None and source is not buffer:
            row["aliased"] = True
            pointers = [buffer if p is source else p for p in pointers]
        by_slice[argument.slice_index] = buffer
        pointers.append(buffer)
    launch = kernel.launch

    def bound(function: Any, grid: Any, block: Any) -> Any:
        return lambda: function(tuple(grid), tuple(block), tuple(pointers))

    def reset() -> None:
        for (kind, _), buffer in buffers.items():
            if kind == "result" and buffer.size:
                buffer.fill(0)

    ours = functions[kernel.name]
    row["attributes"] = {
        k: int(v) for k, v in ours.attributes.items() if k in ("num_regs", "local_size_bytes", "shared_size_bytes")
    }
    made = {"ours": bound(ours, launch.grid, launch.block)}
    theirs = xla.get(name)
    if theirs and "ptx" in theirs and [t for t in theirs["thunks"] if t[1]].__len__() == 1:
        path = Path(f"/tmp/xla{os.getpid()}_{time.monotonic_ns()}.ptx")  # CuPy keeps modules by their path
        path.write_text(theirs["ptx"])
        import re

        entry = re.search(r"\.visible \.entry (\w+)\(", theirs["ptx"])
        (numbers,) = [t[1] for t in theirs["thunks"] if t[1]]
        try:
            function = cupy.RawModule(path=str(path)).get_function(entry[1])
            row["xla_attributes"] = {
                k: int(v)
                for k, v in function.attributes.items()
                if k in ("num_regs", "local_size_bytes", "shared_size_bytes")
            }
            row["same_launch"] = list(numbers[:3]) == list(launch.grid) and list(numbers[3:6]) == list(launch.block)
            made["xla"] = bound(function, numbers[:3], numbers[3:6])
        except Exception as error:
            row["xla_error"] = repr(error)[:200]
    with gpu_to_itself():
        compared(row, made, buffers, program, reset, cupy)


def compared(row: dict[str, Any], made: dict[str, Any], buffers: Any, program: Any, reset: Any, cupy: Any) -> None:
    """Bits and times of our kernel and XLA's."""
    written = [buffers["result", n] for n in range(len(program.results))]
    seen = {}
    for who, run in made.items():
        reset()
        run()
        cupy.cuda.Device().synchronize()
        seen[who] = [cupy.asnumpy(b).copy() for b in written]
    if "xla" in seen and not row.get("aliased"):
        row["same_bits"] = all(
            np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in zip(seen["ours"], seen["xla"], strict=True)
        )
        if not row["same_bits"]:
            row["differ"] = [
                float((a.view(np.uint8) != b.view(np.uint8)).mean())
                for a, b in zip(seen["ours"], seen["xla"], strict=True)
            ]
            row["close"] = all(
                np.allclose(a.astype(np.float64), b.astype(np.float64), 1e-3, 1e-3, equal_nan=True)
                if a.dtype.kind == "f"
                else float((a != b).mean()) < 0.02
                for a, b in zip(seen["ours"], seen["xla"], strict=True)
            )
    cupy.cuda.Device().synchronize()
    graphs = {who: captured(run, cupy) for who, run in made.items()}
    row["empty_us"] = [empty_time(cupy, False), empty_time(cupy, True)]
    for cold in (False, True):
        found: dict[str, list[float]] = {who: [] for who in graphs}
        for _ in range(3):  # in turns
            for who, graph in graphs.items():
                found[who].append(timed(graph.launch, cupy, cold=cold, repeats=7 if cold else 11))
        for who in graphs:
            row[f"{who}_{'cold' if cold else 'warm'}_us"] = min(found[who])


def sweep(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    from xla_emitters.pipelines.compiler import compile_module, read_module
    from xla_emitters.pipelines.options import CompileOptions

    path = HERE / name
    start = time.perf_counter()
    module = read_module(path)
    program = compile_module(module, CompileOptions(target="h200", record="none"))
    row["compile_s"] = time.perf_counter() - start
    row["bytes"] = sum(a.bytes for k in program.kernels for a in k.arguments)
    row["kernels"] = [[k.name, list(k.launch.grid), list(k.launch.block)] for k in program.kernels]
    if DRY:
        return
    import cupy

    from xla_emitters.runtime.cuda import cupy_flat, cupy_platform
    from xla_emitters.runtime.cuda.cupy_launcher import launch_program
    from xla_emitters.runtime.layouts import from_buffer

    cupy_flat.load_functions(cupy, program.kernels)
    with gpu_to_itself():
        generator = cupy.random.RandomState(3)
        inputs = []
        for spec in program.parameters:
            count = cupy_platform.length_of(spec)
            kind = cupy_platform.pattern_type(spec.dtype)
            if spec.dtype in ("bf16",):
                bits = generator.uniform(0.5, 1.5, count).astype(cupy.float32).view(cupy.uint32) >> 16
                inputs.append(bits.astype(cupy.uint16))
            elif kind.kind == "f":
                inputs.append(generator.uniform(0.5, 1.5, count).astype(kind))
            else:
                inputs.append(generator.randint(1, 5, count).astype(kind))
        if len(program.kernels) == 1 and len(program.steps) == 1:
            pass
        else:
            from xla_emitters.runtime.cuda.cupy_launcher import launch_program

            logical = [from_buffer(a, s) for a, s in zip(inputs, program.parameters, strict=True)]
            launch_program(program, logical)
            graph = captured(lambda: launch_program(program, logical), cupy)
            row["ours_cold_us"] = min(timed(graph.launch, cupy, cold=True, repeats=7) for _ in range(2))
            row["empty_us"] = [empty_time(cupy, False), empty_time(cupy, True)]
    if "ours_cold_us" not in row:
        kernel_times(name, row, xla, program, inputs, cupy)
    row["ok"] = row.get("close", True)
    cupy.get_default_memory_pool().free_all_blocks()


def function(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    import functions

    functions.measure(name, row, gpu_to_itself, on_stream)


def big_model(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    import functions

    functions.measure_model(name, row, gpu_to_itself, on_stream)


def peer(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    import peers

    if not DRY:
        peers.measure(name, row, gpu_to_itself)


def module(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    from runtime.modules import recipes

    from xla_emitters.pipelines.compiler import compile
    from xla_emitters.runtime.cuda.cupy_launcher import launch_program

    base, _, setting = name.partition(".")
    recipe = recipes()[base]
    start = time.perf_counter()
    program = compile(recipe.text("." + setting if setting else ""), target="h100", record="none")
    row["compile_s"] = time.perf_counter() - start
    inputs = recipe.arrays()
    if DRY:
        return
    import cupy

    start = time.perf_counter()
    results = launch_program(program, inputs)
    row["first_s"] = time.perf_counter() - start
    if os.environ.get("GPU_NO_TIMES"):
        row["ok"] = not recipe.differs(results, program.results)
        return
    wrong = recipe.differs(results, program.results)
    row["ok"], row["says"] = not wrong, "; ".join(wrong)[:300]
    placed = [
        cupy.asarray(a)
        if a.dtype.kind in "fiubc"
        and a.dtype.name in ("float32", "float16", "float64", "int32", "uint32", "int64", "uint8", "int8", "bool")
        else None
        for a in inputs
    ]
    if row["ok"] and all(p is not None for p in placed):
        launch_program(program, placed)
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(5):
            launch_program(program, placed)
        cupy.cuda.Device().synchronize()
        row["warm_us"] = 1e6 * (time.perf_counter() - start) / 5


def program(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    from runtime.programs_table import difference, programs

    case = programs()[name]
    start = time.perf_counter()
    compiled = case.compiled()
    row["compile_s"] = time.perf_counter() - start
    if DRY:
        start = time.perf_counter()
        row["ptx_bytes"] = len(compiled.compilation.lowering.ptx)
        row["ptx_s"] = time.perf_counter() - start
        return
    on_gpu = compiled.on("gpu")
    worst, calls = 0.0, []
    with np.load(case.folder / f"{name}.npz") as expected:
        for number, sizes in enumerate(case.case.sizes):
            start = time.perf_counter()
            results = on_gpu.run(case.inputs(sizes))
            calls.append(time.perf_counter() - start)
            worst = max(
                [worst, *(difference(np.asarray(a), expected[f"{number}/r{i}"]) for i, a in enumerate(results))]
            )
    row["first_s"] = calls[0]
    row["ok"] = worst <= case.case.tolerance
    row["says"] = f"{worst:.1e} of {case.case.tolerance:.1e}"
    row["log"] = dict(on_gpu.log)
    row["launches"] = on_gpu.platform.launches


def model(name: str, row: dict[str, Any], xla: dict[str, Any]) -> None:
    from runtime.models import TOLERANCE, compiled, runs, worst_difference

    start = time.perf_counter()
    made = compiled(name)
    row["compile_s"] = time.perf_counter() - start
    if DRY:
        start = time.perf_counter()
        row["ptx_bytes"] = len(made.compilation.lowering.ptx)
        row["ptx_s"] = time.perf_counter() - start
        return
    on_gpu = made.on("gpu")
    worst = 0.0
    start = time.perf_counter()
    for arguments, wanted in runs(name):
        worst = max(worst, worst_difference([np.asarray(a) for a in on_gpu.run(arguments)], wanted))
    row["first_s"] = time.perf_counter() - start
    row["ok"], row["says"], row["log"] = worst <= TOLERANCE, f"{worst:.1e}", dict(on_gpu.log)


@contextmanager
def gpu_to_itself() -> Iterator[None]:
    """No other worker uses the GPU meanwhile."""
    with open("/tmp/gpu.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def on_stream() -> Any:
    """A stream that can be captured: CUDA refuses that of the default stream."""
    from contextlib import nullcontext

    if DRY:
        return nullcontext()
    import cupy

    if not hasattr(on_stream, "stream"):
        on_stream.stream = cupy.cuda.Stream(non_blocking=True)
    return on_stream.stream


def main() -> None:
    cases = json.loads(Path(sys.argv[1]).read_text())
    out, counter = Path(sys.argv[2]), Path(sys.argv[3])
    deadline = float(os.environ.get("GPU_DEADLINE", "inf"))
    xla: dict[str, Any] = {}
    for prefix in ("corpus", "extra", "sweep"):
        path = HERE / f"xla_{prefix}.json.gz"
        if path.exists() and not DRY:
            xla |= {f"{prefix}/{key}": value for key, value in json.loads(gzip.open(path, "rt").read()).items()}
    while (number := take(counter)) < len(cases):
        if time.time() > deadline:
            break
        case = cases[number]
        row: dict[str, Any] = dict(case)
        with out.open("a") as file:
            file.write(json.dumps({"begins": case["name"], "pid": os.getpid()}) + "\n")
        sticky = False
        try:
            with on_stream():
                globals()[case["kind"]](case["name"], row, xla)
        except Exception as error:
            text = f"{type(error).__module__}.{type(error).__name__}: {error}"
            row["error"] = text[:600]
            row["where"] = traceback.format_exc().splitlines()[-7:-1]
            sticky = any(word in text for word in STICKY)
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        if sticky:
            os.execv(sys.executable, [sys.executable, *sys.argv])


main()
