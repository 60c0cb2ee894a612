"""JAX functions and models on a GPU: XLA as it comes, XLA with its Triton fusions off, our code for the module of each, as XLA would choose
and by price, and the program of any size. Device time (a captured graph between events), time as called, and each kernel of the program.

Used by work.py. GPU_CASES: another file of functions, in place of cases.py; GPU_SMALL=1: small sizes.
"""

import os
import runpy
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
PROJECT = Path(os.environ["GPU_PROJECT"])
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from without_triton import OFF  # noqa: E402

DRY, SMALL = os.environ.get("GPU_DRY"), os.environ.get("GPU_SMALL")
CASES: dict[str, Any] = runpy.run_path(os.environ.get("GPU_CASES") or str(Path(__file__).parent / "cases.py"))["CASES"]
f32, bf16, s32 = jnp.float32, jnp.bfloat16, jnp.int32


def made_inputs(specs: Any) -> list[Any]:
    keys = jax.random.split(jax.random.key(7), len(specs))
    found = []
    for key, (shape, kind, highest) in zip(keys, specs, strict=True):
        if highest is None:
            found.append(jax.random.normal(key, shape, f32).astype(kind))
        else:
            found.append(jax.random.randint(key, shape, 0, highest + 1, s32).astype(kind))
    return [jax.block_until_ready(a) for a in found]


def to_cupy(array: Any, cupy: Any) -> Any:
    if array.dtype == bf16:
        array = jax.block_until_ready(jax.lax.bitcast_convert_type(array, jnp.uint16))
    return cupy.from_dlpack(array)


def to_jax(array: Any, like: Any) -> Any:
    found = jnp.asarray(jax.dlpack.from_dlpack(array))
    return jax.lax.bitcast_convert_type(found, bf16) if like.dtype == bf16 and found.dtype == jnp.uint16 else found


def worst(found: Any, wanted: Any) -> float:
    largest = 0.0
    for a, b in zip(found, wanted, strict=True):
        if a.shape != b.shape:
            return float("inf")
        x, y = a.astype(f32), b.astype(f32)
        largest = max(largest, float(jnp.abs(x - y).max() / jnp.maximum(jnp.abs(y).max(), 1e-30)) if a.size else 0.0)
    return largest


def wall(run: Any, finish: Any, most: int = 60) -> float:
    """Microseconds a call, calls queued one after the other; the least of five rounds."""
    finish(run())
    start = time.perf_counter()
    finish(run())
    once = time.perf_counter() - start
    count = max(3, min(most, int(0.02 / max(once, 1e-6))))
    found = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            last = run()
        finish(last)
        found.append(1e6 * (time.perf_counter() - start) / count)
    return min(found)


def graph_time(run: Any, cupy: Any) -> float:
    stream = cupy.cuda.get_current_stream()
    run()
    stream.synchronize()
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
    try:
        kept = run()
    finally:
        graph = stream.end_capture()
    found = []
    for _ in range(12):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(stream)
        graph.launch(stream)
        stop.record(stream)
        stop.synchronize()
        found.append(1e3 * cupy.cuda.get_elapsed_time(start, stop))
    del kept
    return float(np.min(found[2:]))


def measure(name: str, row: dict[str, Any], gpu_to_itself: Any, on_stream: Any) -> None:
    """XLA as it comes and with Triton off; our kernels for the module of each, as XLA would choose and by price; the program."""
    import xla_emitters as xe
    from xla_emitters.runtime.cuda.cupy_launcher import launch_program

    function, specs, shapes = CASES[name]
    arguments = [jax.ShapeDtypeStruct(shape, kind) for shape, kind, _ in specs]
    lowered = jax.jit(function).lower(*arguments)
    made: dict[str, Any] = {}
    for tag in ("xla", "off") if not DRY else ("xla",):
        try:
            made[tag] = lowered.compile(compiler_options=OFF if tag == "off" else None)
        except Exception as error:
            row[f"{tag}_error"] = str(error)[:200]
    programs: dict[str, Any] = {}
    for tag, executable in made.items() if not DRY else ():
        text = executable.as_text()
        row[f"{tag}_triton"] = text.count("__triton")
        row[f"{tag}_fusions"] = text.count(" fusion(")
        for how, options in (("", {}), ("_price", {"tune": "price"})):
            if how and tag == "off":
                continue
            begun = time.time()
            try:
                programs[f"ours_{tag}{how}"] = xe.compile(text, target="h200", record="none", **options)
            except Exception as error:
                row[f"ours_{tag}{how}_failed"] = f"{type(error).__name__}: {error}"[:400]
            row[f"ours_{tag}{how}_compile_s"] = time.time() - begun
    dynamic = None
    if shapes:
        begun = time.time()
        try:
            dynamic = xe.from_jax(function, *arguments, dynamic=True, shapes=shapes, target="h200", record="none")
            row["dyn_ptx_bytes"] = len(dynamic.code)
        except Exception as error:
            row["dyn_failed"] = f"{type(error).__name__}: {error}"[:400]
        row["dyn_compile_s"] = time.time() - begun
    if DRY:
        return
    import cupy

    stream = cupy.cuda.get_current_stream()
    with gpu_to_itself():
        inputs = made_inputs(specs)
        placed = [to_cupy(a, cupy) for a in inputs]
        wanted = None
        row["bytes_in"] = sum(int(np.prod(a.shape)) * a.dtype.itemsize for a in inputs)
        for tag, executable in made.items():
            results = jax.tree.leaves(executable(*inputs))
            if wanted is None:
                wanted = results
                row["bytes_out"] = sum(int(np.prod(a.shape)) * a.dtype.itemsize for a in results)
            row[f"{tag}_us"] = wall(partial(executable, *inputs), jax.block_until_ready)
        for tag, program in programs.items():
            try:
                mine = launch_program(program, placed)
                stream.synchronize()
                row[f"{tag}_error"] = worst([to_jax(a, b) for a, b in zip(mine, wanted, strict=True)], wanted)
                del mine
                row[f"{tag}_called_us"] = wall(partial(launch_program, program, placed), lambda r: stream.synchronize())
                row[f"{tag}_kernels"] = [[k.name, list(k.launch.grid), list(k.launch.block)] for k in program.kernels]
                row[f"{tag}_us"] = graph_time(partial(launch_program, program, placed), cupy)
            except Exception as error:
                row[f"{tag}_failed"] = f"{type(error).__name__}: {error}"[:300]
        if dynamic is not None:
            try:
                run_dynamic(dynamic, placed, wanted, row, stream, cupy)
            except Exception as error:
                row["dyn_failed"] = f"{type(error).__name__}: {error}"[:400]
        row["ok"] = all(v < 0.02 for k, v in row.items() if k.endswith("_error") and isinstance(v, float))
        row["says"] = ""
        cupy.get_default_memory_pool().free_all_blocks()


