"""Programs at changing shapes, by systems that compile once and systems that compile again, on one CPU.

    python -m benchmarks.unknown_sizes --jax PYTHON --torch PYTHON --iree PYTHON [--shapes 20]

PYTHON is an interpreter with JAX 0.10.2; with PyTorch 2.13 and a C++ compiler on PATH; with iree-base-compiler and iree-base-runtime 3.13.
A system without one is left out. xla_emitters runs in this interpreter, by LLVM where llvmlite is installed.

Softmax and GELU over f32[b,s], and the layer of tests/corpus/stablehlo (attention, layer norm, GELU; f32[b,s,32]), at shapes drawn once for
all systems: b from 1 to 8, s from 1 to 128. JAX writes the StableHLO that xla_emitters and IREE compile, with symbolic sizes, and for IREE
without the assertions on shapes. A row: how often the program was compiled; seconds of the first call at every shape in turn, compiling
included; milliseconds of a call, the mean over all shapes in a second turn; the largest difference from float64. Each system compiles a
small program of another kind first, so that starting it does not count. A process of its own for each system, one after the other.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS = ("softmax", "gelu", "layer")
SYSTEMS = ("xla_emitters", "jax.jit", "jax.export", "torch.compile", "IREE")


# ------------------------------------------------------------------------------------------------------------- programs


def inputs_of(program: str, b: int, s: int) -> list[Any]:
    random = np.random.default_rng([b, s])
    shapes = [(b, s, 32), (32, 32), (32, 64), (32,), (32,)] if program == "layer" else [(b, s)]
    return [random.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]


def in_float64(program: str, inputs: Sequence[Any]) -> Any:
    """The program written for NumPy."""
    x, *weights = (array.astype(np.float64) for array in inputs)
    if program == "softmax":
        return _softmax(x)
    return _gelu(x) if program == "gelu" else _layer(x, *weights)


def _softmax(x: Any) -> Any:
    shares = np.exp(x - x.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _layer(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
    b, s, d = x.shape
    q = (x @ w1).reshape(b, s, 4, d // 4).transpose(0, 2, 1, 3)
    mixed = _softmax(q @ q.swapaxes(-1, -2) / np.sqrt(d / 4)) @ q
    x = x + mixed.transpose(0, 2, 1, 3).reshape(b, s, d)
    centered = x - x.mean(-1, keepdims=True)
    return _gelu((centered / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias) @ w2)


def in_jax(program: str) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def layer(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
        b, s, d = x.shape
        q = (x @ w1).reshape(b, s, 4, d // 4).transpose(0, 2, 1, 3)
        weights = jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, q) / jnp.sqrt(d / 4), axis=-1)
        x = x + jnp.einsum("bhst,bhtd->bhsd", weights, q).transpose(0, 2, 1, 3).reshape(b, s, d)
        centered = x - x.mean(-1, keepdims=True)
        return jax.nn.gelu((centered * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias) @ w2)

    return {"softmax": jax.nn.softmax, "gelu": jax.nn.gelu, "layer": layer}[program]


def in_torch(program: str) -> Callable[..., Any]:
    import torch

    def layer(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
        b, s, d = x.shape
        q = (x @ w1).reshape(b, s, 4, d // 4).permute(0, 2, 1, 3)
        mixed = torch.softmax(q @ q.transpose(-1, -2) / (d / 4) ** 0.5, -1) @ q
        x = x + mixed.permute(0, 2, 1, 3).reshape(b, s, d)
        return torch.nn.functional.gelu(
            torch.nn.functional.layer_norm(x, (d,), scale, bias, 1e-5) @ w2, approximate="tanh"
        )

    functions: dict[str, Callable[..., Any]] = {
        "softmax": lambda x: torch.softmax(x, -1),
        "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "layer": layer,
    }
    return functions[program]


def exported(program: str) -> Any:
    """The program with symbolic sizes, as jax.export makes it."""
    import jax
    from jax import export

    shapes = ("b, s, 32", *("...",) * 4) if program == "layer" else ("b, s",)
    specs = export.symbolic_args_specs(tuple(inputs_of(program, 2, 3)), shapes)
    return export.export(jax.jit(in_jax(program)))(*specs)


def write_texts(folder: Path) -> None:
    """The StableHLO of all programs, and of one that systems compile first."""
    import jax
    from jax import export

    for program in PROGRAMS:
        (folder / f"{program}.mlir").write_text(exported(program).mlir_module())
    (spec,) = export.symbolic_args_specs((np.zeros(3, np.float32),), "n")
    (folder / "first.mlir").write_text(export.export(jax.jit(lambda x: x * x + 1))(spec).mlir_module())


# -------------------------------------------------------------------------------------------------------------- systems


class Ours:
    """xla_emitters: a text, compiled at its first call."""

    def __init__(self, program: str, folder: Path) -> None:
        import xla_emitters as xe

        self.program = xe.compile(str(folder / f"{program}.mlir"), record="none")

    def __call__(self, *inputs: Any) -> Any:
        return self.program(*inputs)

    compiles = 1


class Jit:
    """jax.jit, which compiles for each shape."""

    def __init__(self, program: str, _: Path) -> None:
        import jax

        self.jitted: Any = jax.jit((lambda x: x * x + 1) if program == "first" else self.function(program))

    def function(self, program: str) -> Callable[..., Any]:
        return in_jax(program)

    def __call__(self, *inputs: Any) -> Any:
        return self.jitted(*inputs)

    @property
    def compiles(self) -> int:
        return self.jitted._cache_size()


class Export(Jit):
    """What jax.export made once with symbolic sizes; calling it compiles for each shape."""

    def function(self, program: str) -> Callable[..., Any]:
        return exported(program).call


class Torch:
    """torch.compile(dynamic=True): compiled again where a guard is broken."""

    def __init__(self, program: str, _: Path) -> None:
        import torch
        from torch._dynamo.utils import counters

        counters.clear()
        self.counters, self.from_numpy = counters, torch.from_numpy
        self.compiled = torch.compile((lambda x: x * x + 1) if program == "first" else in_torch(program), dynamic=True)

    def __call__(self, *inputs: Any) -> Any:
        return self.compiled(*map(self.from_numpy, inputs)).numpy()

    @property
    def compiles(self) -> int:
        return self.counters["stats"]["unique_graphs"]


class Iree:
    """IREE for this CPU, ahead of time."""

    compiles = 1

    def __init__(self, program: str, folder: Path) -> None:
        import iree.compiler
        import iree.runtime

        text = (folder / f"{program}.mlir").read_text()
        lines = [line for line in text.splitlines() if "@shape_assertion" not in line]
        code = iree.compiler.compile_str(
            "\n".join(lines),
            target_backends=["llvm-cpu"],
            input_type="stablehlo",
            extra_args=["--iree-llvmcpu-target-cpu=host"],
        )
        self.function: Any = iree.runtime.load_vm_flatbuffer(code, driver="local-task")["main"]

    def __call__(self, *inputs: Any) -> Any:
        return self.function(*inputs).to_host()


CLASSES: dict[str, Callable[[str, Path], Any]] = dict(zip(SYSTEMS, (Ours, Jit, Export, Torch, Iree), strict=True))


# --------------------------------------------------------------------------------------------------------------- running


def measured(system: str, program: str, folder: Path, shapes: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The numbers of a row, or the reason why there are none."""
    drawn = [inputs_of(program, b, s) for b, s in shapes]
    start = time.perf_counter()
    try:
        run = CLASSES[system](program, folder)
    except Exception as error:  # of any of the systems
        return {"refused": next((line for line in str(error).splitlines() if "error:" in line), str(error))}
    results = [np.asarray(run(*inputs)) for inputs in drawn]
    first = time.perf_counter() - start
    start = time.perf_counter()
    for inputs in drawn:
        np.asarray(run(*inputs))
    warm = (time.perf_counter() - start) / len(drawn)
    errors = [np.abs(found - in_float64(program, inputs)).max() for found, inputs in zip(results, drawn, strict=True)]
    return {"compiles": run.compiles, "first": first, "warm": 1e3 * warm, "error": float(max(errors))}


