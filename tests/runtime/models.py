"""The models of examples/models in small: their text and JAX's results are in tests/corpus/models, so that the tests need no JAX.

    python -m runtime.models             in an environment with jax 0.10.2: writes NAME.mlir and NAME.npz of all
    python -m runtime.models decoder     of these

NAME.npz holds the weights `w0`, `w1` ... in the order of the program's parameters, and for choice k of the sizes the inputs `k/i0` ... and
JAX's results on the CPU `k/r0` ... Weights are of few values, so that files are small.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from runtime.programs_table import difference

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
CORPUS = Path(__file__).parents[1] / "corpus" / "models"
NAMES = ("decoder", "encoder", "resnet", "unet", "mixture")
TOLERANCE = 2e-5
"""In units of the largest magnitude of a result; tokens are below 100, so that a single wrong token exceeds it."""


def compiled(name: str) -> Program:
    text = (CORPUS / f"{name}.mlir").read_text()
    return compile_program(parse_stablehlo(text, f"{name}.mlir"), CompileOptions(record="none"))


def runs(name: str) -> Iterator[tuple[list[Any], list[Any]]]:
    """For each choice of the sizes: the arguments, and JAX's results."""
    with np.load(CORPUS / f"{name}.npz") as arrays:
        weights = [arrays[f"w{i}"] for i in range(sum(key.startswith("w") for key in arrays))]
        for choice in sorted({key.partition("/")[0] for key in arrays if "/" in key}):
            kinds = {
                kind: [
                    arrays[f"{choice}/{kind}{i}"] for i in range(sum(k.startswith(f"{choice}/{kind}") for k in arrays))
                ]
                for kind in "ir"
            }
            yield [*weights, *kinds["i"]], kinds["r"]


def worst_difference(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Of all results; integers must be equal. raises AssertionError for other shapes"""
    assert len(found) == len(wanted)
    return max(
        difference(a, b) if b.dtype.kind == "f" else 0.0 if np.array_equal(a, b) else float("inf")
        for a, b in zip(found, wanted, strict=True)
    )


def write(name: str) -> None:
    import jax

    sys.path.insert(0, str(EXAMPLES))
    model = import_module("run").model(name)
    exported = model.exported()
    CORPUS.mkdir(exist_ok=True)
    # Paths of the machine that wrote the text are removed.
    text = re.sub(r'loc\("(?:/[^"]*/)?([\w.]+\.py)"', r'loc("\1"', exported.mlir_module())
    (CORPUS / f"{name}.mlir").write_text(text)
    kept = exported.module_kept_var_idx
    count = len(jax.tree.leaves(model.weights))
    arrays = {f"w{i}": array for i, array in enumerate(jax.tree.leaves(model.weights)) if i in kept}
    assert len(arrays) == count, "a weight is not used"
    for choice, sizes in enumerate(model.sizes):
        inputs = model.inputs(sizes)
        results = jax.tree.leaves(jax.jit(model.function)(model.weights, *inputs))
        used = [array for i, array in enumerate(inputs, count) if i in kept]
        arrays |= {f"{choice}/i{i}": np.asarray(array) for i, array in enumerate(used)}
        arrays |= {f"{choice}/r{i}": np.asarray(array) for i, array in enumerate(results)}
    np.savez_compressed(CORPUS / f"{name}.npz", **arrays)


if __name__ == "__main__":
    for each in sys.argv[1:] or NAMES:
        write(each)
