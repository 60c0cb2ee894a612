"""Values in steps: launches, arrays, slots that hold arrays, arguments of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from xla_emitters.program.steps import ArrayPlace
from xla_emitters.support.late_dataclass import dataclass

ALIGN_ALLOCATED = 256
"""Bytes: the alignment of results and temporaries that kernels without unknown sizes assume, as XLA's do."""
Extents: TypeAlias = tuple[int, int, int]
"""Of a grid in blocks, or of a block in threads: x, y, z."""
UNKNOWN = -1
"""A size, or a number of bytes, that depends on the sizes of a call."""
Size: TypeAlias = int | str | None
"""A number; the text of an expression in the program's symbols; None where only data or a call decide."""


@dataclass(frozen=True)
class LaunchDimensions:
    """Blocks of the grid and threads of a block, in x, y, z.

    sizes  of the grid, where some are UNKNOWN; else ()
    """

    grid: Extents
    block: Extents
    sizes: tuple[Size, ...] = ()

    @property
    def blocks_of_axes(self) -> tuple[Size, ...]:
        """Blocks in x, y, z."""
        return self.sizes or self.grid

    @property
    def blocks(self) -> int:
        """Blocks of the whole grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return math.prod(self.block)

    @property
    def ids(self) -> tuple[tuple[str, int], ...]:
        """(name, extent) of the thread and block ids that take more than one value, in the order of maps over them."""
        axes = [(f"th_{axis}", extent) for axis, extent in zip("xyz", self.block, strict=True)]
        axes += [(f"bl_{axis}", extent) for axis, extent in zip("xyz", self.grid, strict=True)]
        return tuple((name, extent) for name, extent in axes if extent > 1)

    def __str__(self) -> str:
        grid = "x".join("?" if size is None else str(size) for size in self.blocks_of_axes)
        return f"{grid} blocks of {'x'.join(map(str, self.block))} threads"


@dataclass(frozen=True)
class ArraySpec:
    """A logical array of the caller: HLO's name of its element type, its shape, its physical layout.

    minor_to_major   HLO's layout: the fastest varying dimension first; row-major is (rank-1, ..., 0)
    sizes            of the dimensions, where some of `shape` are UNKNOWN; else ()
    """

    dtype: str
    shape: tuple[int, ...]
    minor_to_major: tuple[int, ...]
    sizes: tuple[Size, ...] = ()

    @staticmethod
    def sized(dtype: str, sizes: Sequence[Size]) -> ArraySpec:
        """A row-major array of these sizes."""
        shape = tuple(size if isinstance(size, int) else UNKNOWN for size in sizes)
        return ArraySpec(dtype, shape, tuple(reversed(range(len(shape)))), tuple(sizes) if UNKNOWN in shape else ())

    @property
    def dims(self) -> tuple[Size, ...]:
        """The sizes of the dimensions."""
        return self.sizes or self.shape

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def bytes(self) -> int:
        """Of all elements."""
        from xla_emitters.dtypes import (
            dtype,
        )  # imported here: it loads NumPy, which a program that is printed does without

        return dtype(self.dtype).size_bytes(self.elements)

    @property
    def is_row_major(self) -> bool:
        return self.minor_to_major == tuple(reversed(range(len(self.shape))))

    def __str__(self) -> str:
        layout = "" if self.is_row_major else "{" + ",".join(map(str, self.minor_to_major)) + "}"
        sizes = ("?" if size is None else str(size).replace(" ", "") for size in self.dims)
        return f"{self.dtype}[{','.join(sizes)}]{layout}"


@dataclass(frozen=True)
class Slot:
    """One array of a program: `kind` is "parameter", "result" or "temporary", `index` its number among those."""

    kind: str
    index: int

    def __str__(self) -> str:
        return f"{self.kind[0]}{self.index}"


@dataclass(frozen=True)
class Argument:
    """One pointer that a kernel takes.

    kind, index  the program's array, as in `Slot`
    bytes        size of the buffer slice, or UNKNOWN; sub-byte types are packed
    alignment    bytes that the kernel's code assumes
    slice_index  arguments with equal numbers are the same memory
    written      whether the kernel writes it
    """

    kind: str
    index: int
    array: ArraySpec
    bytes: int
    alignment: int
    slice_index: int
    written: bool

    @property
    def slot(self) -> Slot:
        return Slot(self.kind, self.index)


@dataclass(frozen=True)
class Arrays:
    """The arrays of a program without unknown sizes. In its steps the parameters are the first slots, then come results, then temporaries.

    A place's array is flat, its elements in memory order; these are the logical arrays.
    """

    parameters: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    temporaries: tuple[ArraySpec, ...]

    def number(self, slot: Slot) -> int:
        """The slot's number in steps."""
        before = len(self.parameters) * (slot.kind != "parameter") + len(self.results) * (slot.kind == "temporary")
        return before + slot.index

    def slot(self, number: int) -> Slot:
        """The inverse of `number`."""
        for kind, specs in (("parameter", self.parameters), ("result", self.results)):
            if number < len(specs):
                return Slot(kind, number)
            number -= len(specs)
        return Slot("temporary", number)

    def spec(self, slot: Slot) -> ArraySpec:
        """The type of the array in a slot."""
        return {"parameter": self.parameters, "result": self.results, "temporary": self.temporaries}[slot.kind][
            slot.index
        ]

    def place(self, slot: Slot) -> ArrayPlace:
        """The array as steps read and write it."""
        return place_of(self.number(slot), self.spec(slot))

    def places(self, kind: str, count: int) -> tuple[ArrayPlace, ...]:
        """Those of the first `count` slots of a kind."""
        return tuple(self.place(Slot(kind, number)) for number in range(count))


def place_of(number: int, spec: ArraySpec) -> ArrayPlace:
    """The place of a logical array in the slot with this number."""
    return ArrayPlace(number, spec.dtype, (spec.elements,), on_device=True)
