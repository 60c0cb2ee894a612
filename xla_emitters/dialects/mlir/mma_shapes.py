"""The shapes and types of `mma.sync`, `mma.sp`, `wmma` and `wgmma.mma_async`, by their mnemonics.

    Mma.of("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32").registers            (4, 2, 4)
    Wgmma.of("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16").registers        64

Source: PTX ISA 8.8, 9.7.14.5 "mma", 9.7.15.2 "Matrix shape", 9.7.15.5 "wgmma.mma_async".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WARP_SIZE = 32
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
BITS = {
    **{"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1},
    **dict.fromkeys(NARROW, 8),
}
"""Type of an operand -> bits of an element."""
RESULTS = {
    **{"f16": ("f16", "f32"), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"), "f64": ("f64",)},
    **{**dict.fromkeys(("bf16", "tf32"), ("f32",)), **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), ("s32",))},
}
"""Type of A -> of D."""


def _agree(a: str, b: str) -> bool:
    """Whether A and B may have these types."""
    return a == b or any({a, b} == {*pair} for pair in (("s8", "u8"), ("s4", "u4"), ("e4m3", "e5m2")))


SHAPES = {
    **dict.fromkeys(("f16", "bf16"), ((16, 8), (16, 16))),
    "tf32": ((16, 4), (16, 8)),
    "f64": ((8, 4), (16, 4), (16, 8), (16, 16)),
    **dict.fromkeys(("s8", "u8"), ((8, 16), (16, 16), (16, 32))),
    **dict.fromkeys(("s4", "u4"), ((8, 32), (16, 32), (16, 64))),
    "b1": ((8, 128), (16, 128), (16, 256)),
    **dict.fromkeys(("e4m3", "e5m2"), ((16, 16), (16, 32))),
}
"""Type of A -> (rows of A, columns of A); B has 8 columns."""
SPARSE = {
    **{"f16": (16, 32), "bf16": (16, 32), "tf32": (8, 16), "s8": (32, 64), "u8": (32, 64)},
    **{"e4m3": (64,), "e5m2": (64,)},
}
"""Type of A, half of whose elements are zero -> columns of A."""
KINDS: dict[str, tuple[tuple[str, ...], int, int, tuple[tuple[int, str], ...]]] = {
    "f8f6f4": (NARROW, 8, 32, ()),
    "mxf8f6f4": (NARROW, 8, 32, ((1, "ue8m0"),)),
    "mxf4": (("e2m1",), 4, 64, ((2, "ue8m0"),)),
    "mxf4nvf4": (("e2m1",), 4, 64, ((2, "ue8m0"), (4, "ue4m3"))),
}
"""`.kind` -> types of A and B, bits of each element, columns of A, and how many scales a row of A has, of which type.

In 8 bits e2m1 has the middle four, e3m2 and e2m3 the lowest six.
"""
_NAME = re.compile(
    r"mma(\.sp(?:::ordered_metadata)?)?\.sync\.aligned\.m(\d+)n8k(\d+)\.row\.col(?:\.kind::(\w+))?(\.block_scale)?(?:\.scale_vec::(\d)X)?"
    r"(\.satfinite)?\.(f16|f32|f64|s32)\.(\w+)\.(\w+)\.(f16|f32|f64|s32)(?:\.(ue8m0|ue4m3))?(?:\.(and|xor)\.popc)?"
)


@dataclass(frozen=True)
class Mma:
    """The shape and types of one `mma`.

    a, b       types of the elements of A and B; to: of C and D
    bits       of an element of A and B in a register
    scales     each row of A, and column of B, has so many factors, for equal parts of it; of the type `scale`
    is_sparse  A is given without its zeros
    combine    `and` or `xor`: a product of bits counts those that are set in this combination of a row and a column; else None
    """

    rows: int
    depth: int
    a: str
    b: str
    to: str
    saturates: bool
    bits: int
    is_sparse: bool = False
    combine: str | None = None
    scales: int = 0
    scale: str | None = None

    @classmethod
    def of(cls, name: str) -> Mma | None:
        """The instruction of that mnemonic; None for another one."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        sparse, rows, depth, kind, scaled, count, saturates, to, a, b, of, scale, combine = match.groups()
        shape = int(rows), int(depth)
        if kind is not None or scaled or count or scale:
            types, bits, columns, scales = KINDS.get(kind or "", ((), 0, 0, ()))
            number = int(count or {"mxf8f6f4": 1, "mxf4": 2}.get(kind or "", 0))
            fits = {a, b} <= {*types} and shape == (16, columns * (2 if sparse else 1)) and not (saturates or combine)
            fits = fits and (((number, scale) in scales and not sparse) if scaled else not (scales or count or scale))
            fits = fits and of == to and to in (("f32",) if scaled else ("f16", "f32"))
            found = cls(*shape, a, b, to, False, bits, sparse is not None, None, number, scale)
            return found if fits else None
        found = cls(*shape, a, b, to, saturates is not None, BITS.get(a, 0), sparse is not None, combine)
        exists = shape in SHAPES.get(a, ())
        if sparse:
            exists = found.rows == 16 and found.depth in SPARSE.get(a, ())
        fits = exists and _agree(a, b) and of == to and to in RESULTS[a] and (combine is None) == (a != "b1")
        return found if fits and (saturates is None or a[0] in "su") else None

    @property
    def registers(self) -> tuple[int, int, int]:
        """How many registers of each lane hold A, B, and C: of 32 bits, or of 64 for f64."""
        each = max(32, self.bits)
        of_c = self.rows * 8 // WARP_SIZE // (2 if self.to == "f16" else 1)
        return (
            self.rows * self.depth * self.bits // WARP_SIZE // each // (2 if self.is_sparse else 1),
            self.depth * 8 * self.bits // WARP_SIZE // each,
            of_c,
        )


