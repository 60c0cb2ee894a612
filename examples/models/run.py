"""The models of this folder, compiled once each and run at several sizes beside JAX.

    python examples/models/run.py                   all, in small
    python examples/models/run.py decoder --full    one, as large as its file says
    python examples/models/run.py decoder --write decoder.mlir      its StableHLO, for the command line

It needs the extra [jax]. Weights are random: what is compared is what JAX computes with them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

import xla_emitters as xe

FUNCTIONS = {
    "decoder": "generate",
    "encoder": "encode",
    "resnet": "classify",
    "unet": "denoise",
    "mixture": "mix",
}
"""Of each model: its file, and the function that is compiled."""


@dataclass(frozen=True)
class Model:
    """A model with its weights.

    function  of weights and inputs, a plain JAX function
    shapes    of its arguments, as jax.export takes them: the unknown sizes by name
    sizes     the choices of them at which it is run
    """

    name: str
    function: Callable[..., Any]
    weights: Any
    shapes: tuple[str, ...]
    constraints: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    draw_inputs: Callable[[Mapping[str, int], np.random.Generator], tuple[Any, ...]]

    def inputs(self, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        """Random inputs of these sizes, the same each time."""
        return self.draw_inputs(sizes, np.random.default_rng(list(sizes.values())))

    def exported(self) -> Any:
        """The model as jax.export makes it, with symbolic sizes."""
        arguments = (self.weights, *self.inputs(self.sizes[0]))
        specs = export.symbolic_args_specs(arguments, self.shapes, constraints=self.constraints)
        return export.export(jax.jit(self.function), platforms=["cuda"])(*specs)


def model(name: str, *, full: bool = False) -> Model:
    """A model of this folder, small or as large as its file says."""
    module: Any = import_module(name)
    config = module.Config() if full else module.SMALL
    return Model(
        name,
        partial(getattr(module, FUNCTIONS[name]), config),
        module.parameters(config, partial(weight, np.random.default_rng(0))),
        module.SHAPES,
        getattr(module, "CONSTRAINTS", ()),
        module.SIZES if full else module.SMALL_SIZES,
        partial(module.inputs, config),
    )


def weight(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """Vectors are around 1, matrices keep the magnitude of what they multiply; all are of 17 values, so that a file with them is small."""
    coarse = random.integers(-8, 9, shape).astype(np.float32) / 8
    if len(shape) == 1:
        return 1 + coarse / 4
    return coarse * np.float32(2.0 ** -round(np.log2(np.prod(shape[:-1])) / 2))


def difference(found: Any, wanted: Any) -> float:
    """The largest over all results, in units of the largest magnitude of each, or of 1."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return max(_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs)


def _difference(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    assert found.shape == wanted.shape, f"shape {found.shape}, JAX has {wanted.shape}"
    return float(np.abs(found - wanted).max(initial=0.0) / np.abs(wanted).max(initial=1.0))


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="models with unknown sizes, beside JAX")
    parser.add_argument("names", nargs="*", choices=[*FUNCTIONS, []], help="default: all")
    parser.add_argument("--full", action="store_true", help="as large as the file says, not small")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the StableHLO of one model, and end")
    given = parser.parse_args(arguments)
    jax.config.update("jax_platforms", "cpu")
    for name in given.names or FUNCTIONS:
        chosen = model(name, full=given.full)
        if given.write:
            given.write.write_text(chosen.exported().mlir_module())
            return
        seconds, program = timed(partial(xe.compile, chosen.exported()))
        more, way = timed(lambda program=program: program.compilation.cpu.name)
        print(f"{name}: compiled in {seconds:.1f} s, for the CPU in {more:.1f} s more ({way})")
        jitted = jax.jit(chosen.function)
        for sizes in chosen.sizes:
            inputs = (chosen.weights, *chosen.inputs(sizes))
            first, found = timed(partial(program, *inputs))
            wanted = jitted(*inputs)
            at = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
            print(f"  {at:24} {1e3 * first:9.1f} ms, difference from JAX {difference(found, wanted):.1e}", flush=True)


if __name__ == "__main__":
    main()
