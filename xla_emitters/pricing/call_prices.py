"""The expected cost of a call of a library, from the shapes of its arrays: the roofline of the GPU.

    gemm bf16[4096,4096] x bf16[4096,4096] on h200     compute 185 us, memory 22.8 us  ->  187 us, 74 % of the tensor cores' peak
    sort f32[1048576] on h200                          memory 1.9 us                   ->  at least 3.9 us: its bytes alone

Products and convolutions are bound by their multiplications, at the peak of the type that their factors are multiplied in, or by the bytes
of operands and results, each moved once. Factors of f32 are multiplied as XLA:GPU does: rounded to TF32, unless the module asks for
operand_precision "highest" or an algorithm. Of other functions the bytes alone are priced: a lower bound.
Source: docs/cost_model.md; XLA's `GetBlasComputationType`; NVIDIA's data sheets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any, NamedTuple, TypeAlias

from xla_emitters.device import Device
from xla_emitters.dtypes import dtype
from xla_emitters.pricing.model import NORM, START_S, Assumption, Moved

COMPUTE_SHARE = Assumption(0.95, 0.75, 0.5)
"""The share of the data sheet's peak that a large product reaches."""
TILE = 128
"""Rows and columns of the result that one multiprocessor computes at once, if no row of products is split."""
COPY = "copy"
"""What a step that copies an array is called among calls."""
WITHOUT_WORK = frozenset(("wait", "receive", "device_id"))
"""Functions that are done by what is priced elsewhere, or by the host."""
UNPRICED = frozenset(("allocate", "expect")) | WITHOUT_WORK
"""Functions that do no work on the GPU."""

Sized: TypeAlias = tuple[str, Sequence[int]]
"""HLO's name of an array's element type, and its shape."""


