"""Makes the files of `tests/corpus/modules` from `jax_programs`: the real XLA:GPU optimizes each, without a GPU; XLA:CPU computes it.

    PYTHONPATH=tests python -m runtime.jax_modules              # all; in an environment with the extras [jax,ptxas]
    PYTHONPATH=tests python -m runtime.jax_modules softmax rnn  # these

A program is written again only if one of its files or its recipe changed.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from runtime.jax_programs import PROGRAMS, JaxProgram
from runtime.modules import MODULES, SETTINGS, draw

from xla_emitters.dtypes import dtype
from xla_emitters.explore.optimize import optimize
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import save_arrays

# All ways in which XLA 0.10.2 gives a fusion or a dot to Triton.
WITHOUT_TRITON: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "lab/gpu/without_triton.py"))["OFF"]
FLAGS = {"": WITHOUT_TRITON, ".triton": {}}
HLO_NAMES = {"bool": "pred", "int": "s", "uint": "u", "float": "f", "complex": "c", "bfloat": "bf"}


def hlo_name(kind: np.dtype[Any]) -> str:
    """HLO's name of a NumPy type: "f32" for float32."""
    letters = kind.name.rstrip("0123456789")
    return HLO_NAMES[letters] + kind.name.removeprefix(letters)


def make(name: str, program: JaxProgram) -> dict[str, Any]:
    """Writes the files of one program; returns its recipe."""
    leaves, tree = jax.tree.flatten(program.arguments)
    arrays = [draw(words, number) for number, words in enumerate(leaves)]
    arguments = jax.tree.unflatten(tree, arrays)
    with jax.enable_x64(program.wide):
        function = jax.jit(program.function, donate_argnums=program.donated, keep_unused=True)
        # The results first: a donated array must not be one that is used again.
        results = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(program.function)(*arguments))]
        lowered = function.trace(*arguments).lower(lowering_platforms=("cuda",))
    stablehlo = lowered.as_text(debug_info=True)
    for setting in SETTINGS:
        text = optimize(stablehlo, flags=FLAGS[setting], name=name)
        (MODULES / f"{name}{setting}.hlo").write_text(text)
    specs = [ArraySpec(hlo_name(array.dtype), array.shape, tuple(reversed(range(array.ndim)))) for array in results]
    for array, spec in zip(results, specs, strict=True):
        assert dtype(spec.dtype).numpy == array.dtype
        assert array.dtype.kind not in "fc" or np.isfinite(array).all(), f"{name} computes what is not finite"
    save_arrays(MODULES / f"{name}.npz", "r", results, specs)
    return {"inputs": leaves, "atol": program.atol, "rtol": program.rtol}


def main(names: list[str]) -> None:
    jax.config.update("jax_traceback_in_locations_limit", 0)
    MODULES.mkdir(exist_ok=True)
    index = MODULES / "modules.json"
    rows = json.loads(index.read_text()) if index.exists() else {}
    for name in names or PROGRAMS:
        rows[name] = make(name, PROGRAMS[name])
        print(name, flush=True)
    rows = {name: rows[name] for name in PROGRAMS if name in rows}
    index.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in rows.items()) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
