"""The models of examples/models in full, compiled once each and run at several sizes, beside JAX on the same CPU.

    python -m runtime.models_table                  a table of all; exit code 1 where one differs, or was compiled more than once
    python -m runtime.models_table decoder resnet   of these

A row of a model: its weights in millions; fusions, different kernels of the CPU, calls of library functions, as the program has them;
seconds to trace and export it by JAX, to compile it with its machine code, and CPU seconds of the latter, in which the load of the machine
does not count. A row of a shape: the largest difference from JAX, in units of a result's largest magnitude (tokens: how many differ);
milliseconds of the first call at that shape, of a warm one, and JAX's of the same; megabytes of the buffers of a call at its peak, the
least that its order needs (`live_set`), the quotient.
It needs JAX.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from runtime.live_set import live_set
from runtime.models import EXAMPLES, NAMES, TOLERANCE
from runtime.programs_table import difference
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from benchmarks.table import header
from xla_emitters.dialects.disc_ral import DispatchOp
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.pipelines.programs import COMPILATIONS
from xla_emitters.support.extras import install_command

MOST_SECONDS = 30
LIBRARY = ("ral_gemm", "ral_conv", "ral_topk", "ral_sort", "ral_rng")
WARM = 3


def median_of(run: Callable[[], Any]) -> float:
    """Milliseconds of a warm call."""
    times = list[float]()
    for _ in range(WARM):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def rows(name: str) -> tuple[bool, list[str]]:
    """Whether a model is right, and its rows."""
    jax: Any = import_module("jax")
    model = import_module("run").model(name, full=True)
    leaves = jax.tree.leaves(model.weights)
    start = time.perf_counter()
    exported = model.exported()
    traced, before = time.perf_counter() - start, COMPILATIONS.made
    start, cpu_start = time.perf_counter(), time.process_time()
    program = xe.compile(exported, record="none")
    way = program.compilation.cpu
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    fusions = sum(isinstance(op, FusionOp) for op in program.compilation.fused.walk())
    kernels = len(way.lowering.parameters) if way.lowering else 0
    calls = library_calls(way.lowering.host if way.lowering else program.compilation.module)
    weights = sum(leaf.size for leaf in leaves) / 1e6
    lines = [
        f"{name}: {weights:.1f} million weights, {fusions} fusions, {kernels} different kernels, {calls} library calls; "
        f"exported in {traced:.1f} s, compiled in {seconds:.1f} s ({cpu_seconds:.1f} s of CPU), runs by {way.name}"
    ]
    jitted, is_right = jax.jit(model.function), True
    for sizes in model.sizes:
        inputs = model.inputs(sizes)
        arguments = (model.weights, *inputs)
        start = time.perf_counter()
        found = program(*arguments)
        first = 1e3 * (time.perf_counter() - start)
        wanted = jitted(*arguments)
        pairs = [(a, np.asarray(b)) for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)]
        error = max(difference(a, b) for a, b in pairs if b.dtype.kind == "f") if _has_floats(pairs) else 0.0
        differ = sum(int((a != b).sum()) for a, b in pairs if b.dtype.kind in "iu")
        is_right &= error <= TOLERANCE and differ == 0
        warm = median_of(partial(program, *arguments))
        theirs = median_of(lambda arguments=arguments: jax.block_until_ready(jitted(*arguments)))
        flat = [array for i, array in enumerate([*leaves, *inputs]) if i in exported.module_kept_var_idx]
        peak, least = program.memory(flat).peak, live_set(program, flat)
        at = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
        what = f"{error:10.1e}" if _has_floats(pairs) else f"{differ:10}"
        times = f"{first:9.1f} {warm:9.1f} {theirs:9.1f} {warm / theirs:9.1f}"
        memory = f"{peak / 1e6:9.3f} {least / 1e6:9.3f} {peak / max(least, 1):9.2f}"
        lines.append(f"  {at:22} {what} {times} {memory}")
    is_right &= COMPILATIONS.made == before + 1 and cpu_seconds <= MOST_SECONDS
    return is_right, [
        *lines,
        f"  {'right' if is_right else 'NOT AS IT SHOULD BE'}, {COMPILATIONS.made - before} compilation",
    ]


def _has_floats(pairs: Sequence[tuple[Any, Any]]) -> bool:
    return any(wanted.dtype.kind == "f" for _, wanted in pairs)


def library_calls(host: ModuleOp) -> int:
    """Calls of library functions in a host program, each counted once."""
    return sum(isinstance(op, DispatchOp) and op.call.data.startswith(LIBRARY) for op in host.walk())


def main(arguments: Sequence[str]) -> int:
    if find_spec("jax") is None:
        print(
            f"error: this compares with JAX, which is not installed: {install_command(extras='jax')}", file=sys.stderr
        )
        return 4
    jax: Any = import_module("jax")
    jax.config.update("jax_platforms", "cpu")
    sys.path.insert(0, str(EXAMPLES))
    print(header(f"models with unknown sizes, JAX {jax.__version__}, NumPy {np.__version__}"))
    titles = ("first ms", "warm ms", "JAX ms", "warm/JAX", "peak MB", "live MB", "peak/live")
    print(f"  {'sizes':22} {'difference':>10} {' '.join(f'{title:>9}' for title in titles)}")
    verdicts = list[bool]()
    for name in arguments or NAMES:
        is_right, lines = rows(name)
        verdicts.append(is_right)
        print("\n".join(lines), flush=True)
    print(f"{sum(verdicts)} of {len(verdicts)} models right, compiled once each in at most {MOST_SECONDS} s of CPU")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