def child(system: str, folder: Path, shapes: Sequence[tuple[int, int]]) -> None:
    """Prints the rows of a system as JSON, its version first."""
    np.asarray(CLASSES[system]("first", folder)(np.ones(5, np.float32)))
    rows = {program: measured(system, program, folder, shapes) for program in PROGRAMS}
    print(json.dumps(rows))


def by_child(python: str, *arguments: str) -> str:
    """What this file prints in another interpreter. raises subprocess.CalledProcessError"""
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    command = [python, __file__, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=True).stdout


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="programs at shapes that change")
    for name in ("jax", "torch", "iree"):
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"an interpreter with {name}")
    parser.add_argument("--shapes", type=int, default=20)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    random = np.random.default_rng(0)
    shapes = [(int(random.integers(1, 9)), int(random.integers(1, 129))) for _ in range(given.shapes)]
    if given.child:
        what, folder = given.child.split(":", 1)
        return write_texts(Path(folder)) if what == "texts" else child(what, Path(folder), shapes)
    if not given.jax:
        parser.error("--jax is needed: it writes the programs")
    from benchmarks.table import header, print_table

    print(header(f"{given.shapes} shapes, {len(set(shapes))} of them different; first calls in turn, then warm ones"))
    pythons = dict(zip(SYSTEMS, (sys.executable, given.jax, given.jax, given.torch, given.iree), strict=True))
    rows, notes = list[list[str]](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        by_child(given.jax, "--child", f"texts:{folder}")
        for system, python in pythons.items():
            if not python:
                continue
            printed = by_child(python, "--shapes", str(given.shapes), "--child", f"{system}:{folder}")
            for program, found in json.loads(printed.splitlines()[-1]).items():
                if "refused" in found:
                    said = found["refused"].partition("error:")[2] or found["refused"]
                    notes.append(f"{system} refuses {program}: {said.strip()[:160]}")
                    rows.append([f"{program} {system}", "refused", "", "", ""])
                else:
                    times = f"{found['first']:.2f}", f"{found['warm']:.2f}", f"{found['error']:.1e}"
                    rows.append([f"{program} {system}", str(found["compiles"]), *times])
    rows.sort(key=lambda row: PROGRAMS.index(row[0].split()[0]))
    print_table(("program, system", "compiles", "first calls s", "warm ms", "difference"), rows)
    print("\n".join(notes))


if __name__ == "__main__":
    main()
