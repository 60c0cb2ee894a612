"""Measures error bounds on thousands of chains: do they admit everything a correct kernel may return, and do they catch errors?

    make bounds                                                             1,000 chains of ops, seeds from 0 on
    PYTHONPATH=tests python -m runtime.bounds --first 5000 --chains 100 --kernels 10

    family     type  chains  honest alarms kernels alarms faults hidden   felt caught      % bound/error
    attention  bf16      37     876      0       4      0    148     20     53     53  100.0         3.1

A chain is generated from a seed: HLO text of blocks (dot, softmax, norms, sums, functions, or one block several times) that feed each
other, and inputs.

honest   what a correct kernel may give, by an evaluator of its own (`evaluated`): each function the float64 value, rounded, and moved by as
         many ulps as its op may be off (all up, all down, at random); each sum that may go in any order in another one (reversed, in pairs,
         in blocks, at random), with products rounded or not; and every op's float64 value rounded once. Sums that no threads share go in
         the reference's order, as they do in kernels. Beside these, kernels that are aimed (`aimed_at`): at one element of the result,
         every function and every sum of a dot going the way that takes this element furthest up, or down, by the chain's derivative; a sum
         by its order, found by search: of dots any, of sums that threads share a tree.
         An alarm is an honest array that the bounds do not admit
kernels  the compiled kernel on the CPU executor, first and last stage; some chains are beyond what it runs
faults   one element off by 5 %, one term of a sum or dot left out, a neighbour's value, the operands of a subtract, divide or dot swapped:
         at an instruction drawn from the chain, all else as in the honest array whose ops are float64's, each rounded once
hidden   faults whose array is between those of honest kernels in each element: no bounds by element can tell them
felt     faults that move an element of the result by more than 4 times its honest error: the largest distance, over the honest arrays
         (those aimed at it among them), from that element's value in float64 without any rounding. Looked at are the elements that a
         fault moves furthest, as measured by their honest error, up to 4 of them
caught   of those, how many the bounds do not admit
bound/error  half of the interval, over the honest error, at the elements that were aimed at: the median of all

Ends with 1 for an alarm, or where less than 99 % of the felt faults are caught.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dialects.hlo.base import HloOp, integers, no_call
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, find_computation
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array, Kind, dtype
from xla_emitters.explore.check.check import check
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.reduction_kinds import chains_of_heroes
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.tolerance import ulps_of
from xla_emitters.text.hlo import parse_hlo

TYPES = ("f32", "f16", "bf16")
FELT = 4
"""A fault counts if it moves an element by more than this many times the element's honest error."""
AIMED = 4
"""Number of elements that are examined for each fault."""
WANTED = 0.99
STAGES = "xla_gpu,llvm-dialect"


# ---------------------------------------------------------------------------------------------------- chains


