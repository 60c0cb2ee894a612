"""Programs with one dynamic op each, whose numbers (sizes, starts, strides, paddings, counts) are data; and NumPy's value of each op.

    case = DYNAMIC["real_dynamic_slice"]
    case.text()                        StableHLO; `%nK` are the parameters that hold numbers
    case.draws(rng)                    lists of numbers: good ones, and ones with 0, -1, huge values, the smallest and the largest integer
    case.value(numbers)                the result, or None where the op has none

A value is computed from the definition in StableHLO's specification by Python's integers and NumPy, without the package.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Numbers = Sequence[Sequence[int]]
MOST_ELEMENTS = 1 << 16
"""A result with more elements is refused here: the tests set a limit on memory that it exceeds."""
X = np.arange(12, dtype=np.float32).reshape(3, 4)
EXTREMES = {
    "i32": (0, -1, 1, 2, 5, 1 << 20, 2**31 - 1, -(2**31)),
    "i64": (0, -1, 1, 3, 1 << 33, 2**62, 2**63 - 1, -(2**63)),
}


class TooLarge(Exception):
    """The result has more than MOST_ELEMENTS elements."""


@dataclass(frozen=True)
class Case:
    """A program @main(%x: 3x4 floats, %n0, %n1 ...).

    body    the op's lines, in which `I` is the element type of the numbers
    result  its type
    good    the numbers of a run without an error, by parameter; the shape of a parameter is `shapes` of it, by default one list
    value   numbers -> the result, or None
    """

    body: str
    result: str
    good: Numbers
    value: Callable[[Numbers], Array | None]
    shapes: Mapping[int, tuple[int, ...]] | None = None
    integers: tuple[str, ...] = ("i32", "i64")

    def shape(self, number: int) -> tuple[int, ...]:
        return (self.shapes or {}).get(number, (len(self.good[number]),))

    def text(self, integer: str) -> str:
        parameters = ["%x: tensor<3x4xf32>"]
        for number in range(len(self.good)):
            sizes = "".join(f"{size}x" for size in self.shape(number))
            parameters.append(f"%n{number}: tensor<{sizes}{integer}>")
        body = self.body.replace("xI>", f"x{integer}>").replace("<I>", f"<{integer}>")
        body = f"{body.rpartition(' -> ')[0]} -> {self.result}"
        return (
            f"module @m {{ func.func public @main({', '.join(parameters)}) -> {self.result} {{\n{body}\n"
            f"return %y : {self.result} }} }}"
        )

    def wanted(self, numbers: Numbers) -> Array | None:
        """`value`, if it has the result's static sizes. raises TooLarge"""
        found, sizes = self.value(numbers), self.result.removeprefix("tensor<").split("x")[:-1]
        fits = found is not None and all(
            size == "?" or int(size) == held for size, held in zip(sizes, found.shape, strict=True)
        )
        return found if fits else None

    def arrays(self, numbers: Numbers, integer: str) -> list[Array]:
        kind = np.int32 if integer == "i32" else np.int64
        return [X.copy(), *(np.array(row, kind).reshape(self.shape(k)) for k, row in enumerate(numbers))]

    def draws(self, integer: str, seed: int, more: int) -> Iterator[list[list[int]]]:
        """The good numbers; each number replaced by each extreme; and `more` lists with several extremes."""
        yield [list(row) for row in self.good]
        places = [(k, i) for k, row in enumerate(self.good) for i in range(len(row))]
        for k, i in places:
            for extreme in EXTREMES[integer]:
                numbers = [list(row) for row in self.good]
                numbers[k][i] = extreme
                yield numbers
        rng = np.random.default_rng(seed)
        for _ in range(more):
            numbers = [list(row) for row in self.good]
            for k, i in places:
                if rng.random() < 0.5:
                    numbers[k][i] = int(rng.choice(EXTREMES[integer]))
            yield numbers


def small(sizes: Sequence[int]) -> bool:
    """False for a negative size. raises TooLarge"""
    if any(size < 0 for size in sizes):
        return False
    elements = 1
    for size in sizes:
        elements *= size
    if elements > MOST_ELEMENTS or any(size > MOST_ELEMENTS for size in sizes):
        raise TooLarge
    return True


