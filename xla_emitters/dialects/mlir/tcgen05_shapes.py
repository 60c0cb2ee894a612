"""Which `tcgen05` instructions there are, by their mnemonics: loads, stores and copies of tensor memory, and products.

    TensorAccess.of("tcgen05.ld.sync.aligned.16x64b.x2.b32").registers                            2
    tensor_copy("tcgen05.cp.cta_group::1.4x256b")                                                 1, 2, ((0, 32, 64, 96),)
    TensorMma.of("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X").scales          2

Tensor memory has 128 lanes of 512 columns of 32 bits; an address has the lane in its upper half, the column in its lower one.
With `.cta_group::2` two neighbouring blocks of a cluster work together: each has half of the rows of A and D, and half of the columns of B.
Source: PTX ISA 8.8, 9.7.16.2 "Matrix and data movement shape", 9.7.16.4.2 "Instruction descriptor".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xla_emitters.dialects.mlir.mma_shapes import BITS

_SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Shape of a load or a store -> registers of one repetition; there are at most 128."""
_ACCESS = re.compile(
    r"tcgen05\.(ld|st)\.sync\.aligned\.(\d+x\d+b(?:x2)?)\.x(1|2|4|8|16|32|64|128)(?:\.((?:un)?pack)::16b)?\.b32"
)


@dataclass(frozen=True)
class TensorAccess:
    """A load or a store by a warp. is_packed: the lower halves of two columns are one register"""

    is_store: bool
    shape: str
    registers: int
    is_packed: bool

    @classmethod
    def of(cls, name: str) -> TensorAccess | None:
        """The instruction of that mnemonic; None for another one."""
        match = _ACCESS.fullmatch(name)
        if match is None or match[2] not in _SHAPES or match[4] not in (None, {"ld": "pack", "st": "unpack"}[match[1]]):
            return None
        found = cls(match[1] == "st", match[2], _SHAPES[match[2]] * int(match[3]), match[4] is not None)
        return found if found.registers <= 128 else None


_COPIES: dict[str, tuple[int, tuple[Sequence[int], ...]]] = {
    **{"128x256b": (2, (range(128),)), "128x128b": (1, (range(128),)), "4x256b": (2, (range(0, 128, 32),))},
    "64x128b.warpx2::02_13": (1, (range(64), range(64, 128))),
    "64x128b.warpx2::01_23": (1, ((*range(32), *range(64, 96)), (*range(32, 64), *range(96, 128)))),
    "32x128b.warpx4": (1, tuple(range(start, start + 32) for start in range(0, 128, 32))),
}


def tensor_copy(name: str) -> tuple[int, int, tuple[Sequence[int], ...]] | None:
    """In how many blocks, chunks of 16 bytes in a row, lanes of all rows, as often as these are written; None for another instruction."""
    blocks, _, shape = name.removeprefix("tcgen05.cp.cta_group::").partition(".")
    return (int(blocks), *_COPIES[shape]) if blocks in ("1", "2") and shape in _COPIES else None


_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
KINDS: dict[str, tuple[dict[int, str], int, dict[int, str], tuple[int, ...]]] = {
    "f16": ({0: "f16", 1: "bf16"}, 16, {0: "f16", 1: "f32"}, ()),
    "tf32": ({2: "tf32"}, 8, {1: "f32"}, ()),
    "f8f6f4": (_F8F6F4, 32, {0: "f16", 1: "f32"}, ()),
    "i8": ({0: "u8", 1: "s8"}, 32, {2: "s32"}, ()),
    "mxf8f6f4": (_F8F6F4, 32, {}, (1,)),
    "mxf4": ({1: "e2m1"}, 64, {}, (2,)),
    "mxf4nvf4": ({1: "e2m1"}, 64, {}, (2, 4)),
}
"""`.kind` -> types of A and B by their codes, columns of A, types of D by their codes, and how many scales a row of A may have."""
_MMA = re.compile(
    r"tcgen05\.mma\.cta_group::([12])\.kind::(\w+)(?:(\.block_scale)(?:\.(?:scale_vec::([124])X|block(16|32)))?)?"
    r"(?:\.collector::a::(?:fill|use|lastuse|discard))?"
)


