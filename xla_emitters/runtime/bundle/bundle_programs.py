"""Programs with unknown sizes in the script of a bundle: each is loaded once, and run at every shape of the manifest.

    case         code            verdict          us     GB/s
    softmax      b=2 s=5         ok            41.20        -  end to end
    softmax      b=7 s=33        ok            42.15        -  end to end

A program is its JSON, PTX of its kernels with indices of 32 and of 64 bits, and constants by digest. Steps
are bound and run by the package's own files, as without a bundle. Without a GPU the inputs of each shape are drawn again, and nothing runs.
"""

from __future__ import annotations

import statistics
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np

from xla_emitters.errors import DataError, ExecutionError
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.program.as_json import array_from_json, call_from_json, value_from_json
from xla_emitters.program.callees import OF_THE_HOST, LibraryCall
from xla_emitters.program.executable import Constants, executable_of_arrays
from xla_emitters.program.step_values import Arrays, LaunchDimensions
from xla_emitters.runtime.bundle.bundle_numbers import attempted, by_clock, load_expected, redraw, unrun, wrong_elements
from xla_emitters.runtime.cuda.cupy_arrays import to_cupy, to_numpy
from xla_emitters.runtime.cuda.cupy_platform import load_module
from xla_emitters.runtime.cuda.cupy_steps import CalledOp, CupyMemory, CupyPlatform, queue
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.plain_ops import plain_function
from xla_emitters.runtime.ral.constants_file import StoredConstants

Row = dict[str, Any]


def run_programs(cupy: Any, archive: zipfile.ZipFile, programs: Sequence[Row], repeat: int) -> list[Row]:
    """A row of the report for each shape of each program.

    cupy    None: inputs are drawn and checked, nothing runs
    raises  LookupError, TypeError or ValueError where the manifest is not one that we wrote, or inputs are drawn otherwise here
    """
    rows = list[Row]()
    for program in programs:
        kept = list[OnDevice]()
        for shape in program["shapes"]:
            row = {"case": program["name"], "code": sizes_text(shape["sizes"])}
            inputs = redraw(shape)
            run = partial(_run, cupy, archive, program, shape, inputs, repeat, kept)
            rows.append(row | (unrun(cupy, program["refused"]) or attempted(run, (DataError, ExecutionError))))
    return rows


def _run(
    cupy: Any,
    archive: zipfile.ZipFile,
    program: Row,
    shape: Row,
    inputs: Sequence[Array],
    repeat: int,
    kept: list[OnDevice],
) -> Row:
    """The verdict and the time of one shape. `kept`: the program, once it is loaded"""
    if not kept:
        kept.append(OnDevice(cupy, archive, program))
    (loaded,), types = kept, [result["dtype"] for result in shape["results"]]
    wrong = wrong_elements(loaded.numbers(inputs), types, load_expected(archive, shape))
    seconds = loaded.by_clock(inputs, repeat)
    said = "".join(f"; {name}: {why}" for name, why in loaded.log.items())
    verdict = "differs" if wrong else "ok"
    return {"verdict": verdict, "wrong": wrong, "microseconds": seconds * 1e6, "timed": f"end to end{said}"}


def sizes_text(sizes: Mapping[str, int]) -> str:
    """`b=2 s=5`; "" for a program without unknown sizes."""
    return " ".join(f"{name}={value}" for name, value in sizes.items()) or "ours"


class OnDevice:
    """A program of the manifest on the current device.

    log  op -> why it was computed on the host
    """

    def __init__(self, cupy: Any, archive: zipfile.ZipFile, program: Row) -> None:
        calls = [call_from_json(row) for row in program["calls"]]
        arrays = Arrays(
            *(tuple(map(array_from_json, program[kind])) for kind in ("parameters", "results", "temporaries"))
        )
        texts = [archive.read(name).decode() for name in program["ptx"]]
        names = tuple(row["name"] for row in program["kernels"])
        stored = StoredConstants(_constants(archive, program["elements_of"]))
        readers = [
            (place, partial(stored.get, name, numpy_type(place.dtype)))
            for place, name in zip(map(value_from_json, program["places"]), program["held"], strict=True)
        ]
        elements = {
            int(number): partial(stored.get, name, numpy_type(calls[int(number)].results[0].dtype))
            for number, name in program["elements"].items()
        }

        def exceeds(name: str, at: LaunchDimensions, values: Sequence[Any]) -> bool:
            numbers = [value for value in (*values, *at.grid) if isinstance(value, int)]
            elements = max((value.size for value in values if not isinstance(value, int | float)), default=0)
            most: int = program["narrow_up_to"][name]
            return not (all(0 <= number <= most for number in numbers) and elements < 1 << 31)

        platform = CupyPlatform(
            cupy,
            lambda number: plain_function(calls[number], elements.get(number)),
            list(map(called, calls)),
            names,
            lambda is_wide, device: load_module(texts[is_wide], names, program["target"], device),
            exceeds,
        )
        steps = value_from_json(program["steps"])
        made = executable_of_arrays(arrays, steps, calls, Constants(readers), program["donated"])
        self._cupy, self.log, self._types = cupy, platform.log, [place.dtype for place in made.results]
        self._loaded = LoadedProgram(made, platform, CupyMemory(cupy))

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The results; those of the device when its work is done. The program may overwrite donated device arrays."""
        found = self._loaded.run(inputs, queue(self._cupy))
        self._cupy.cuda.Device().synchronize()
        return found

    def numbers(self, inputs: Sequence[Array]) -> list[Array]:
        """The results as NumPy arrays."""
        return [to_numpy(self._cupy, *pair) for pair in zip(self.run(inputs), self._types, strict=True)]

    def by_clock(self, inputs: Sequence[Array], repeat: int) -> float:
        """Median seconds of a call on device arrays, by the host's clock; includes the copies of donated inputs."""
        arrays, donated = [to_cupy(self._cupy, array) for array in inputs], self._loaded.donated

        def run() -> None:
            self.run([array.copy() if number in donated else array for number, array in enumerate(arrays)])

        return statistics.median([by_clock(self._cupy, run) for _ in range(repeat + 1)][1:])


def called(call: LibraryCall) -> CalledOp:
    """What the platform knows of a call."""
    opcode = call.name.removeprefix(OF_THE_HOST)
    return CalledOp(opcode, (call.name, call.config) if opcode == call.name else None)


def _constants(archive: zipfile.ZipFile, name: str) -> dict[str, bytes]:
    """The bytes of all constants by name; `Constants` checks their digests."""
    if not name:
        return {}
    with np.load(BytesIO(archive.read(name)), allow_pickle=False) as entries:
        return {key: entries[key].tobytes() for key in entries.files}
