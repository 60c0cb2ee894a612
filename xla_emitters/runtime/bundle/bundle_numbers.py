"""What the script of a bundle does for every program: draws inputs again from their recipe, compares results with their bounds, gives a
verdict."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from xla_emitters.errors import ExecutionError, XlaEmittersError
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.runtime.draws import Places, draw


def redraw(case: dict[str, Any]) -> list[Array]:
    """The inputs, in the order of the parameters; raises ValueError if their checksums differ from the reference's."""
    inputs: list[Array] = []
    for number, spec in enumerate(case["parameters"]):
        array = draw(
            spec["kind"],
            spec["bits"],
            numpy_type(spec["dtype"]),
            tuple(spec["shape"]),
            seed=case["seed"],
            number=number,
            places=None if spec["places"] is None else Places(**spec["places"]),
        )
        digest = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()
        if digest != spec["sha256"]:
            raise ValueError(
                f"parameter {number} as drawn by this NumPy ({np.__version__}) differs from the reference's input"
            )
        inputs.append(array)
    return inputs


def load_expected(archive: zipfile.ZipFile, case: dict[str, Any]) -> dict[str, Array]:
    with np.load(io.BytesIO(archive.read(case["expected"])), allow_pickle=False) as entries:
        return {key: entries[key] for key in entries.files}


def admitted(got: np.ndarray[Any, Any], low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Mask of low <= got <= high, part by part for complex numbers; NaN is admitted where a bound is NaN or the value is unknown."""
    if got.dtype.kind == "c":
        return admitted(got.real, low.real, high.real) & admitted(got.imag, low.imag, high.imag)
    with np.errstate(invalid="ignore"):
        inside = (got >= low) & (got <= high)
        if "float" not in got.dtype.name:
            return inside
        least, most = extremes(got.dtype)
        is_unknown = (low == least) & (high == most)
        return inside | ((got != got) & ((low != low) | (high != high) | is_unknown))


def extremes(kind: np.dtype[Any]) -> Array:
    """The least and the greatest value of a float type: infinities if it has them."""
    infinities = np.array([-np.inf, np.inf]).astype(kind)
    finfo: Any = ml_dtypes.finfo
    limits = finfo(kind)
    return np.where(infinities != infinities, np.array([float(limits.min), float(limits.max)]).astype(kind), infinities)


def wrong_elements(found: Sequence[Array], names: Sequence[str], expected: Mapping[str, Array]) -> int:
    """Number of compared elements that are outside their bounds.

    found  NumPy arrays of HLO's types `names`
    """
    wrong = 0
    for number, (array, name) in enumerate(zip(found, names, strict=True)):
        # NumPy reads any nonzero byte as true, so an unwritten byte of a pred would compare equal to true.
        held = np.dtype(np.uint8) if name == "pred" else numpy_type(name)
        positions, low, high = (expected[f"r{number}.{part}"] for part in ("positions", "low", "high"))
        if array.size <= int(positions.max(initial=-1)):
            return wrong + positions.size
        got = array.reshape(-1)[positions]
        wrong += int(np.count_nonzero(~admitted(got.view(held), low.view(held), high.view(held))))
    return wrong


def attempted(
    run: Callable[[], dict[str, Any]], differing: tuple[type[XlaEmittersError], ...] = (ExecutionError,)
) -> dict[str, Any]:
    """The columns of a row that `run` returns; where it fails, a verdict and the reason. `differing`: errors of a wrong program"""
    try:
        return run()
    except differing as error:
        return {"verdict": "differs", "reason": error.message}
    except XlaEmittersError as error:
        return {"verdict": "refused", "reason": error.message}
    except MemoryError as error:
        return {"verdict": "refused", "reason": f"out of memory: {error}"}
    except RuntimeError as error:  # base class of what CuPy raises for the driver and for NVIDIA's libraries
        return {"verdict": "differs", "reason": f"it stops with: {error}"}


def unrun(cupy: Any, refused: str) -> dict[str, Any]:
    """The columns of a row that is not run: without CuPy, or if no GPU runs the program, for the reason `refused`; else none."""
    if cupy is None:
        return {"verdict": "not run"} | ({"reason": f"refused on a GPU: {refused}"} if refused else {})
    return {"verdict": "refused", "reason": refused} if refused else {}


def by_clock(cupy: Any, run: Callable[[], object]) -> float:
    """Seconds of the host's clock until the device is done."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    run()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start
