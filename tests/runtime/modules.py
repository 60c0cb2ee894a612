"""The modules of `tests/corpus/modules`: JAX programs as the real XLA:GPU optimized them for an H200, and what they compute.

    softmax.hlo          XLA's Triton fusions off            softmax.npz    r0, r1, ...: what XLA:CPU makes of the JAX function
    softmax.triton.hlo   XLA's defaults                      modules.json   how the inputs are drawn, what may differ

Each text is what `--xla_dump_to` writes as `*.gpu_after_optimizations.txt`, with constants written out. Nothing here needs JAX:
`jax_modules` made the files. An input is drawn from words:

    f32[16,64]              normal, mean 0, deviation 1       s32[4] 0..15        integers, both ends included
    f32[16] 0.1..2          uniform                           u32[2] any          all bit patterns
    s32[8] permutation      0 to 7 in any order               pred[8]             either, with equal odds
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import load_arrays

MODULES = Path(__file__).parents[1] / "corpus" / "modules"
SETTINGS = {"": "Triton off", ".triton": "XLA's defaults"}
"""The text between a program's name and `.hlo` -> the settings of XLA."""

_WORDS = re.compile(r"(?P<type>\w+)\[(?P<shape>[\d,]*)\](?: (?:(?P<low>[-\d.]+)\.\.(?P<high>[-\d.]+)|(?P<word>\w+)))?")


@dataclass(frozen=True)
class Recipe:
    """How a program is run and checked.

    inputs      a draw for each parameter of ENTRY
    atol, rtol  allowed difference from `expected`, as in `numpy.isclose`; both zero: no bit may differ
    """

    name: str
    inputs: tuple[str, ...]
    atol: float
    rtol: float

    def arrays(self) -> list[Array]:
        """The inputs, the same in every run and every version of NumPy."""
        return [draw(words, number) for number, words in enumerate(self.inputs)]

    @property
    def expected(self) -> Path:
        """The `.npz` of the results."""
        return MODULES / f"{self.name}.npz"

    def differs(self, results: Sequence[Array], specs: Sequence[ArraySpec]) -> tuple[str, ...]:
        """What is wrong with results: a line for each that differs from the expected ones by more than allowed."""
        found: list[str] = []
        for number, (got, wanted) in enumerate(zip(results, load_arrays(self.expected, "r", specs), strict=True)):
            exact = not (self.atol or self.rtol) or wanted.dtype.kind in "biu"
            kind = wanted.dtype if exact else np.promote_types(np.float64, _numpys(wanted.dtype))
            close = got == wanted if exact else np.isclose(got.astype(kind), wanted.astype(kind), self.rtol, self.atol)
            if got.shape != wanted.shape or not close.all():
                found.append(f"r{number}: {close.size - np.count_nonzero(close)} of {close.size} differ")
        return tuple(found)

    def text(self, setting: str) -> Path:
        """The module's file; `setting` is a key of `SETTINGS`."""
        return MODULES / f"{self.name}{setting}.hlo"


@cache
def recipes() -> dict[str, Recipe]:
    """Every program by its name."""
    data = json.loads((MODULES / "modules.json").read_text())
    return {name: Recipe(name, tuple(row["inputs"]), row["atol"], row["rtol"]) for name, row in data.items()}


def _numpys(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The type itself, or f32 for a type that NumPy lacks: it contains all values of those types."""
    return kind if kind.isbuiltin == 1 else np.dtype(np.float32)


def draw(words: str, seed: int) -> Array:
    """The array that `words` describe; the module's docstring lists them. raises ValueError for other words."""
    found = _WORDS.fullmatch(words)
    if found is None:
        raise ValueError(f"no draw is written {words!r}")
    kind = dtype(found["type"])
    shape: Sequence[int] = [int(extent) for extent in found["shape"].split(",") if extent]
    # The old generator: NumPy promises that its stream never changes.
    random = np.random.RandomState(seed)
    target = kind.numpy
    if found["word"] == "permutation":
        return random.permutation(shape[0]).astype(target)
    if found["word"] == "any":
        return np.frombuffer(random.bytes(int(np.prod(shape)) * target.itemsize), target).reshape(shape).copy()
    if found["type"] == "pred":
        return random.randint(0, 2, shape).astype(target)
    if found["type"].startswith("c"):
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(target)
    if found["low"] is None:
        return np.asarray(random.standard_normal(shape)).astype(target)
    if re.fullmatch(r"[su]\d+", found["type"]):
        return np.asarray(random.randint(int(found["low"]), int(found["high"]) + 1, shape)).astype(target)
    return np.asarray(random.uniform(float(found["low"]), float(found["high"]), shape)).astype(target)