def real_dynamic_slice(n: Numbers) -> Array | None:
    if any(not 0 <= a <= b <= size or s < 1 for a, b, s, size in zip(*n, X.shape, strict=True)):
        return None
    return X[tuple(slice(*triple) for triple in zip(*n, strict=True))]


def dynamic_pad(n: Numbers) -> Array | None:
    low, high, interior = n
    if any(inner < 0 for inner in interior):
        return None
    spread = [size + (size - 1) * inner for size, inner in zip(X.shape, interior, strict=True)]
    sizes = [a + size + b for a, size, b in zip(low, spread, high, strict=True)]
    if not small(sizes):
        return None
    made = np.full(sizes, -1, np.float32)
    for i in range(3):
        for j in range(4):
            at = low[0] + i * (1 + interior[0]), low[1] + j * (1 + interior[1])
            if 0 <= at[0] < sizes[0] and 0 <= at[1] < sizes[1]:
                made[at] = X[i, j]
    return made


def dynamic_reshape(n: Numbers) -> Array | None:
    a, b = n[0]
    return X.reshape(a, b) if a >= 0 and b >= 0 and a * b == 12 else None


def dynamic_iota(n: Numbers) -> Array | None:
    return np.indices(n[0])[1].astype(np.float32) if small(n[0]) else None


def dynamic_broadcast_in_dim(n: Numbers) -> Array | None:
    if not small(n[0]) or n[0][1:] != [3, 4]:
        return None
    return np.broadcast_to(X, n[0]).copy()


def dynamic_gather(n: Numbers) -> Array | None:
    (rows, columns), (at,) = n
    if not 0 <= rows <= 3 or not 0 <= columns <= 4:
        return None
    first = min(max(at, 0), 3 - rows)
    return X[first : first + rows, :columns][None]


def dynamic_conv(n: Numbers) -> Array | None:
    """A kernel of two ones over the rows of one feature."""
    ((low, high),) = n
    size = 12 + low + high
    if size < 0:
        return None
    small([max(size - 1, 0)])
    image = np.zeros(size, np.float32)
    for i, value in enumerate(X.reshape(-1)):
        if 0 <= low + i < size:
            image[low + i] = value
    return (image[:-1] + image[1:] if size else image).reshape(1, -1, 1)


def set_dimension_size(n: Numbers) -> Array | None:
    return X[: n[0][0]] if 0 <= n[0][0] <= 3 else None


def dynamic_slice(n: Numbers) -> Array | None:
    at = [min(max(start, 0), size - 2) for (start,), size in zip(n, X.shape, strict=True)]
    return X[at[0] : at[0] + 2, at[1] : at[1] + 2]


def wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def quotient_size(n: Numbers) -> Array | None:
    """12 divided by a size: an integer division by zero is -1 in XLA."""
    (size,) = n[0]
    count = -1 if size == 0 else int(12 / size) if abs(size) < 1 << 40 else 0
    return np.arange(count, dtype=np.float32) if small([count]) else None


def remainder_size(n: Numbers) -> Array | None:
    """The remainder of 12 by a size: 12 for zero."""
    (size,) = n[0]
    count = 12 if size == 0 else 12 % abs(size)
    return np.arange(count, dtype=np.float32) if small([count]) else None


SLICE = """%y = stablehlo.real_dynamic_slice %x, %n0, %n1, %n2 :
  (tensor<3x4xf32>, tensor<2xI>, tensor<2xI>, tensor<2xI>) -> tensor<?x?xf32>"""
PAD = """%c = stablehlo.constant dense<-1.0> : tensor<f32>
%y = stablehlo.dynamic_pad %x, %c, %n0, %n1, %n2 :
  (tensor<3x4xf32>, tensor<f32>, tensor<2xI>, tensor<2xI>, tensor<2xI>) -> tensor<?x?xf32>"""
GATHER = """%y = "stablehlo.dynamic_gather"(%x, %n1, %n0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
  start_index_map = [0], index_vector_dim = 1>}> : (tensor<3x4xf32>, tensor<1x1xI>, tensor<2xI>) -> tensor<1x?x?xf32>"""
