"""Makes a bundle: kernels compiled here for a machine that has only Python, NumPy, ml_dtypes and CuPy.

    kernels.zip
      __main__.py                 `python kernels.zip` checks and times everything (bundle_main.py)
      draws.py  packing.py        our modules that it imports
      manifest.json               cases: parameters with the recipe and checksum of their draw, results, kernels with launch and arguments
      gelu/hlo.txt                the HLO text that was compiled
      gelu/ours-0.ptx             one per code ("ours", or a rival such as XLA's own PTX) and kernel
      gelu/expected.npz           r0.positions, r0.low, r0.high: the compared positions of result 0 and the bounds there

Results up to 1 MiB are compared whole; larger ones at 65,536 positions: the first and last elements and a seeded choice.
Nothing in a bundle is pickled. Source: docs/reference/contracts "Bundle".
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.program import ArraySpec, Kernel, Program, kernel_json
from xla_emitters.runtime import bundle_main, draws, packing
from xla_emitters.runtime.arrays import bit_pattern
from xla_emitters.runtime.draws import Places
from xla_emitters.runtime.tolerance import Bounds

WHOLE_BYTES = 1 << 20
POSITIONS = 65_536
# So many elements at each end are always compared: bounds checks fail in the first and the last block.
EDGE = 4_096


@dataclass(frozen=True)
class Case:
    """One program with its expected results.

    name      its name in the bundle
    hlo       the text that was compiled
    inputs    drawn from `seed` and `places`, as `inputs.draw_inputs` does
    bounds    per result, the least and greatest allowed value of each element
    rivals    other kernels for the same arguments, by label: checked and timed in the same run
    places    number of a parameter that holds window starts -> the range of those starts
    """

    name: str
    program: Program
    hlo: str
    seed: int
    inputs: Sequence[Array]
    bounds: Sequence[Bounds]
    rivals: tuple[tuple[str, tuple[Kernel, ...]], ...] = ()
    places: Mapping[int, Places] = field(default_factory=dict[int, Places])


def write_bundle(path: str | Path | IO[bytes], cases: Sequence[Case]) -> None:
    """Writes the zip. raises OSError where the file cannot be written."""
    manifest: dict[str, Any] = {"format": bundle_main.FORMAT, "cases": []}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", Path(bundle_main.__file__).read_text("utf-8"))
        archive.writestr("draws.py", Path(draws.__file__).read_text("utf-8"))
        archive.writestr("packing.py", Path(packing.__file__).read_text("utf-8"))
        for case, name in zip(cases, _unique([case.name for case in cases]), strict=True):
            manifest["cases"].append(_write_case(archive, case, name))
        archive.writestr("manifest.json", json.dumps(manifest, indent=1))


def positions_to_compare(spec: ArraySpec, seed: int) -> Array:
    """Sorted flat row-major positions: all of a result up to `WHOLE_BYTES`, else both ends and a seeded choice."""
    if dtype(spec.dtype).size_bytes(spec.elements) <= WHOLE_BYTES:
        return np.arange(spec.elements)
    chosen = np.random.default_rng([seed, 1]).choice(spec.elements, POSITIONS - 2 * EDGE, replace=False)
    edges = [np.arange(EDGE), np.arange(spec.elements - EDGE, spec.elements)]
    return np.unique(np.concatenate([chosen, *edges]))


def _write_case(archive: zipfile.ZipFile, case: Case, name: str) -> dict[str, Any]:
    program = case.program
    archive.writestr(f"{name}/hlo.txt", case.hlo)
    expected: dict[str, Array] = {}
    for number, (spec, bounds) in enumerate(zip(program.results, case.bounds, strict=True)):
        positions = positions_to_compare(spec, case.seed)
        expected[f"r{number}.positions"] = positions
        for end, array in (("low", bounds.low), ("high", bounds.high)):
            picked = array.reshape(-1)[positions]
            expected[f"r{number}.{end}"] = picked if picked.dtype.isbuiltin == 1 else bit_pattern(picked)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **expected)
    archive.writestr(f"{name}/expected.npz", stream.getvalue())
    codes: list[dict[str, Any]] = []
    for label, kernels in (("ours", program.kernels), *case.rivals):
        rows: list[dict[str, Any]] = []
        for number, kernel in enumerate(kernels):
            entry = f"{name}/{label}-{number}.ptx"
            archive.writestr(entry, kernel.ptx)
            rows.append({**kernel_json(kernel), "ptx": entry})
        codes.append({"label": label, "kernels": rows})
    return {
        "name": name,
        "hlo": f"{name}/hlo.txt",
        "seed": case.seed,
        "target": program.target,
        "expected": f"{name}/expected.npz",
        "parameters": [
            {
                **_spec(spec),
                "places": asdict(case.places[number]) if number in case.places else None,
                "sha256": hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest(),
            }
            for number, (spec, array) in enumerate(zip(program.parameters, case.inputs, strict=True))
        ],
        "results": [_spec(spec) for spec in program.results],
        "codes": codes,
    }


def _spec(spec: ArraySpec) -> dict[str, Any]:
    row = dtype(spec.dtype)
    return {
        **asdict(spec),
        "kind": row.kind.value,
        "bits": row.significant_bits,
        "packed": row.bits < 8,
        "numpy": row.numpy.name,
        "physical": list(reversed(spec.minor_to_major)),
    }


def _unique(names: Sequence[str]) -> list[str]:
    """The names, a repeated one with a number appended: two files may hold modules of one name."""
    taken: set[str] = set()
    result: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}-{number}"
        taken.add(candidate)
        result.append(candidate)
    return result