_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)(\.satfinite)?\.(f16|f32|s32)\.(\w+)\.(\w+)(\.satfinite)?"
)
OF_INTEGERS = (8, 16, 24, *range(32, 257, 16))
"""Columns that B of integers may have; others have any multiple of 8 up to 256."""


@dataclass(frozen=True)
class Wgmma:
    """The shape and types of one `wgmma`. A has 64 rows; `depth` columns are 32 bytes. to: of D."""

    columns: int
    depth: int
    a: str
    b: str
    to: str
    saturates: bool

    @classmethod
    def of(cls, name: str) -> Wgmma | None:
        """The instruction of that mnemonic; None for another one."""
        match = _WGMMA.fullmatch(name)
        if match is None:
            return None
        columns, depth, before, to, a, b, after = match.groups()
        found = cls(int(columns), int(depth), a, b, to, bool(before or after))
        fits = found.columns in (OF_INTEGERS if to == "s32" else range(8, 257, 8)) and to in RESULTS.get(a, ())
        fits = fits and _agree(a, b) and 8 <= BITS[a] and found.depth * BITS[a] == 256
        return found if fits and (to == "s32" or not found.saturates) else None

    @property
    def registers(self) -> int:
        """How many registers of each thread hold D."""
        return self.columns // (4 if self.to == "f16" else 2)


_WMMA = re.compile(
    r"wmma\.(?:(load)\.([abc])|(store)\.(d)|(mma))\.sync\.aligned\.(row|col)(?:\.(row|col))?\.m(\d+)n(\d+)k(\d+)((?:\.\w+)+)"
)
_WMMA_SHAPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), ((16, 16, 16), (32, 8, 16), (8, 32, 16))),
    **{"tf32": ((16, 16, 8),), "f64": ((8, 8, 4),)},
}


@dataclass(frozen=True)
class Fragment:
    """A matrix that a warp holds: each thread `count` neighbouring elements, row by row, again from the first one behind the last.

    The ISA leaves open which thread holds what.
    """

    rows: int
    columns: int
    element: str
    count: int

    @property
    def registers(self) -> int:
        """Of each thread: of 32 bits, or of 64 for f64."""
        bits = {"f32": 32, "s32": 32}.get(self.element) or BITS[self.element]
        return self.count * bits // max(32, bits)


@dataclass(frozen=True)
class Wmma:
    """One `wmma` instruction. kind: `load`, `store`, `mma`; is_row: of the matrix that is loaded or stored; fragments: A, B, C, D or one"""

    kind: str
    is_row: bool
    fragments: tuple[Fragment, ...]
    saturates: bool = False

    @classmethod
    def of(cls, name: str) -> Wmma | None:
        """The instruction of that mnemonic without state space; None for another one."""
        match = _WMMA.fullmatch(name)
        if match is None:
            return None
        m, n, k = (int(number) for number in match.groups()[7:10])
        words = match[11][1:].split(".")
        saturates = "satfinite" in words
        words = [word for word in words if word != "satfinite"]
        shapes = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}

        def fragment(which: str, element: str) -> Fragment:
            rows, columns = shapes[which]
            # f16 has every element of A and B more than once.
            return Fragment(
                rows, columns, element, 16 if which in "ab" and element == "f16" else rows * columns // WARP_SIZE
            )

        kind, which = match[1] or match[3] or match[5], match[2] or match[4]
        if kind != "mma":
            if len(words) != 1 or match[7] or saturates:
                return None
            element = words[0]
            sources = [element] if which in "ab" else [a for a, results in RESULTS.items() if element in results]
            fits = any((m, n, k) in _WMMA_SHAPES.get(a, ()) for a in sources)
            return cls(kind, match[6] == "row", (fragment(which, element),)) if fits else None
        to, a, b, c = (words[0], "f16", "f16", words[1]) if len(words) == 2 else (*words, "", "", "", "")[:4]
        fits = (m, n, k) in _WMMA_SHAPES.get(a, ()) and a == b and {to, c} <= {*RESULTS[a]} and match[7]
        if not fits or (saturates and to != "s32") or len(words) not in (2, 4):
            return None
        parts = (("a", a), ("b", b), ("c", c), ("d", to))
        return cls(kind, True, tuple(fragment(which, element) for which, element in parts), saturates)
