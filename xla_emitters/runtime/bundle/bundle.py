"""Makes a bundle: programs compiled here for a machine that has only Python, NumPy, ml_dtypes and CuPy.

    kernels.zip
      __main__.py                 `python kernels.zip` checks and times everything (bundle_main.py)
      xla_emitters/...            the files of ours that it imports, as they are: `FILES`
      manifest.json               cases: parameters with the recipe and checksum of their draw, results, temporaries, kernels and steps
      gelu/hlo.txt                the HLO text that was compiled
      gelu/ours-0.ptx             one per code ("ours", or a rival such as XLA's own PTX) and PTX module
      layer/kernels-32.ptx ...    of a program with unknown sizes: PTX with indices of 32 and 64 bits, constants, expected results for
                                  each of its shapes; its steps and ops are in the manifest
      gelu/expected.npz           r0.positions, r0.low, r0.high: the compared positions of result 0 and the bounds there

Steps are as in `Program.to_json`: loops, branches, library calls, copies. A program that calls a function which CuPy lacks is included
too; its case says why no GPU runs it (`refused`).
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
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

import xla_emitters
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.library.function_table import FUNCTIONS
from xla_emitters.program import ArraySpec, Kernel, Program, Slot
from xla_emitters.program.as_json import array_json, call_json, kernel_json, value_json
from xla_emitters.program.steps import Allocate, Launch, Release, Step
from xla_emitters.runtime.arrays import bit_pattern
from xla_emitters.runtime.bundle import bundle_main
from xla_emitters.runtime.cuda.cupy_flat import refusal
from xla_emitters.runtime.draws import Places
from xla_emitters.runtime.reference.tolerance import Bounds

PACKAGE = Path(xla_emitters.__file__).parent
FILES = (
    "__init__.py",
    "errors.py",
    "support/columns.py",
    "support/late_dataclass.py",
    "support/limits.py",
    "program/step_values.py",
    "program/as_json.py",
    "program/bind.py",
    "program/callees.py",
    "program/executable.py",
    "program/steps.py",
    "runtime/bundle/bundle_numbers.py",
    "runtime/bundle/bundle_programs.py",
    "runtime/cuda/cupy_arrays.py",
    "runtime/cuda/cupy_flat.py",
    "runtime/cuda/cupy_platform.py",
    "runtime/cuda/cupy_steps.py",
    "runtime/draws.py",
    "runtime/layouts.py",
    "runtime/loaded.py",
    "runtime/memory_history.py",
    "runtime/npz.py",
    "runtime/numpy_calls.py",
    "runtime/plain_ops.py",
    "runtime/repetition.py",
    "runtime/walk.py",
    "runtime/ral/constants_file.py",
    *sorted(f"library/{path.name}" for path in (PACKAGE / "library").glob("*.py")),
)
"""The files of `xla_emitters` that a bundle holds: with NumPy and ml_dtypes, all that its script imports."""
FACES = {str(folder / "__init__.py") for name in FILES for folder in PurePosixPath(name).parents} - set(FILES)
"""Of the packages, those that are empty in a bundle: the real ones import files that a bundle lacks."""

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
    rivals    other kernels for the same arguments, by label: checked and timed in the same run; for programs of kernels alone. The
              kernels of one rival have different names
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


@dataclass(frozen=True)
class BundledProgram:
    """A program with unknown sizes as text and plain data.

    ptx        of all kernels, with indices of 32 and of 64 bits
    constants  bytes by name
    rows       plain data for the manifest
    """

    ptx: tuple[str, str]
    constants: Mapping[str, bytes]
    rows: Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """Sizes at which a program is run, with arguments and bounds of its results; fields as in `Case`."""

    sizes: Mapping[str, int]
    seed: int
    parameters: Sequence[ArraySpec]
    inputs: Sequence[Array]
    results: Sequence[ArraySpec]
    bounds: Sequence[Bounds]
    places: Mapping[int, Places] = field(default_factory=dict[int, Places])


@dataclass(frozen=True)
class ProgramCase:
    """A program with unknown sizes, and the shapes at which it is run.

    text  the StableHLO that was compiled
    """

    name: str
    text: str
    program: BundledProgram
    shapes: Sequence[Shape]


def write_bundle(path: str | Path | IO[bytes], cases: Sequence[Case], programs: Sequence[ProgramCase] = ()) -> None:
    """Writes the zip. raises OSError where the file cannot be written; UsageError for rivals of a program of more than kernels;
    Unsupported for library functions of plugins."""
    for case in cases:
        _refuse_plugins(case.program)
        if case.rivals and not all(isinstance(step, Launch | Allocate | Release) for step in case.program.steps):
            raise UsageError(f"{case.name} is more than kernels: it has no rivals", stage="bundle")
    manifest: dict[str, Any] = {"format": bundle_main.FORMAT, "cases": [], "programs": []}
    names = _unique([case.name for case in (*cases, *programs)])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", Path(bundle_main.__file__).read_text("utf-8"))
        for face in sorted(FACES):
            archive.writestr(f"xla_emitters/{face}", "")
        for name in FILES:
            archive.writestr(f"xla_emitters/{name}", (PACKAGE / name).read_text("utf-8"))
        for case, name in zip(cases, names, strict=False):
            manifest["cases"].append(_write_case(archive, case, name))
        for program, name in zip(programs, names[len(cases) :], strict=True):
            manifest["programs"].append(_write_program(archive, program, name))
        archive.writestr("manifest.json", json.dumps(manifest, indent=1))


def _refuse_plugins(program: Program) -> None:
    """raises Unsupported for a library function that no file of a bundle defines (a plugin's)."""
    for call in program.calls:
        if call.name in FUNCTIONS and not FUNCTIONS[call.name].is_own:
            raise Unsupported(
                f"a bundle does not hold library function '{call.name}' of a plugin, which '{call.instruction}' calls",
                stage="bundle",
            )


def refused_on_gpu(program: Program) -> str:
    """Why no GPU can run the program through CuPy, as far as that is known before it runs; "" if no reason is known."""
    return next((reason for reason in map(refusal, program.calls) if reason), "")


def positions_to_compare(spec: ArraySpec, seed: int) -> Array:
    """Sorted flat row-major positions: all of a result up to `WHOLE_BYTES`, else both ends and a seeded choice."""
    if spec.bytes <= WHOLE_BYTES:
        return np.arange(spec.elements)
    chosen = np.random.default_rng([seed, 1]).choice(spec.elements, POSITIONS - 2 * EDGE, replace=False)
    edges = [np.arange(EDGE), np.arange(spec.elements - EDGE, spec.elements)]
    return np.unique(np.concatenate([chosen, *edges]))


def _write_case(archive: zipfile.ZipFile, case: Case, name: str) -> dict[str, Any]:
    program = case.program
    archive.writestr(f"{name}/hlo.txt", case.hlo)
    _write_expected(archive, f"{name}/expected.npz", program.results, case.bounds, case.seed)
    codes = [_write_code(archive, f"{name}/ours", "ours", program.kernels, program.steps)]
    codes += [
        _write_code(archive, f"{name}/{label}", label, kernels, launches_of(program, kernels))
        for label, kernels in case.rivals
    ]
    return {
        "name": name,
        "hlo": f"{name}/hlo.txt",
        "seed": case.seed,
        "target": program.target,
        "expected": f"{name}/expected.npz",
        "parameters": _drawn(program.parameters, case.inputs, case.places),
        "results": [array_json(spec) for spec in program.results],
        "temporaries": [array_json(spec) for spec in program.temporaries],
        "calls": [call_json(call) for call in program.calls],
        "refused": refused_on_gpu(program),
        "codes": codes,
    }


def _write_program(archive: zipfile.ZipFile, case: ProgramCase, name: str) -> dict[str, Any]:
    """Writes the files of a program with unknown sizes. Returns its entry in the manifest."""
    program = case.program
    archive.writestr(f"{name}/program.mlir", case.text)
    ptx = [f"{name}/kernels-{bits}.ptx" for bits in (32, 64)]
    for entry, text in zip(ptx, program.ptx, strict=True):
        archive.writestr(entry, text)
    constants = f"{name}/constants.npz" if program.constants else ""
    if constants:
        stream = io.BytesIO()
        held = {key: np.frombuffer(data, np.uint8) for key, data in program.constants.items()}
        np.savez(stream, allow_pickle=False, **held)
        archive.writestr(constants, stream.getvalue())
    shapes = list[dict[str, Any]]()
    for number, shape in enumerate(case.shapes):
        expected = f"{name}/expected-{number}.npz"
        _write_expected(archive, expected, shape.results, shape.bounds, shape.seed)
        shapes.append(
            {
                "sizes": dict(shape.sizes),
                "seed": shape.seed,
                "parameters": _drawn(shape.parameters, shape.inputs, shape.places),
                "results": [array_json(spec) for spec in shape.results],
                "expected": expected,
            }
        )
    files = {"source": f"{name}/program.mlir", "ptx": ptx, "elements_of": constants}
    return {"name": name, **files, **program.rows, "shapes": shapes}


def _write_expected(
    archive: zipfile.ZipFile, entry: str, results: Sequence[ArraySpec], bounds: Sequence[Bounds], seed: int
) -> None:
    """Writes the compared positions of each result, and the bounds there."""
    expected: dict[str, Array] = {}
    for number, (spec, allowed) in enumerate(zip(results, bounds, strict=True)):
        positions = positions_to_compare(spec, seed)
        expected[f"r{number}.positions"] = positions
        for end, array in (("low", allowed.low), ("high", allowed.high)):
            picked = array.reshape(-1)[positions]
            expected[f"r{number}.{end}"] = picked if picked.dtype.isbuiltin == 1 else bit_pattern(picked)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **expected)
    archive.writestr(entry, stream.getvalue())