@dataclass
class Chain:
    """HLO text of ENTRY, grown block by block; every value is `type`[rows, columns]."""

    rng: random.Random
    type: str
    rows: int
    columns: int
    lines: list[str] = field(default_factory=list[str])
    parameters: list[tuple[tuple[int, ...], float]] = field(default_factory=list[tuple[tuple[int, ...], float]])

    def add(self, dims: Sequence[int], code: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {self.type}[{','.join(map(str, dims))}] {code}")
        return name

    def parameter(self, dims: Sequence[int], scale: float) -> str:
        self.parameters.append((tuple(dims), scale))
        return self.add(dims, f"parameter({len(self.parameters) - 1})")

    def whole(self, opcode: str, *operands: str) -> str:
        """An elementwise op of arrays of all rows and columns."""
        return self.add((self.rows, self.columns), f"{opcode}({', '.join(operands)})")

    def number(self, value: float, dims: Sequence[int] | None = None) -> str:
        scalar = self.add((), f"constant({value})")
        return self.add(dims or (self.rows, self.columns), f"broadcast({scalar}), dimensions={{}}")

    def along_rows(self, x: str, body: str, init: str) -> str:
        start = self.add((), f"constant({init})")
        return self.add((self.rows,), f"reduce({x}, {start}), dimensions={{1}}, to_apply={body}")

    def over_rows(self, x: str) -> str:
        """One number per row, broadcast to all columns."""
        return self.add((self.rows, self.columns), f"broadcast({x}), dimensions={{0}}")

    def mean(self, x: str) -> str:
        total = self.along_rows(x, "sum", "0")
        share = self.number(1 / self.columns, (self.rows,))
        return self.over_rows(self.add((self.rows,), f"multiply({total}, {share})"))

    # ------------------------------------------------------------------------------------------- blocks

    def dot(self, x: str) -> str:
        w = self.parameter((self.columns, self.columns), self.columns**-0.5)
        return self.add(
            (self.rows, self.columns), f"dot({x}, {w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )

    def functions(self, x: str) -> str:
        match self.rng.randrange(9):
            case 0:
                return self.whole("tanh", x)
            case 1:
                return self.whole("logistic", x)
            case 2:
                return self.whole("exponential", self.whole("tanh", x))
            case 3:
                return self.whole("log", self.whole("add", self.whole("abs", x), self.number(0.5)))
            case 4:
                return self.whole("divide", x, self.whole("add", self.whole("abs", x), self.number(1)))
            case 5:
                return self.whole("sqrt", self.whole("add", self.whole("multiply", x, x), self.number(0.25)))
            case 6:
                return self.whole("sine", x)
            case 7:
                return self.gelu(x)
            case _:
                shifted = self.whole("add", self.whole("abs", x), self.number(0.75))
                return self.whole("multiply", x, self.whole("rsqrt", shifted))

    def gelu(self, x: str) -> str:
        cube = self.whole("multiply", self.whole("multiply", x, x), x)
        inner = self.whole("add", x, self.whole("multiply", cube, self.number(0.044715)))
        turned = self.whole("tanh", self.whole("multiply", inner, self.number(0.79788)))
        half = self.whole("multiply", x, self.number(0.5))
        return self.whole("multiply", half, self.whole("add", turned, self.number(1)))

    def softmax(self, x: str) -> str:
        largest = self.over_rows(self.along_rows(x, "largest", "-inf"))
        powers = self.whole("exponential", self.whole("subtract", x, largest))
        return self.whole("divide", powers, self.over_rows(self.along_rows(powers, "sum", "0")))

    def norm(self, x: str) -> str:
        """Layer norm or RMS norm."""
        moved = self.whole("subtract", x, self.mean(x)) if self.rng.random() < 0.5 else x
        variance = self.mean(self.whole("multiply", moved, moved))
        return self.whole("multiply", moved, self.whole("rsqrt", self.whole("add", variance, self.number(0.01))))

    def reduction(self, x: str) -> str:
        if self.rng.random() < 0.5:
            return self.whole("subtract", x, self.mean(x))
        total = self.mean(self.whole("abs", x))
        return self.whole("divide", x, self.whole("add", total, self.number(0.5)))

    def attention(self, x: str) -> str:
        q, k, v = self.dot(x), self.dot(x), self.dot(x)
        square = self.rows, self.rows
        scores = self.add(square, f"dot({q}, {k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}")
        columns, self.columns = self.columns, self.rows
        weights = self.softmax(scores)
        self.columns = columns
        return self.add(
            (self.rows, columns), f"dot({weights}, {v}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )

    def mlp(self, x: str) -> str:
        return self.whole("add", x, self.dot(self.gelu(self.dot(x))))

    def mixed(self, x: str) -> str:
        return self.rng.choice([self.dot, self.functions, self.softmax, self.norm, self.reduction])(x)

    # ------------------------------------------------------------------------------------------- text

    def text(self, root: str) -> str:
        bodies = [
            f"{name} {{\n  a = {self.type}[] parameter(0)\n  b = {self.type}[] parameter(1)\n"
            f"  ROOT r = {self.type}[] {opcode}(a, b)\n}}"
            for name, opcode in (("sum", "add"), ("largest", "maximum"))
        ]
        lines = (f"  {'ROOT ' if line.startswith(f'{root} =') else ''}{line}" for line in self.lines)
        return "\n".join((*bodies, "ENTRY chain {", *lines, "}")) + "\n"


FAMILIES: dict[str, Callable[[Chain, str], str]] = {
    "dot": Chain.dot,
    "softmax": Chain.softmax,
    "norm": Chain.norm,
    "reduction": Chain.reduction,
    "functions": Chain.functions,
    "attention": Chain.attention,
    "mlp": Chain.mlp,
    "mixed": Chain.mixed,
}
KINDS = (*FAMILIES, "loop")


@dataclass(frozen=True)
class Drawn:
    """A chain of a seed.

    family   which blocks; "loop": one block several times, as a loop of so many trips, unrolled
    """

    seed: int
    family: str
    type: str
    text: str
    inputs: tuple[Array, ...]

    @property
    def entry(self) -> ComputationOp:
        return entry_of(parse_hlo(self.text, f"{self.seed}.hlo"))


def draw_chain(seed: int) -> Drawn:
    """The chain of that seed, the same on every machine."""
    rng = random.Random(seed)
    family, type = KINDS[seed % len(KINDS)], TYPES[seed // len(KINDS) % len(TYPES)]
    chain = Chain(rng, type, rng.choice((4, 8, 12)), rng.choice((16, 32, 64)))
    x = chain.parameter((chain.rows, chain.columns), rng.choice((0.5, 1, 2)))
    if family == "loop":
        block, state = rng.choice([name for name in FAMILIES if name != "mixed"]), rng.getstate()
        for _ in range(rng.randrange(2, 7)):
            chain.rng.setstate(state)
            x = FAMILIES[block](chain, x)
    else:
        x = FAMILIES[family](chain, chain.functions(x) if rng.random() < 0.6 else x)
        for _ in range(rng.randrange(0, 3)):
            x = chain.mixed(x)
    if family == "reduction" or rng.random() < 0.15:
        x = chain.along_rows(x, "sum", rng.choice(("0", "1.5")))
    text = chain.text(x)
    numbers = np.random.default_rng([seed, 29])
    kind = dtype(type).numpy
    inputs = tuple((scale * numbers.standard_normal(dims)).astype(kind) for dims, scale in chain.parameters)
    return Drawn(seed, family, type, text, inputs)


# ---------------------------------------------------------------------------------------------------- what kernels may give


@dataclass(frozen=True)
class Way:
    """One way in which a correct kernel may compute.

    moved   by how many of its ulps a function is off: 1 all up, -1 all down, None at random, 0 not at all
    order   of terms where it is open: "reversed", "pairs", "blocks", "random", "sequence"; "wide": summed in float64
    fused   whether products are not rounded before they are added
    seed    of random choices
    """

    moved: int | None
    order: str
    fused: bool
    seed: int = 0


WAYS = (
    Way(0, "sequence", False),
    Way(1, "reversed", False),
    Way(-1, "pairs", True),
    Way(None, "blocks", False, 1),
    Way(None, "random", True, 2),
    Way(1, "random", False, 3),
    Way(-1, "blocks", True, 4),
    Way(0, "wide", True),
)
"""The last one is every op's float64 value, rounded once."""


@dataclass(frozen=True)
class Fault:
    """An error at one instruction.

    kind    "5 %", "term", "lane" or "swap"
    at      number of the instruction
    place   the element that is wrong, flat
    term    the term that is missing
    """

    kind: str
    at: int
    place: int = 0
    term: int = 0


def evaluated(
    computation: ComputationOp,
    inputs: Sequence[Array],
    way: Way | None,
    fault: Fault | None = None,
    aim: Aim | None = None,
) -> Array:
    """The root's value. See `values_of`."""
    return values_of(computation, inputs, way, fault, aim)[computation.root]


def values_of(
    computation: ComputationOp,
    inputs: Sequence[Array],
    way: Way | None,
    fault: Fault | None = None,
    aim: Aim | None = None,
) -> dict[Any, Array]:
    """The value of every instruction, one after the other.

    way  None: in float64, without any rounding
    aim  value of an instruction -> per element, whether a greater or smaller value moves the result as aimed; `way` applies to the rest
    """
    rng = np.random.default_rng(way.seed if way else 0)
    shared = _chains(computation)
    values: dict[Any, Array] = {}
    for number, op in enumerate(computation.instructions):
        if isinstance(op, ParameterOp):
            given = inputs[op.number.value.data]
            values[op.result] = given if way else given.astype(np.float64)
            continue
        operands = [values[operand] for operand in op.operands]
        here = fault if fault is not None and fault.at == number else None
        if here is not None and here.kind == "swap":
            operands.reverse()
        values[op.result] = _after(
            op,
            operands,
            way,
            rng,
            shared.get(op) if isinstance(op, ReduceOp) else None,
            here,
            None if aim is None else aim[op.result],
        )
        if here is not None and here.kind in ("5 %", "lane"):
            values[op.result] = _damaged(values[op.result], here)
    return values


@lru_cache(maxsize=1)
def _chains(computation: ComputationOp) -> dict[ReduceOp, int]:
    return chains_of_heroes(computation)


def _damaged(array: Array, fault: Fault) -> Array:
    flat = array.reshape(-1).copy()
    other = fault.place - 1 if fault.place else 1
    wrong = flat[fault.place].astype(np.float64) * 1.05 if fault.kind == "5 %" else flat[other]
    flat[fault.place] = np.asarray(wrong).astype(array.dtype)
    return flat.reshape(array.shape)


def _after(
    op: HloOp,
    operands: Sequence[Array],
    way: Way | None,
    rng: np.random.Generator,
    chain: int | None,
    fault: Fault | None,
    aim: Array | None,
) -> Array:
    result = element_of(op.result)
    if isinstance(op, DotOp):
        x, y = operands
        rows = x.transpose([*(d for d in range(2) if d not in op.pairing.lhs_contracting), *op.pairing.lhs_contracting])
        columns = y.transpose(
            [*op.pairing.rhs_contracting, *(d for d in range(2) if d not in op.pairing.rhs_contracting)]
        )
        terms = [
            rows.astype(np.float64)[:, k, None] * columns.astype(np.float64)[None, k, :] for k in range(rows.shape[1])
        ]
        terms = _without(terms, fault)
        if aim is not None:
            return _chosen(terms, aim, rng, np.float32).astype(result.numpy)
        if way is None or way.order == "wide":
            total = np.sum(terms, axis=0)
            return total if way is None else total.astype(result.numpy)
        return _summed(terms, way, rng, np.float32).astype(result.numpy)
    if isinstance(op, ReduceOp):
        opcode = find_computation(op, op.to_apply).root.owner
        assert isinstance(opcode, HloOp)
        array, init = operands
        terms = _without([init.astype(np.float64) + np.zeros(array.shape[0]), *array.astype(np.float64).T], fault)
        if opcode.opcode == "maximum":
            return np.max(terms, axis=0).astype(array.dtype)
        if way is None or (way.order == "wide" and chain is not None):
            return np.sum(terms, axis=0).astype(array.dtype)
        if chain is not None and aim is not None and chain >= len(terms):
            return _chosen(terms, aim, rng, array.dtype)
        if chain is not None and aim is not None:
            orders = (Way(0, order, True) for order in ("pairs", "blocks"))
            found = [_summed(terms, order, rng, array.dtype, most=chain) for order in orders]
            if (len(terms) - 2).bit_length() + 1 <= chain:
                found += [_paired(terms, aim, array.dtype, by_size=by_size) for by_size in (False, True)]
            return _furthest(found, aim)
        is_free = chain is not None and (way.order in ("pairs", "blocks") or chain >= len(terms))
        own = Way(0, way.order, True) if is_free else Way(0, "sequence", True)
        return _summed(terms, own, rng, array.dtype, most=chain)
    if not isinstance(op, ElementwiseOp):
        return op.evaluate(operands, no_call).astype(np.float64 if way is None else result.numpy)
    value = np.asarray(op.ROW.means(dtype("f64"), *(operand.astype(np.float64) for operand in operands)))
    if way is None:
        return value
    return _moved(
        value.astype(result.numpy), ulps_of(op.opcode, Kind.FLOAT.value, result.bits), way, rng, op.opcode, aim
    )


def _chosen(terms: Sequence[Array], aim: Array, rng: np.random.Generator, kind: Any) -> Array:
    """For each element of a dot, the order that moves it furthest; also tries terms by size, which make the largest partial sums."""
    ways = [Way(0, order, fused) for order in ("sequence", "reversed", "blocks", "random") for fused in (False, True)]
    ordered = np.sort(np.asarray(terms), axis=0)
    found = [_summed(terms, way, rng, kind) for way in ways]
    found += [_summed(list(each), Way(0, "sequence", False), rng, kind) for each in (ordered, ordered[::-1])]
    found.append(_aligned(ordered, aim, kind))
    return _furthest(found, aim)


def _aligned(terms: Array, aim: Array, kind: Any) -> Array:
    """Terms in an order per element that takes, at each step, the term whose rounding moves furthest in the aimed direction.

    Products are rounded before the addition where that moves in this direction, and fused where not.
    """
    rounded = terms.astype(kind).astype(np.float64)
    given = np.where(aim * (rounded - terms) > 0, rounded, terms)
    left, total = np.ones(given.shape, np.bool_), np.zeros(given.shape[1:])
    for _ in range(len(given)):
        sums = total + given
        after = sums.astype(kind).astype(np.float64)
        at = np.where(left, aim * (after - sums), -np.inf).argmax(0)[np.newaxis]
        total = np.take_along_axis(after, at, 0)[0]
        np.put_along_axis(left, at, False, 0)
    return total.astype(kind)


def _paired(terms: Sequence[Array], aim: Array, kind: Any, *, by_size: bool) -> Array:
    """Terms, the initial value first, as a tree: for each element the pairs, level by level, whose roundings go the way it is aimed.

    by_size  pairs of neighbours by size instead, which make the largest partial sums
    """
    total = np.zeros(aim.shape)
    for place in np.ndindex(*aim.shape):
        level = np.array([term[place] for term in terms[1:]])
        while len(level) > 1:
            level = np.sort(level)
            sums = level[:, None] + level[None, :]
            after = sums.astype(kind).astype(np.float64)
            gain = aim[place] * (after - sums)
            np.fill_diagonal(gain, -np.inf)
            left, given = len(level), list[float]()
            at = np.arange(0, left - 1, 2)
            if by_size:
                given, left = list(after[at, at + 1]), left - 2 * len(at)
                rest = level[2 * len(at) :]
            else:
                is_left = np.ones(left, np.bool_)
                while left > 1:
                    one, other = np.unravel_index(gain.argmax(), gain.shape)
                    given.append(float(after[one, other]))
                    gain[[one, other]] = gain[:, [one, other]] = -np.inf
                    is_left[[one, other]], left = False, left - 2
                rest = level[is_left]
            level = np.array([*given, *rest])
        total[place] = float((terms[0][place] + level[0]).astype(kind)) if len(level) else terms[0][place]
    return total.astype(kind)


def _furthest(values: Sequence[Array], aim: Array) -> Array:
    most, least = (reduce(choose, values) for choose in (np.maximum, np.minimum))
    return np.where(aim > 0, most, least)


def _without(terms: list[Array], fault: Fault | None) -> list[Array]:
    """The terms of a sum, without the missing one of one element."""
    if fault is None or fault.kind != "term":
        return terms
    number = fault.term % len(terms)
    less = terms[number].copy()
    less.reshape(-1)[fault.place % less.size] = 0
    return [*terms[:number], less, *terms[number + 1 :]]


def _moved(array: Array, ulps: int, way: Way, rng: np.random.Generator, opcode: str, aim: Array | None) -> Array:
    if ulps == 0 or (way.moved == 0 and aim is None):
        return array
    steps = rng.integers(-ulps, ulps + 1, array.shape) if way.moved is None else np.full(array.shape, way.moved * ulps)
    if aim is not None:
        steps = (aim * ulps).astype(np.int64)
    moved = array
    for step in range(1, ulps + 1):
        up, down = (np.nextafter(moved, np.array(end).astype(array.dtype)) for end in (np.inf, -np.inf))
        moved = np.where(steps >= step, up, np.where(steps <= -step, down, moved))
    is_below = (moved < 0) & (array >= 0) & (opcode in ("exponential", "sqrt", "logistic", "rsqrt"))
    return np.where(is_below, array, moved)


def _summed(terms: Sequence[Array], way: Way, rng: np.random.Generator, kind: Any, most: int | None = None) -> Array:
    """Terms, exact in float64, added in an order; each sum rounded to `kind`, products before unless they are fused.

    most    additions that an element may go through
    """

    def added(one: Array, other: Array) -> Array:
        return (one.astype(np.float64) + other.astype(np.float64)).astype(kind)

    given: list[Array] = list(terms) if way.fused else [term.astype(kind) for term in terms]
    match way.order:
        case "reversed":
            given.reverse()
        case "random":
            given = [given[number] for number in rng.permutation(len(given))]
        case "pairs":
            given = [term.astype(kind) for term in given]
            while len(given) > 1:
                rest = given[len(given) // 2 * 2 :]
                given = [added(a, b) for a, b in zip(given[::2], given[1::2], strict=False)] + rest
        case "blocks":
            size = max(2, min(8, (most or 16) // 2))
            blocks = [given[first : first + size] for first in range(0, len(given), size)]
            sequence = Way(0, "sequence", True)
            return _summed([_summed(block, sequence, rng, kind) for block in blocks], Way(0, "pairs", True), rng, kind)
        case _:
            pass
    total: Array = given[0].astype(kind)
    for term in given[1:]:
        total = added(total, term)
    return total


# ---------------------------------------------------------------------------------------------------- aimed kernels


Aim: TypeAlias = dict[Any, Array]


def aimed_at(computation: ComputationOp, exact: dict[Any, Array], place: int) -> Aim:
    """For every element of every instruction the sign of the derivative of the root's element `place` (flat) by it."""
    slopes: dict[Any, Array] = {value: np.zeros(array.shape) for value, array in exact.items()}
    slopes[computation.root].reshape(-1)[place] = 1
    for op in reversed(list(computation.instructions)):
        if isinstance(op, ParameterOp):
            continue
        given = _given_back(op, [exact[operand] for operand in op.operands], slopes[op.result])
        for operand, slope in zip(op.operands, given, strict=True):
            slopes[operand] = slopes[operand] + slope
    return {value: np.sign(slope) for value, slope in slopes.items()}


def _given_back(op: HloOp, operands: Sequence[Array], slope: Array) -> list[Array]:
    """The derivative by each operand, given the derivative by the result."""
    if isinstance(op, DotOp):
        x, y = operands
        turned = op.pairing.rhs_contracting == (1,)
        return [slope @ (y if turned else y.T), slope.T @ x if turned else x.T @ slope]
    if isinstance(op, ReduceOp):
        opcode = find_computation(op, op.to_apply).root.owner
        assert isinstance(opcode, HloOp)
        array = operands[0]
        share = array == array.max(1, keepdims=True) if opcode.opcode == "maximum" else np.ones_like(array)
        return [slope[:, None] * share, np.zeros(())]
    if isinstance(op, BroadcastOp):
        kept = integers(op.dimensions)
        return [slope.sum(tuple(dim for dim in range(slope.ndim) if dim not in kept))]
    if not isinstance(op, ElementwiseOp):
        return [np.zeros(operand.shape) for operand in operands]
    found = list[Array]()
    for number, operand in enumerate(operands):
        step = 1e-6 * (1 + np.abs(operand))
        either = [
            op.ROW.means(
                dtype("f64"), *(operand + sign * step if at == number else other for at, other in enumerate(operands))
            )
            for sign in (1, -1)
        ]
        found.append(np.nan_to_num(slope * (either[0] - either[1]) / (2 * step)))
    return found


# ---------------------------------------------------------------------------------------------------- one chain


@dataclass
class Outcome:
    """The result for one chain. `alarms`: the honest ways, and "kernel", that the bounds do not admit."""

    family: str
    type: str
    honest: int = 0
    kernels: int = 0
    faults: int = 0
    hidden: int = 0
    felt: int = 0
    caught: int = 0
    ratios: list[float] = field(default_factory=list[float])
    alarms: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])


def faults_of(computation: ComputationOp, rng: random.Random, count: int) -> list[Fault]:
    """`count` faults of each kind that is possible in the chain."""
    instructions = list(enumerate(computation.instructions))
    computed = [
        (at, op) for at, op in instructions
        if isinstance(op, ElementwiseOp | DotOp | ReduceOp)
    ]  # fmt: skip

    def size(op: HloOp) -> int:
        return int(np.prod(op.result.type.get_shape()))

    summed = [(at, op) for at, op in computed if isinstance(op, DotOp | ReduceOp)]
    swaps = [
        (at, op) for at, op in computed
        if op.opcode in ("subtract", "divide") or (isinstance(op, DotOp) and op.operands[0].type == op.operands[1].type)
    ]  # fmt: skip
    found = list[Fault]()
    for _ in range(count):
        for kind in ("5 %", "lane"):
            at, op = rng.choice(computed)
            found.append(Fault(kind, at, rng.randrange(size(op))))
        if summed:
            at, op = rng.choice(summed)
            found.append(Fault("term", at, rng.randrange(size(op)), rng.randrange(1 << 16)))
        if swaps:
            found.append(Fault("swap", rng.choice(swaps)[0]))
    return found


def examine(seed: int, kernels: int, faults: int = 1, aimed: int = AIMED) -> Outcome:
    """Examines a chain.

    kernels  its kernel runs if the seed is a multiple of this number; 0: never
    faults   number of faults of each kind
    aimed    elements that are examined for each fault
    """
    drawn = draw_chain(seed)
    computation = drawn.entry
    outcome = Outcome(drawn.family, drawn.type)
    with np.errstate(all="ignore"):
        (bounds,) = evaluate_bounds(computation, drawn.inputs)
        exact = values_of(computation, drawn.inputs, None)
        error = np.zeros(exact[computation.root].size)
        least = most = evaluated(computation, drawn.inputs, WAYS[-1])

        def judge(name: str, way: Way, aim: Aim | None = None) -> None:
            nonlocal least, most
            value = evaluated(computation, drawn.inputs, way, aim=aim)
            least, most = np.minimum(least, value), np.maximum(most, value)
            outcome.honest += 1
            if not bounds.admits(value).all():
                outcome.alarms.append(f"seed {seed}: {name}")
            off = np.abs(value.astype(np.float64) - exact[computation.root]).reshape(-1)
            np.maximum(error, np.nan_to_num(off, nan=np.inf), out=error)

        for way in WAYS:
            judge(str(way), way)
        right = evaluated(computation, drawn.inputs, WAYS[-1])
        done = set[int]()

        def aim_at(place: int) -> None:
            if place in done:
                return
            done.add(place)
            up = aimed_at(computation, exact, place)
            judge(f"aimed at {place}, up", WAYS[0], up)
            judge(f"aimed at {place}, down", WAYS[0], {value: -sign for value, sign in up.items()})

        for fault in faults_of(computation, random.Random(seed), faults):
            wrong = evaluated(computation, drawn.inputs, WAYS[-1], fault)
            outcome.faults += 1
            effect = np.nan_to_num(np.abs(wrong.astype(np.float64) - right.astype(np.float64)), nan=np.inf).reshape(-1)
            is_felt = False
            for _ in range(aimed):
                place = int(np.argmax(effect / np.maximum(error, np.finfo(np.float64).tiny)))
                aim_at(place)
                is_felt = bool(effect[place] > FELT * error[place])
                if is_felt:
                    break
            outcome.hidden += bool(((wrong >= least) & (wrong <= most)).all())
            if not is_felt:
                continue
            outcome.felt += 1
            is_caught = not bounds.admits(wrong).all()
            outcome.caught += is_caught
            if not is_caught:
                outcome.missed.append(f"seed {seed}: {fault}")
        aim_at(random.Random(seed).randrange(error.size))
        half = ((bounds.high.astype(np.float64) - bounds.low.astype(np.float64)) / 2).reshape(-1)
        outcome.ratios = [float(half[place] / error[place]) for place in sorted(done) if error[place] > 0]
    if kernels and seed % kernels == 0:
        verdict = check(drawn.text, target="t4", stages=STAGES, inputs=drawn.inputs, verify=False)
        if "too many ops" not in verdict.summary:
            outcome.kernels = 1
            if not verdict.ok:
                outcome.alarms.append(f"seed {seed}: kernel: {verdict.summary}")
    return outcome


# ---------------------------------------------------------------------------------------------------- table


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A row per family and type, and one for all."""
    rows = defaultdict[tuple[str, str], list[Outcome]](list)
    for outcome in outcomes:
        rows[outcome.family, outcome.type].append(outcome)
    lines = [
        f"{'family':<10} {'type':<5} {'chains':>6} {'honest':>7} {'alarms':>6} {'kernels':>7} {'alarms':>6}"
        f" {'faults':>6} {'hidden':>6} {'felt':>6} {'caught':>6} {'%':>6} {'bound/error':>11}"
    ]
    ordered = sorted(rows, key=lambda row: (KINDS.index(row[0]), TYPES.index(row[1])))
    for name, type in ordered:
        lines.append(_row(name, type, rows[name, type]))
    for type in TYPES:
        lines.append(_row("all", type, [outcome for outcome in outcomes if outcome.type == type]))
    lines.append(_row("all", "", outcomes))
    return lines


def _row(name: str, type: str, outcomes: Sequence[Outcome]) -> str:
    def total(of: Callable[[Outcome], int]) -> int:
        return sum(map(of, outcomes))

    felt, caught, hidden = total(lambda o: o.felt), total(lambda o: o.caught), total(lambda o: o.hidden)
    ratio = float(np.median([ratio for outcome in outcomes for ratio in outcome.ratios] or [0.0]))
    share = 100 * caught / max(1, felt)
    of_kernels = total(lambda o: sum("kernel" in alarm for alarm in o.alarms))
    return (
        f"{name:<10} {type:<5} {len(outcomes):>6} {total(lambda o: o.honest):>7}"
        f" {total(lambda o: len(o.alarms)) - of_kernels:>6} {total(lambda o: o.kernels):>7} {of_kernels:>6}"
        f" {total(lambda o: o.faults):>6} {hidden:>6} {felt:>6} {caught:>6} {share:>6.1f} {ratio:>11.1f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Random chains: bounds against honest kernels and planted faults.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--chains", type=int, default=1000, help="how many seeds")
    parser.add_argument("--kernels", type=int, default=10, help="compile and run every n-th chain; 0: none")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.chains)
    with multiprocessing.Pool(options.jobs, maxtasksperchild=100) as pool:
        outcomes = list(pool.imap(partial(examine, kernels=options.kernels), seeds))
    print("\n".join(table(outcomes)))
    for outcome in outcomes:
        for line in outcome.alarms:
            print(f"alarm: {line}")
    for outcome in outcomes:
        for line in outcome.missed:
            print(f"missed: {line}")
    felt, caught = sum(outcome.felt for outcome in outcomes), sum(outcome.caught for outcome in outcomes)
    return 1 if any(outcome.alarms for outcome in outcomes) or caught < WANTED * felt else 0


if __name__ == "__main__":
    sys.exit(main())