@dataclass(frozen=True)
class CallCost:
    """The cost of one call of a library's function on one device. Times are in microseconds.

    name            of the function, such as "gemm"
    instruction     the HLO instruction that it computes
    factors         the type in which factors are multiplied, such as "tf32"; "" if only bytes are priced
    operations      multiplications and additions; 0 if only bytes are priced
    bytes_needed    of all operands and results, each counted once
    multiprocessors those with work, if each computes a tile of 128 x 128 results; 0 if not known
    bounds          resource -> the time that it alone would need
    bound           the largest of them, or "launch"
    time            expected; it is believed to be between time_low and time_high
    is_lower_bound  whether the bytes alone are priced
    bandwidth       bytes_needed / time, as a share of the device's
    compute         operations / time, as a share of the peak for `factors`
    launches        number of calls in one run of the program
    members         of a collective: devices in a group
    wire_bytes      of a collective: what each device sends
    network_time    of a collective: expected on a network of 400 Gb/s a GPU alone
    """

    name: str
    instruction: str
    target: str
    factors: str
    operations: int
    bytes_needed: int
    multiprocessors: int
    bounds: dict[str, float]
    bound: str
    time: float
    time_low: float
    time_high: float
    is_lower_bound: bool
    bandwidth: float
    compute: float
    launches: int = 1
    members: int = 0
    wire_bytes: int = 0
    network_time: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data; see docs/json.md."""
        return asdict(self)


class Multiplications(NamedTuple):
    """The multiplications of a call: each with an addition, for batches of matrices of rows and columns."""

    multiplications: int
    batch: int
    rows: int
    columns: int

    @property
    def tiles(self) -> int:
        return self.batch * -(-self.rows // TILE) * -(-self.columns // TILE)


def price_call(
    name: str,
    instruction: str,
    config: Mapping[str, Any],
    operands: Sequence[Sized],
    results: Sequence[Sized],
    device: Device,
) -> CallCost | None:
    """The cost of one call; None for a function that does no work on the GPU.

    name, config       as in `library.call`
    operands, results  their element types and shapes
    """
    if name in UNPRICED:
        return None
    roles = config.get("outputs", ())
    written = [
        result for number, result in enumerate(results) if (*roles, *("",) * len(results))[number] != "workspace"
    ]
    arrays = Moved(*map(bytes_moved, (operands, written)))
    moved, memory = round(arrays.bytes), {level: arrays.seconds(device, level) for level in ("low", "expected", "high")}
    fits = moved <= device.l2_bytes
    products = _products(name, config, operands, results)
    factors, times = _factors(config, operands) if products else ("", 0)
    if products is None or not factors:
        factors, operations, compute, used, share = "", 0, 0.0, 0, 1.0
    else:
        operations = 2 * products.multiplications * times
        factors = device.factors(factors)
        compute = operations / device.peak(factors)
        waves = -(-products.tiles // device.cores)
        used, share = min(products.tiles, device.cores), products.tiles / max(1, waves * device.cores)
    bounds = {"memory": memory["expected"], "compute": compute / COMPUTE_SHARE.expected}
    largest = max(bounds, key=lambda each: bounds[each])
    time = START_S.expected + sum(seconds**NORM for seconds in bounds.values()) ** (1 / NORM)
    low = START_S.low + max(0.0 if fits else memory["low"], compute / COMPUTE_SHARE.low)
    high = START_S.high + memory["high"] + compute / COMPUTE_SHARE.high / max(share, 1 / device.cores)
    return CallCost(
        name=name,
        instruction=instruction,
        target=device.name,
        factors=factors,
        operations=operations,
        bytes_needed=moved,
        multiprocessors=used,
        bounds={each: seconds * 1e6 for each, seconds in bounds.items()},
        bound=largest if bounds[largest] >= START_S.expected else "launch",
        time=time * 1e6,
        time_low=low * 1e6,
        time_high=high * 1e6,
        is_lower_bound=not factors,
        bandwidth=moved / device.bandwidth_bytes_per_s / time,
        compute=compute / time,
    )


def price_copy(name: str, array: Sized, device: Device) -> CallCost:
    """The cost of a copy of an array, from device to device: its bytes are read and written once."""
    found = price_call(COPY, name, {}, [array], [array], device)
    assert found is not None
    return replace(found, is_lower_bound=False)


def bytes_moved(arrays: Sequence[Sized]) -> int:
    """Bytes of arrays."""
    return sum(dtype(element).size_bytes(prod(shape)) for element, shape in arrays)


def _products(
    name: str, config: Mapping[str, Any], operands: Sequence[Sized], results: Sequence[Sized]
) -> Multiplications | None:
    """The multiplications of a product or a convolution; None for other functions."""
    if name not in ("gemm", "convolution"):
        return None
    roles: list[str] = [*config["operands"], *config["outputs"]]
    shapes = {role: shape for role, (_, shape) in zip(roles, (*operands, *results), strict=False)}
    if name == "gemm":
        lhs, rhs = shapes["lhs"], shapes["rhs"]
        dims: tuple[list[int], list[int]] = (config["lhs_batch"], config["lhs_contracting"])
        batch, terms = (prod([lhs[dim] for dim in each]) for each in dims)
        rows, columns = (prod(shape) // max(1, batch * terms) for shape in (lhs, rhs))
        return Multiplications(batch * rows * terms * columns, batch, rows, columns)
    # Each element of the result takes one multiplication per point of the kernel, but for those that meet a dilated image's holes, and
    # per feature of the image.
    kernel, result = shapes["kernel"], shapes["result"]
    label: str = config["labels"][1]
    features, groups = kernel[label.index("o")], int(config["feature_groups"])
    spread = prod(dim["base_dilation"] for dim in config["window"])
    count = prod(result) * prod(kernel) // max(1, features) // spread
    if config["kind"] == "backward_filter":
        return Multiplications(count, groups, prod(kernel) // max(1, features), features // groups)
    return Multiplications(count, groups, prod(result) // max(1, features), features // groups)


def _factors(config: Mapping[str, Any], operands: Sequence[Sized]) -> tuple[str, int]:
    """The type in which factors are multiplied, and how many multiplications one of the call takes; "" if no peak is known."""
    element = max((element for element, _ in operands[:2]), key=lambda each: dtype(each).bits)
    times = 4 if element[0] == "c" else 1
    if element.startswith(("f8", "f4")):
        return "f8", times
    if element in ("f16", "bf16", "f64", "s8", "c128"):
        return {"c128": "f64"}.get(element, element), times
    if element not in ("f32", "c64"):
        return "", times
    asked = str(config.get("precision", "default"))
    if found := re.fullmatch(r"dot_(tf32|bf16|f16|f32)_\w+?_f32(?:_x(\d))?", asked):
        return found[1], times * int(found[2] or 1)
    return "f32" if asked == "highest" else "tf32", times