def run_dynamic(program: Any, placed: Any, wanted: Any, row: dict[str, Any], stream: Any, cupy: Any) -> None:
    """Time as called, and of every kernel."""
    on_gpu = program.on("gpu")
    mine = on_gpu.run(placed)
    stream.synchronize()
    if wanted is not None:
        row["dyn_error"] = worst([to_jax(a, b) for a, b in zip(mine, wanted, strict=True)], wanted)
    del mine
    row["dyn_us"] = wall(lambda: on_gpu.run(placed), lambda r: stream.synchronize())
    row["dyn_log"] = dict(on_gpu.log)
    events: list[Any] = []

    def watch(frame: Any, step: Any, run: Any) -> Any:
        """The step between two events."""
        if not hasattr(step, "kernel"):
            return run
        grid, block = frame.values(step.grid), frame.values(step.block)

        def watched() -> None:
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            run()
            stop.record(stream)
            events.append((step.kernel, list(grid()), list(block()), start, stop))

        return watched

    for _ in range(3):
        events.clear()
        on_gpu.loaded.run_watched(placed, watch)
        stream.synchronize()
    timed = [[n, g, b, round(1e3 * cupy.cuda.get_elapsed_time(start, stop), 2)] for n, g, b, start, stop in events]
    row["dyn_kernels"], row["dyn_launches"] = timed[:60], len(timed)
    row["dyn_kernel_us"] = sum(kernel[3] for kernel in timed)


def measure_model(name: str, row: dict[str, Any], gpu_to_itself: Any, on_stream: Any) -> None:
    """A model of examples/models in full, at its last sizes, beside JAX on the same GPU."""
    sys.path.insert(0, str(PROJECT / "examples" / "models"))
    from run import model as build  # type: ignore[import-not-found]

    import xla_emitters as xe

    full = not SMALL
    made = build(name, full=full)
    begun = time.time()
    exported = made.exported()
    row["export_s"] = time.time() - begun
    begun = time.time()
    program = xe.compile(exported, record="none")
    row["compile_s"] = time.time() - begun
    begun = time.time()
    row["ptx_bytes"] = len(program.compilation.lowering.ptx)
    row["ptx_s"] = time.time() - begun
    sizes = made.sizes[-1]
    inputs = made.inputs(sizes)
    if DRY:
        return
    import cupy

    stream = cupy.cuda.get_current_stream()
    leaves = jax.tree.leaves((made.weights, *inputs))
    kept = sorted(exported.module_kept_var_idx)
    on_device = [jax.device_put(jnp.asarray(a)) for a in leaves]
    arguments = jax.tree.unflatten(jax.tree.structure((made.weights, *inputs)), on_device)
    begun = time.time()
    jitted = jax.jit(made.function)
    with jax.default_matmul_precision("highest"):
        exact = jax.jit(lambda *a: made.function(*a))
        wanted = jax.tree.leaves(jax.block_until_ready(exact(*arguments)))
    jax.block_until_ready(jitted(*arguments))
    row["jax_compile_s"] = time.time() - begun
    placed = [to_cupy(on_device[i], cupy) for i in kept]
    on_gpu = program.on("gpu")
    begun = time.time()
    mine = on_gpu.run(placed)
    stream.synchronize()
    row["first_s"] = time.time() - begun
    row["dyn_error"] = worst([to_jax(a, b) for a, b in zip(mine, wanted, strict=True)], wanted)
    with gpu_to_itself():
        row["jax_us"] = wall(lambda: jitted(*arguments), jax.block_until_ready, 5)
        row["jax_exact_us"] = wall(lambda: exact(*arguments), jax.block_until_ready, 5)
        run_dynamic(program, placed, None, row, stream, cupy)
    row["ok"], row["says"] = row["dyn_error"] < 1e-3, f"{row['dyn_error']:.1e}"