CONV = """%k = stablehlo.constant dense<1.0> : tensor<2x1x1xf32>
%r = stablehlo.reshape %x : (tensor<3x4xf32>) -> tensor<1x12x1xf32>
%y = "stablehlo.dynamic_conv"(%r, %k, %n0) <{batch_group_count = 1 : i64,
  dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 1>}> :
  (tensor<1x12x1xf32>, tensor<2x1x1xf32>, tensor<1x2xI>) -> tensor<1x?x1xf32>"""
RESHAPE = "%y = stablehlo.dynamic_reshape %x, %n0 : (tensor<3x4xf32>, tensor<2xI>) -> tensor<?x?xf32>"
IOTA = "%y = stablehlo.dynamic_iota %n0, dim = 1 : (tensor<2xI>) -> tensor<?x?xf32>"
BROADCAST = "%y = stablehlo.dynamic_broadcast_in_dim %x, %n0, dims = [1, 2] : (tensor<3x4xf32>, tensor<3xI>) -> tensor<?x?x?xf32>"
SIZE = """%c = stablehlo.constant dense<12> : tensor<1xI>
%s = stablehlo.OP %c, %n0 : tensor<1xI>
%y = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xI>) -> tensor<?xf32>"""

DYNAMIC: Mapping[str, Case] = {
    "real_dynamic_slice": Case(SLICE, "tensor<?x?xf32>", [[0, 1], [3, 4], [1, 2]], real_dynamic_slice),
    "dynamic_pad": Case(PAD, "tensor<?x?xf32>", [[1, 0], [0, -1], [0, 1]], dynamic_pad),
    "dynamic_reshape": Case(
        RESHAPE,
        "tensor<?x?xf32>",
        [[2, 6]],
        dynamic_reshape,
    ),
    "dynamic_iota": Case(
        IOTA,
        "tensor<?x?xf32>",
        [[2, 3]],
        dynamic_iota,
    ),
    "dynamic_broadcast_in_dim": Case(
        BROADCAST,
        "tensor<?x?x?xf32>",
        [[2, 3, 4]],
        dynamic_broadcast_in_dim,
    ),
    "dynamic_gather": Case(GATHER, "tensor<1x?x?xf32>", [[2, 3], [1]], dynamic_gather, {1: (1, 1)}),
    "dynamic_conv": Case(CONV, "tensor<1x?x1xf32>", [[1, 0]], dynamic_conv, {0: (1, 2)}),
    "set_dimension_size": Case(
        "%y = stablehlo.set_dimension_size %x, %n0, dim = 0 : (tensor<3x4xf32>, tensor<I>) -> tensor<?x4xf32>",
        "tensor<?x4xf32>",
        [[2]],
        set_dimension_size,
        {0: ()},
        ("i32",),
    ),
    "dynamic_slice": Case(
        "%y = stablehlo.dynamic_slice %x, %n0, %n1, sizes = [2, 2] : (tensor<3x4xf32>, tensor<I>, tensor<I>) -> tensor<2x2xf32>",
        "tensor<2x2xf32>",
        [[1], [2]],
        dynamic_slice,
        {0: (), 1: ()},
    ),
    **{
        f"{name} of static size": Case(body, result, good, value)
        for name, body, result, good, value in (
            ("slice", SLICE, "tensor<3x2xf32>", [[0, 1], [3, 4], [1, 2]], real_dynamic_slice),
            ("pad", PAD, "tensor<4x6xf32>", [[1, 0], [0, -1], [0, 1]], dynamic_pad),
            ("reshape", RESHAPE, "tensor<2x6xf32>", [[2, 6]], dynamic_reshape),
            ("iota", IOTA, "tensor<2x3xf32>", [[2, 3]], dynamic_iota),
            ("broadcast", BROADCAST, "tensor<2x3x4xf32>", [[2, 3, 4]], dynamic_broadcast_in_dim),
        )
    },
    "divide": Case(SIZE.replace("OP", "divide"), "tensor<?xf32>", [[4]], quotient_size),
    "remainder": Case(SIZE.replace("OP", "remainder"), "tensor<?xf32>", [[5]], remainder_size),
}