@dataclass(frozen=True)
class TensorMma:
    """A product. blocks: that it is of; scales: each row of A, and column of B, has so many factors

    The types are in the instruction descriptor.
    """

    kind: str
    scales: int
    blocks: int

    @classmethod
    def of(cls, name: str) -> TensorMma | None:
        """The instruction of that mnemonic; None for another one."""
        match = _MMA.fullmatch(name)
        if match is None or match[2] not in KINDS:
            return None
        blocks, kind, scaled, count, block = match.groups()
        _, depth, _, may_have = KINDS[kind]
        if not scaled or not may_have:
            return None if scaled or may_have else cls(kind, 0, int(blocks))
        scales = int(count) if count else depth // int(block) if block else may_have[0]
        return cls(kind, scales, int(blocks)) if scales in may_have and (count or block or len(may_have) == 1) else None


@dataclass(frozen=True)
class TensorProduct:
    """What an instruction descriptor says of a product.

    rows, columns, depth   of D, and of A; all but depth are shared by `blocks`
    negates    A, B; along: which of them lie along their rows in shared memory
    scale      the type of factors; scale_bytes: which byte of a cell is the first factor of a row of A, of B
    """

    a: str
    b: str
    to: str
    rows: int
    columns: int
    depth: int
    blocks: int
    negates: tuple[bool, bool]
    along: tuple[bool, bool]
    saturates: bool
    scale: str = ""
    scale_bytes: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, mma: TensorMma, word: int) -> TensorProduct | str:
        """The product of a descriptor, or what is wrong with it."""
        types, depth, results, _ = KINDS[mma.kind]
        a, b = (types.get(word >> at & 7, "") for at in (7, 10))
        negates, along = ((bool(word >> at & 1), bool(word >> at + 1 & 1)) for at in (13, 15))
        saturates = bool(word >> 3 & 1)
        to = "f32" if mma.scales else results.get(word >> 4 & 3, "")
        columns, rows = 8 * (word >> 17 & 63), 16 * (word >> 24 & 31)
        scale = ("ue4m3", "ue8m0")[word >> 23 & 1] if mma.scales else ""
        scale_bytes = (word >> 29 & 3, word >> 4 & 3) if mma.scales else (0, 0)
        wide = mma.blocks == 2 or (rows == 128 and not mma.scales) or (mma.kind == "i8" and columns > 24)
        step = 16 if wide else 8
        faults = (
            (bool(word & 7), "of a sparse matrix, which is not supported"),
            (not (a and b and to), "with a type that this kind does not have"),
            (to == "f16" and "bf16" in (a, b), "with sums of f16 of bf16"),
            (rows // mma.blocks not in ((128,) if mma.scales else (64, 128)), f"of {rows} rows"),
            (not columns or columns > 256 or columns % step != 0, f"of {columns} columns"),
            (mma.kind == "i8" and any(negates), "that negates integers"),
            (saturates and mma.kind != "i8", "that saturates floats"),
            ((along[0] and a in _UNPADDED) or (along[1] and b in _UNPADDED), "with less than 8 bits along rows"),
            (mma.scales in (1, 2) and scale != "ue8m0", "with factors of ue4m3"),
            (any(first % max(1, mma.scales) for first in scale_bytes), f"with factors from bytes {scale_bytes}"),
            (bool(word >> 31 and mma.scales), "of 96 columns of A, which is not supported"),
        )
        if found := next((what for is_wrong, what in faults if is_wrong), ""):
            return found
        return cls(a, b, to, rows, columns, depth, mma.blocks, negates, along, saturates, scale, scale_bytes)

    def bits(self, word: str) -> int:
        """Of an element in shared memory: 32 of four bits in 16 bytes, or 16 of less than eight at their start."""
        return 4 if self.depth == 64 else _UNPADDED.get(word, BITS[word])


_UNPADDED = {"e3m2": 6, "e2m3": 6, "e2m1": 4}
"""Types that lie along k alone."""
