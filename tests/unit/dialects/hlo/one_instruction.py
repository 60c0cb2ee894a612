"""A module around one instruction: whether it verifies, and its value; and values for its operands."""

from itertools import product
from typing import Any

import numpy as np

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dtypes import Kind, dtype
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
TWO = (
    "two { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)"
    " ROOT t = (f32[], s32[]) tuple(b, j) }\n"
)
INPUTS = (
    "x = f32[8,64] parameter(0) z = f32[] parameter(1) i = s32[8,64] parameter(2) k = s32[] parameter(3)"
    " y = f32[8,3,64] parameter(4) n = s32[5,1] parameter(5) u = f32[5,1,64] parameter(6) w = f32[5] parameter(7)"
    " im = f32[1,9,9,3] parameter(8) ke = f32[2,2,3,7] parameter(9)"
)


def verify(instruction: str) -> None:
    """The instruction over INPUTS. raises VerifyError."""
    parse_hlo(f"{ADD}{TWO}e {{ {INPUTS} ROOT r = {instruction} }}").verify()


BODIES = """
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
mix { a = s32[] parameter(0) b = s32[] parameter(1) t = s32[] constant(3) m = s32[] multiply(a, t) ROOT c = s32[] subtract(m, b) }
first { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] reshape(a) }
seven { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] constant(7) }
larger { a = s32[] parameter(0) i = s32[] parameter(1) b = s32[] parameter(2) j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE v = s32[] select(ge, a, b) k = s32[] select(ge, i, j)
  ROOT t = (s32[], s32[]) tuple(v, k) }
"""


def shaped(*dims: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + int(np.prod(dims)), dtype=np.int32).reshape(dims)


def run(instruction: str, *arrays: Any, computations: str = "") -> tuple[HloOp, list[np.ndarray]]:
    """The instruction over parameters p0, p1 ..., and its value. `computations` are what it may call besides BODIES."""
    given = [np.asarray(array) for array in arrays]
    names = {
        "int8": "s8",
        "uint8": "u8",
        "int32": "s32",
        "int64": "s64",
        "uint64": "u64",
        "float32": "f32",
        "float16": "f16",
        "bool": "pred",
    }
    lines = [
        f"p{i} = {names[array.dtype.name]}[{','.join(map(str, array.shape))}] parameter({i})"
        for i, array in enumerate(given)
    ]
    module = parse_hlo("\n".join([BODIES, computations, "ENTRY e {", *lines, f"ROOT r = {instruction}", "}"]))
    module.verify()
    entry = entry_of(module)
    root = entry.root.owner
    assert isinstance(root, HloOp)
    return root, evaluate(entry, given)


def domain(map: IndexingMap, index: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The values of the range variables for which `index` is in the domain, in the order in which loops visit them."""
    if not all(dim.bounds.contains(at) for dim, at in zip(map.dims, index, strict=True)):
        return []
    found = product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in map.range_vars))
    return [symbols for symbols in found if map.constraints_satisfied(index, symbols)]


def wrapped(value: int, bits: int, signed: bool) -> int:
    """The value that so many bits hold."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def integers(values: list[int], type: str) -> np.ndarray:
    wide = np.int64 if dtype(type).kind is Kind.SIGNED else np.uint64
    return np.array(values, object).astype(wide).astype(dtype(type).numpy)


def all_of(type: str) -> np.ndarray:
    """Every value of a type."""
    dt = dtype(type)
    return np.arange(1 << dt.bits, dtype=np.dtype(f"u{dt.bits // 8}")).view(dt.numpy)
