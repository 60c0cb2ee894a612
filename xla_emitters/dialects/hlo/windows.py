"""`#hlo.window`: a window that slides over an array, for reduce-window and convolution.

    #hlo.window<size = [2, 2], stride = [2, 2], pad = [0, 1, 0, 1]>

Every list has one entry per dimension (pad: low and high). Defaults: stride 1, no padding, no dilation, not reversed.
    lhs_dilate (base dilation)    the array has lhs_dilate - 1 holes between neighbours
    rhs_dilate (window dilation)  the window's elements are rhs_dilate apart
Source: docs/reference/1 3.6, 6.8 "window".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.shape_rule import INTS, Arithmetic, Number, positions
from xla_emitters.dtypes import Array
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class WindowDim:
    """The window along one dimension."""

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversed: bool = False

    @property
    def steps(self) -> tuple[int, int, int]:
        """Stride, base dilation and window dilation."""
        return self.stride, self.base_dilation, self.window_dilation

    def positions(self, s: Arithmetic, elements: Number) -> Number:
        """The number of positions of the window along an axis of `elements`."""
        stride, base, apart = self.steps
        return positions(s, elements, self.size, stride, self.low, self.high, base, apart)


@dataclass(frozen=True)
class Window:
    """One `WindowDim` per dimension."""

    dims: tuple[WindowDim, ...] = ()

    @staticmethod
    def of_lists(lists: dict[str, Sequence[int]]) -> Window:
        """A window from HLO's sub-attributes: size, stride, pad (low and high alternating), lhs_dilate, rhs_dilate, rhs_reversal.

        raises ValueError when their lengths differ or a number is out of range
        """
        if not lists:
            return Window()
        if "size" not in lists:
            raise ValueError("a window has a size")
        rank = len(lists["size"])
        for name, numbers in lists.items():
            if len(numbers) != rank * (2 if name == "pad" else 1):
                raise ValueError(f"{name} of the window has {len(numbers)} numbers, its size {rank}")
            if name != "pad" and any(number < (name in ("stride", "lhs_dilate", "rhs_dilate")) for number in numbers):
                raise ValueError(f"{name} of the window is too small")

        def entry(name: str, at: int, default: int) -> int:
            return lists[name][at] if name in lists else default

        return Window(
            tuple(
                WindowDim(
                    lists["size"][i],
                    entry("stride", i, 1),
                    entry("pad", 2 * i, 0),
                    entry("pad", 2 * i + 1, 0),
                    entry("lhs_dilate", i, 1),
                    entry("rhs_dilate", i, 1),
                    bool(entry("rhs_reversal", i, 0)),
                )
                for i in range(rank)
            )
        )

    def lists(self) -> dict[str, tuple[int, ...]]:
        """The inverse of `of_lists`, without defaults."""
        dims = self.dims
        found = {
            "size": tuple(dim.size for dim in dims),
            "stride": tuple(dim.stride for dim in dims),
            "pad": tuple(number for dim in dims for number in (dim.low, dim.high)),
            "lhs_dilate": tuple(dim.base_dilation for dim in dims),
            "rhs_dilate": tuple(dim.window_dilation for dim in dims),
            "rhs_reversal": tuple(int(dim.reversed) for dim in dims),
        }
        default = {"stride": 1, "pad": 0, "lhs_dilate": 1, "rhs_dilate": 1, "rhs_reversal": 0}
        return {
            name: numbers
            for name, numbers in found.items()
            if numbers and (name == "size" or any(number != default[name] for number in numbers))
        }


def window_map(window: Window, dims: Sequence[int]) -> IndexingMap:
    """From a position of the window (dims) and an element of it (range variables) to the element of an array of sizes `dims` there.

    The domain excludes padding and the holes of base dilation, where the array has no element.

    >>> print(window_map(Window((WindowDim(size=3, stride=2, low=1, high=1),)), (8,)))
    (d0)[s0] -> (d0 * 2 + s0 - 1), domain: d0 in [0, 3], s0 in [0, 2], d0 * 2 + s0 in [1, 8]
    """
    rank = len(dims)
    places = tuple(
        Variable(Interval(0, dim.positions(INTS, size) - 1)) for dim, size in zip(window.dims, dims, strict=True)
    )
    elements = tuple(Variable(Interval(0, dim.size - 1)) for dim in window.dims)
    results, constraints = list[Expr](), list[tuple[Expr, Interval]]()
    for i, (dim, size) in enumerate(zip(window.dims, dims, strict=True)):
        element = Expr.variable(rank + i)
        if dim.reversed:
            element = Expr.constant(dim.size - 1) - element
        position = Expr.variable(i) * dim.stride + element * dim.window_dilation - dim.low
        constraints.append((position, Interval(0, (size - 1) * dim.base_dilation)))
        if dim.base_dilation > 1:
            constraints.append((position % dim.base_dilation, Interval(0, 0)))
            position = position // dim.base_dilation
        results.append(position)
    return IndexingMap(tuple(results), places, elements, constraints=tuple(constraints)).simplify()


def visited(shape: Sequence[int], *maps: IndexingMap) -> Iterator[tuple[Array, list[tuple[Array, ...]]]]:
    """For each value of the range variables, the last one fastest: the mask of the indices of an array of `shape` that are in the
    first map's domain, and for each map what it maps these to. The maps have the same variables."""
    where, first = np.indices(shape), maps[0]
    for symbols in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in first.range_vars)):
        inside = np.broadcast_to(np.asarray(first.constraints_satisfied([*where], symbols)), where.shape[1:])
        for at, variable in zip(where, first.dims, strict=True):
            inside = inside & (at >= variable.bounds.lower) & (at <= variable.bounds.upper)
        yield (
            inside,
            [
                tuple(np.broadcast_to(np.asarray(part), shape)[inside] for part in each.evaluate([*where], symbols))
                for each in maps
            ],
        )


@irdl_attr_definition
class WindowAttr(Data[Window]):
    """A window in IR; `.data` is the window."""

    name = "hlo.window"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Window:
        lists = dict[str, Sequence[int]]()
        with parser.in_angle_brackets():
            while (name := parser.parse_optional_identifier()) is not None:
                parser.parse_punctuation("=")
                lists[name] = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
                if not parser.parse_optional_punctuation(","):
                    break
        try:
            return Window.of_lists(lists)
        except ValueError as error:
            raise VerifyException(str(error)) from None

    def print_parameter(self, printer: Printer) -> None:
        shown = (f"{name} = [{', '.join(map(str, numbers))}]" for name, numbers in self.data.lists().items())
        with printer.in_angle_brackets():
            printer.print_string(", ".join(shown))