def _drawn(specs: Sequence[ArraySpec], inputs: Sequence[Array], places: Mapping[int, Places]) -> list[dict[str, Any]]:
    """The recipe and the checksum of each argument."""
    return [
        {
            **_recipe(spec),
            "places": asdict(places[number]) if number in places else None,
            "sha256": hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest(),
        }
        for number, (spec, array) in enumerate(zip(specs, inputs, strict=True))
    ]


def _write_code(
    archive: zipfile.ZipFile, prefix: str, label: str, kernels: Sequence[Kernel], steps: Sequence[Step]
) -> dict[str, Any]:
    """Writes the PTX of kernels, each text once. Returns the code's entry in the manifest."""
    entries = {
        ptx: f"{prefix}-{number}.ptx" for number, ptx in enumerate(dict.fromkeys(kernel.ptx for kernel in kernels))
    }
    for ptx, entry in entries.items():
        archive.writestr(entry, ptx)
    rows = [{**kernel_json(kernel), "ptx": entries[kernel.ptx]} for kernel in kernels]
    return {"label": label, "kernels": rows, "steps": [value_json(step) for step in steps]}


def launches_of(program: Program, kernels: Sequence[Kernel]) -> tuple[Step, ...]:
    """Steps that launch kernels on the arrays of their arguments, in order; temporaries have memory from the beginning."""
    arrays = program.arrays
    return (
        *map(Allocate, arrays.places("temporary", len(program.temporaries))),
        *(
            Launch(
                kernel.name,
                kernel.launch.grid,
                kernel.launch.block,
                0,
                tuple(arrays.place(Slot(each.kind, each.index)) for each in kernel.arguments),
            )
            for kernel in kernels
        ),
    )


def _recipe(spec: ArraySpec) -> dict[str, Any]:
    """The parameter's row for `draws.draw`."""
    row = dtype(spec.dtype)
    return {**array_json(spec), "kind": row.kind.value, "bits": row.significant_bits}


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
