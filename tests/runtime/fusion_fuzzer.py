"""Random fusions of everything that the loop emitter takes, with inputs that hold the values which code gets wrong.

    draw_fusion(7)  ->  HloModule fuzz_7                                    inputs: s16[3,5] with -32768, 32767, 0, -1 ... among them
                        fused {
                          %v0 = s16[3,5]{0,1} parameter(0)
                          %v1 = s16[] constant(-32768)
                          %v2 = s16[3,5] broadcast(%v1), dimensions={}
                          %v3 = s16[3,5] divide(%v2, %v0)
                          %v4 = pred[3,5] compare(%v3, %v0), direction=GE
                          ROOT %both = (s16[3,5], pred[3,5]) tuple(%v3, %v4)
                        }
                        ENTRY main { ... fusion(%p0), kind=kLoop, calls=fused }

The ops are those of the dialect's own tables, so an op that is added there is drawn from then on. A seed says everything about a fusion.

What the reference can judge limits what is drawn. A value carries how it was made:

    BITS   every bit is determined: parameters, constants, whatever moves them     may become other bits (bitcast-convert, total order)
    EXACT  determined but for the payload of NaN: + - * / and the like             may become anything else
    ROUGH  within some ulps: tanh, exp, power ...                                  only what keeps order (+ - * max, moves, select)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from xla_emitters.dialects.hlo.elementwise import ROWS, Row
from xla_emitters.dialects.hlo.windows import Window, WindowDim
from xla_emitters.dtypes import DTYPES, Array, DType, Kind, dtype
from xla_emitters.errors import ParseError
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.runtime.tolerance import ulps_of

BITS, EXACT, ROUGH = range(3)

# Complex numbers have tests of their own; s1 and u1 have no code, f6 types are not stored.
TYPES = tuple(
    row for row in DTYPES if row.kind is not Kind.COMPLEX and row.name not in ("s1", "u1") and row.name[:2] != "f6"
)
COMMON = tuple(dtype(name) for name in "pred s8 u8 s16 s32 u32 s64 u64 f16 bf16 f32 f64".split())
KEEPS_ORDER = ("add", "subtract", "multiply", "maximum", "minimum", "negate")
# On t4 a result of so many elements fills the chip: from there on a thread computes several.
UNROLLED = 40_960
# What joins arrays or puts holes into one makes no more of arrays that have more elements.
LARGEST = 45_000


@dataclass(frozen=True)
class Fusion:
    """HLO text, and arrays for ENTRY's parameters.

    is_exact   the results are determined to the last bit, but for the payload of NaN
    """

    text: str
    inputs: tuple[Array, ...]
    is_exact: bool


@dataclass(frozen=True)
class Value:
    """An instruction of the fusion that others may use."""

    name: str
    type: DType
    dims: tuple[int, ...]
    made: int
    minor_to_major: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def shape(self) -> str:
        return shape_text(self.type, self.dims, self.minor_to_major)


def shape_text(type: DType, dims: Sequence[int], minor_to_major: Sequence[int] = ()) -> str:
    return f"{type.name}[{','.join(map(str, dims))}]{_list(minor_to_major) if minor_to_major else ''}"


def _list(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def draw_fusion(seed: int, unrolled: bool | None = None) -> Fusion:
    """The fusion of that seed, the same on every machine.

    unrolled   whether its results are as large as `UNROLLED`; None: one in six
    """
    rng = random.Random(seed)
    if unrolled is None:
        unrolled = rng.random() < 1 / 6
    return _Drawing(rng, unrolled).fusion(seed)


def draw_dims(rng: random.Random, unrolled: bool) -> tuple[int, ...]:
    """Rank 0 to 4, sizes often 1, sometimes 0, odd ones and powers of two."""
    if not unrolled:
        sizes = (1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 129)
        dims = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))]
        if dims and rng.random() < 0.03:
            dims[rng.randrange(len(dims))] = 0
        while math.prod(dims) > 3000:
            dims[dims.index(max(dims))] //= 2
        return tuple(dims)
    dims = list(
        rng.choice(
            (
                (40960,), (40961,), (40962,), (41000, 1), (641, 64), (64, 641), (3, 13654), (5, 64, 128), (160, 1, 257),
                (17, 2410), (2, 3, 5, 1366), (8, 8, 8, 81), (1, 40964), (10242, 4), (10241, 4), (4, 10243),
            )
        )
    )  # fmt: skip
    rng.shuffle(dims)
    return tuple(dims)


def draw_order(rng: random.Random, rank: int) -> tuple[int, ...]:
    """Mostly the default layout, which is written as nothing; else any."""
    if rank < 2 or rng.random() < 0.75:
        return ()
    order = list(range(rank))
    rng.shuffle(order)
    return tuple(order)


@dataclass
class _Drawing:
    rng: random.Random
    unrolled: bool
    values: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    parameters: list[Value] = field(default_factory=list[Value])
    bodies: dict[str, str] = field(default_factory=dict[str, str])

    # ------------------------------------------------------------------------------------------- text

    def fusion(self, seed: int) -> Fusion:
        dims = draw_dims(self.rng, self.unrolled)
        first = self.parameter(self.draw_type(), dims)
        if self.rng.random() < 0.5:
            self.parameter(first.type if self.rng.random() < 0.7 else self.draw_type(), dims)
        for _ in range(self.rng.choice((1, 2, 3, 4, 6, 8, 12, 16))):
            self.rng.choice(self.steps)(self)
        roots = self.choose_roots()
        entry_parameters, entry = self.entry(roots)
        text = "\n".join((f"HloModule fuzz_{seed}{self.alias(roots)}", *self.bodies.values(), *entry)) + "\n"
        numbers = np.random.default_rng([seed, 17])
        inputs = tuple(draw_input(numbers, value.type, value.dims) for value in entry_parameters)
        return Fusion(text, inputs, all(root.made < ROUGH for root in roots))

    def entry(self, roots: Sequence[Value]) -> tuple[list[Value], list[str]]:
        """ENTRY's parameters, and the text of all computations."""
        if len(roots) == 1:
            root, type = f"%{roots[0].name}", roots[0].shape
            body = [
                f"  {'ROOT ' if value == root else ''}{line}" for line in self.lines for value in [line.split(" ")[0]]
            ]
        else:
            type = f"({', '.join(value.shape for value in roots)})"
            operands = ", ".join(f"%{value.name}" for value in roots)
            body = [*(f"  {line}" for line in self.lines), f"  ROOT %both = {type} tuple({operands})"]
        if self.rng.random() < 0.1:
            return self.parameters, ["ENTRY main {", *body, "}"]
        # Two parameters of the fusion may be given the same array.
        given, own = list[Value](), list[Value]()
        for parameter in self.parameters:
            same = [value for value in own if (value.type, value.shape) == (parameter.type, parameter.shape)]
            if same and self.rng.random() < 0.3:
                given.append(self.rng.choice(same))
            else:
                given.append(parameter)
                own.append(parameter)
        names = {value.name: f"%p{number}" for number, value in enumerate(own)}
        call = f"{type} fusion({', '.join(names[value.name] for value in given)}), kind=kLoop, calls=fused"
        return own, [
            "fused {",
            *body,
            "}",
            "ENTRY main {",
            *(f"  %p{number} = {value.shape} parameter({number})" for number, value in enumerate(own)),
            f"  ROOT %fusion = {call}",
            "}",
        ]

    def alias(self, roots: Sequence[Value]) -> str:
        """Sometimes the result may be written over the first parameter."""
        if len(roots) > 1 or roots[0].shape != self.parameters[0].shape or self.rng.random() < 0.7:
            return ""
        return ", input_output_alias={ {}: (0, {}, may-alias) }"

    def choose_roots(self) -> list[Value]:
        """Mostly the last instruction; sometimes others with as many elements beside it, unused ones first."""
        last = self.values[-1]
        if last in self.parameters:
            last = self.add(last.type, last.dims, f"copy(%{last.name})", last.made)
        others = [
            value
            for value in self.values
            if value.elements == last.elements and value not in self.parameters and value != last
        ]
        count = self.rng.choice((0, 0, 0, 1, 1, 2))
        others.sort(key=lambda value: value.name in self.used)
        roots = [last, *others[:count]]
        self.rng.shuffle(roots)
        return roots

    def add(
        self, type: DType, dims: Sequence[int], code: str, made: int, minor_to_major: tuple[int, ...] = ()
    ) -> Value:
        value = Value(f"v{len(self.lines)}", type, tuple(dims), made, minor_to_major)
        self.lines.append(f"%{value.name} = {value.shape} {code}")
        self.used.update(word.strip("%,()") for word in code.replace("(", " ").split() if word.startswith("%"))
        self.values.append(value)
        return value

    # ------------------------------------------------------------------------------------------- operands

    def draw_type(self) -> DType:
        return self.rng.choice(TYPES if self.rng.random() < 0.15 else COMMON)

    def pick(self, accept: Callable[[Value], bool] = lambda _: True) -> Value | None:
        """A value, recent ones more often."""
        candidates = [value for value in self.values if accept(value)]
        if not candidates:
            return None
        return self.rng.choice(candidates[-4:] if self.rng.random() < 0.7 else candidates)

    def parameter(self, type: DType, dims: Sequence[int]) -> Value:
        order = draw_order(self.rng, len(dims))
        value = self.add(type, dims, f"parameter({len(self.parameters)})", BITS, order)
        self.parameters.append(value)
        return value

    def scalar(self, type: DType) -> Value:
        return self.add(type, (), f"constant({draw_literal(self.rng, type)})", BITS)

    def partner(self, type: DType, dims: tuple[int, ...], worst: int = ROUGH) -> Value:
        """A value of that type and shape: one that is there, a parameter, a constant, or a conversion."""

        def fits(value: Value) -> bool:
            return value.type == type and value.dims == dims and value.made <= worst

        found = self.pick(fits) if self.rng.random() < 0.6 else None
        if found:
            return found
        if self.rng.random() < 0.5 and len(self.parameters) < 5:
            return self.parameter(type, dims)
        other = self.pick(lambda value: value.dims == dims and value.made <= min(EXACT, worst))
        if other and type.bits >= 8 and self.rng.random() < 0.5 and worst >= EXACT:
            return self.add(type, dims, f"convert(%{other.name})", EXACT)
        if dims and self.rng.random() < 0.3:
            axes = sorted(self.rng.sample(range(len(dims)), self.rng.randrange(1, len(dims) + 1)))
            small = self.parameter(type, [dims[axis] for axis in axes]) if len(self.parameters) < 5 else None
            if small:
                return self.add(type, dims, f"broadcast(%{small.name}), dimensions={_list(axes)}", BITS)
        scalar = self.scalar(type)
        return scalar if not dims else self.add(type, dims, f"broadcast(%{scalar.name}), dimensions={{}}", BITS)

    # ------------------------------------------------------------------------------------------- steps

    def elementwise(self) -> None:
        x = self.pick()
        assert x is not None
        allowed = [row for row in ROWS if self._allows(row, x)]
        if not allowed:
            return
        row = self.rng.choice(allowed)
        worst = ROUGH if row.opcode in KEEPS_ORDER else EXACT
        operands = [self.partner(x.type, x.dims, worst) for _ in row.operands]
        operands[row.deciding] = x
        if len(operands) == 2 and self.rng.random() < 0.15:
            operands = [x, x]
        for number in row.scalars:
            if self.rng.random() < 0.5:
                operands[number] = self.scalar(x.type)
        result = row.result(x.type)
        rounds = ulps_of(row.opcode, result.kind.value, result.bits) > 0
        made = max(ROUGH if rounds else EXACT, *(operand.made for operand in operands))
        self.add(result, x.dims, f"{row.opcode}({', '.join(f'%{operand.name}' for operand in operands)})", made)

    def _allows(self, row: Row, x: Value) -> bool:
        return x.type.kind in row.code and (x.made < ROUGH or row.opcode in KEEPS_ORDER)

    def compare(self) -> None:
        x = self.pick(lambda value: value.made < ROUGH)
        if x is None:
            return
        total = x.type.kind is Kind.FLOAT and x.type.bits >= 16 and x.made == BITS and self.rng.random() < 0.4
        y = self.partner(x.type, x.dims, BITS if total else EXACT)
        direction = self.rng.choice(("EQ", "NE", "GE", "GT", "LE", "LT"))
        type = ", type=TOTALORDER" if total else ""
        self.add(dtype("pred"), x.dims, f"compare(%{x.name}, %{y.name}), direction={direction}{type}", EXACT)

    def select(self) -> None:
        x = self.pick()
        assert x is not None
        predicate = self.partner(dtype("pred"), () if self.rng.random() < 0.2 else x.dims, EXACT)
        pair = [x, self.partner(x.type, x.dims)]
        self.rng.shuffle(pair)
        made = max(value.made for value in pair)
        self.add(x.type, x.dims, f"select(%{predicate.name}, %{pair[0].name}, %{pair[1].name})", made)

    def convert(self) -> None:
        x = self.pick(lambda value: value.made < ROUGH)
        if x is not None:
            self.add(self.draw_type(), x.dims, f"convert(%{x.name})", EXACT)

    def reinterpret(self) -> None:
        x = self.pick(lambda value: value.made == BITS and value.type.kind is not Kind.PRED)
        if x is None:
            return
        types = [type for type in TYPES if type.bits == x.type.bits and type.kind is not Kind.PRED]
        # What a type without NaN or with several spellings of it holds is determined by its bits alone.
        self.add(self.rng.choice(types), x.dims, f"bitcast-convert(%{x.name})", BITS)

    def reduce_precision(self) -> None:
        x = self.pick(lambda value: value.type.kind is Kind.FLOAT and value.type.bits >= 16 and value.made < ROUGH)
        if x is not None:
            bits = f"exponent_bits={self.rng.randrange(1, 9)}, mantissa_bits={self.rng.randrange(0, 12)}"
            self.add(x.type, x.dims, f"reduce-precision(%{x.name}), {bits}", EXACT)

    def copy(self) -> None:
        x = self.pick()
        assert x is not None
        self.add(x.type, x.dims, f"copy(%{x.name})", x.made, draw_order(self.rng, len(x.dims)))

    def broadcast(self) -> None:
        x = self.pick(lambda value: 0 < value.elements <= 64)
        if x is None or len(x.dims) >= 4 or self.unrolled:
            return
        dims, axes = list(x.dims), list(range(len(x.dims)))
        for _ in range(self.rng.choice((1, 1, 2))):
            at = self.rng.randrange(len(dims) + 1)
            dims.insert(at, self.rng.choice((1, 2, 3, 8)))
            axes = [axis + (axis >= at) for axis in axes]
        self.add(x.type, dims, f"broadcast(%{x.name}), dimensions={_list(axes)}", x.made)

    def reshape(self) -> None:
        x = self.pick()
        assert x is not None
        self.add(x.type, self._other_shape(x.elements), f"reshape(%{x.name})", x.made)

    def bitcast(self) -> None:
        x = self.pick()
        assert x is not None
        dims = self._other_shape(x.elements)
        self.add(x.type, dims, f"bitcast(%{x.name})", x.made, draw_order(self.rng, len(dims)))

    def _other_shape(self, elements: int) -> list[int]:
        """Sizes whose product is `elements`: its prime factors dealt out, some ones among them."""
        if elements == 0:
            return [0] + [self.rng.choice((1, 2, 3)) for _ in range(self.rng.randrange(3))]
        dims, left = [1] * self.rng.randrange(1, 5), elements
        factor = 2
        while left > 1:
            while left % factor:
                factor += 1
            dims[self.rng.randrange(len(dims))] *= factor
            left //= factor
        return [] if elements == 1 and self.rng.random() < 0.5 else dims

    def transpose(self) -> None:
        x = self.pick(lambda value: len(value.dims) > 1)
        if x is not None:
            order = self.rng.sample(range(len(x.dims)), len(x.dims))
            dims = [x.dims[axis] for axis in order]
            self.add(x.type, dims, f"transpose(%{x.name}), dimensions={_list(order)}", x.made)

    def reverse(self) -> None:
        x = self.pick(lambda value: len(value.dims) > 0)
        if x is not None:
            axes = sorted(self.rng.sample(range(len(x.dims)), self.rng.randrange(len(x.dims) + 1)))
            self.add(x.type, x.dims, f"reverse(%{x.name}), dimensions={_list(axes)}", x.made)

    def slice(self) -> None:
        x = self.pick(lambda value: len(value.dims) > 0)
        if x is None:
            return
        ranges, dims = list[str](), list[int]()
        for size in x.dims:
            if self.unrolled and self.rng.random() < 0.6:
                start, limit, stride = 0, size, 1
            else:
                start = self.rng.randrange(0, max(1, size // 2 + 1))
                limit = self.rng.randrange(start, size + 1) if self.rng.random() < 0.1 else size
                stride = self.rng.choice((1, 1, 1, 2, 3))
            ranges.append(f"[{start}:{limit}:{stride}]" if stride != 1 else f"[{start}:{limit}]")
            dims.append(-(-(limit - start) // stride))
        self.add(x.type, dims, f"slice(%{x.name}), slice={{{', '.join(ranges)}}}", x.made)

    def iota(self) -> None:
        dims = self.rng.choice(self.values).dims
        type = self.draw_type()
        if dims and type.kind is not Kind.PRED:
            self.add(type, dims, f"iota(), iota_dimension={self.rng.randrange(len(dims))}", BITS)

    def concatenate(self) -> None:
        x = self.pick(lambda value: 0 < len(value.dims) and value.elements <= LARGEST)
        if x is None:
            return
        axis = self.rng.randrange(len(x.dims))
        parts = [x]
        for _ in range(self.rng.choice((0, 1, 1, 2, 4))):
            fits = [
                value
                for value in self.values
                if value.type == x.type
                and len(value.dims) == len(x.dims)
                and all(a == b for i, (a, b) in enumerate(zip(x.dims, value.dims, strict=True)) if i != axis)
                and value.elements <= LARGEST
            ]
            dims = (*x.dims[:axis], self.rng.choice((0, 1, 2, 5, x.dims[axis])), *x.dims[axis + 1 :])
            is_new = len(self.parameters) < 5 and self.rng.random() < 0.5
            parts.append(self.parameter(x.type, dims) if is_new else self.rng.choice(fits))
        self.rng.shuffle(parts)
        dims = (*x.dims[:axis], sum(part.dims[axis] for part in parts), *x.dims[axis + 1 :])
        names = ", ".join(f"%{part.name}" for part in parts)
        self.add(x.type, dims, f"concatenate({names}), dimensions={{{axis}}}", max(part.made for part in parts))

    def pad(self) -> None:
        x = self.pick(lambda value: 0 < len(value.dims) and value.elements <= LARGEST)
        if x is None:
            return
        edges, dims = list[str](), list[int]()
        for size in x.dims:
            low, high, gap = (
                self.rng.choice(choices) for choices in ((0, 0, 1, 3, -1), (0, 0, 2, -1), (0, 0, 0, 1, 2))
            )
            padded = low + high + size + max(size - 1, 0) * gap
            if padded < 0 or (self.unrolled and self.rng.random() < 0.5):
                low, high, gap, padded = 0, 0, 0, size
            edges.append(f"{low}_{high}_{gap}")
            dims.append(padded)
        if math.prod(dims) <= 2 * LARGEST:
            filler = self.partner(x.type, ())
            made = max(x.made, filler.made)
            self.add(x.type, dims, f"pad(%{x.name}, %{filler.name}), padding={'x'.join(edges)}", made)

    def starts(self, rank: int) -> str:
        """As many integer scalars: constants, parameters, and what is computed; inside the array, outside, at the edges of the type."""
        names = list[str]()
        for _ in range(rank):
            there = self.pick(lambda value: value.type.is_integer and value.dims == () and value.made < ROUGH)
            if there is None or self.rng.random() < 0.5:
                type = dtype(self.rng.choice("s8 u8 s16 s32 s32 u32 s64 u64".split()))
                there = self.parameter(type, ()) if len(self.parameters) < 5 else self.scalar(type)
            names.append(f"%{there.name}")
        return ", ".join(names)

    def dynamic_slice(self) -> None:
        x = self.pick(lambda value: len(value.dims) > 0)
        if x is None:
            return
        dims = [
            size if self.unrolled and self.rng.random() < 0.6 else self.rng.randrange(size + 1) or size
            for size in x.dims
        ]
        sizes = _list(dims)
        self.add(
            x.type, dims, f"dynamic-slice(%{x.name}, {self.starts(len(dims))}), dynamic_slice_sizes={sizes}", x.made
        )

    def dynamic_update_slice(self) -> None:
        x = self.pick(lambda value: len(value.dims) > 0)
        if x is None:
            return
        update = self.partner(x.type, tuple(self.rng.randrange(size + 1) for size in x.dims))
        code = f"dynamic-update-slice(%{x.name}, %{update.name}, {self.starts(len(x.dims))})"
        self.add(x.type, x.dims, code, max(x.made, update.made))

    def body(self, type: DType, opcode: str) -> str:
        """The name of a computation of two scalars."""
        name = f"{opcode}_{type.name}"
        self.bodies[name] = (
            f"{name} {{\n  %a = {type.name}[] parameter(0)\n  %b = {type.name}[] parameter(1)\n"
            f"  ROOT %c = {type.name}[] {opcode}(%a, %b)\n}}"
        )
        return name

    def reducible(self) -> Value | None:
        """Sums of rough numbers may be off by more than the corners of their bounds say."""
        return self.pick(lambda value: len(value.dims) > 0 and value.made < ROUGH and value.elements <= 3000)

    def combination(self, x: Value) -> tuple[Value, str]:
        """An initial value and a computation for elements like those of `x`."""
        opcodes = ("and", "or") if x.type.kind is Kind.PRED else ("add", "multiply", "maximum", "minimum", "subtract")
        return self.partner(x.type, (), EXACT), self.body(x.type, self.rng.choice(opcodes))

    def reduce(self) -> None:
        x = self.reducible()
        if x is None:
            return
        axes = self.rng.sample(range(len(x.dims)), self.rng.randrange(len(x.dims) + 1))
        init, body = self.combination(x)
        dims = [size for axis, size in enumerate(x.dims) if axis not in axes]
        code = f"reduce(%{x.name}, %{init.name}), dimensions={_list(axes)}, to_apply={body}"
        self.add(x.type, dims, code, EXACT)

    def reduce_window(self) -> None:
        x = self.reducible()
        if x is None:
            return
        one_of = self.rng.choice
        window = [
            WindowDim(
                size=one_of((1, 2, 3)),
                stride=one_of((1, 1, 2, 3)),
                low=one_of((0, 0, 1, 2, -1)),
                high=one_of((0, 0, 1)),
                base_dilation=one_of((1, 1, 2)),
                window_dilation=one_of((1, 1, 2)),
            )
            for _ in x.dims
        ]
        dims = [along.output_size(size) for along, size in zip(window, x.dims, strict=True)]
        init, body = self.combination(x)
        lists = Window(tuple(window)).lists()
        pads = "x".join(f"{along.low}_{along.high}" for along in window)
        text = " ".join(
            f"{name}={pads if name == 'pad' else 'x'.join(map(str, numbers))}" for name, numbers in lists.items()
        )
        code = f"reduce-window(%{x.name}, %{init.name}), window={{{text}}}, to_apply={body}"
        if math.prod(dims) <= 3000:
            self.add(x.type, dims, code, EXACT)

    def map(self) -> None:
        x = self.pick(lambda value: value.made < ROUGH)
        if x is not None:
            _, body = self.combination(x)
            y = self.partner(x.type, x.dims, EXACT)
            axes = _list(range(len(x.dims)))
            self.add(x.type, x.dims, f"map(%{x.name}, %{y.name}), dimensions={axes}, to_apply={body}", EXACT)

    def gather(self) -> None:
        """Windows anywhere in the result, dimensions dropped, rows of starts along any dimension of the indices."""
        x = self.pick(lambda value: len(value.dims) > 0 and 0 not in value.dims)
        if x is None or len(self.parameters) > 4:
            return
        rank = len(x.dims)
        mapped = self.rng.sample(range(rank), self.rng.randrange(rank + 1))
        dropped = sorted(self.rng.sample(range(rank), self.rng.randrange(rank + 1)))
        sizes = [1 if axis in dropped else self.rng.randrange(1, min(size, 5) + 1) for axis, size in enumerate(x.dims)]
        window = [size for axis, size in enumerate(sizes) if axis not in dropped]
        batch = [self.rng.choice((1, 2, 5)) for _ in range(self.rng.randrange(3))]
        along = self.rng.randrange(len(batch) + 1)
        type = dtype(self.rng.choice(("s8", "s32", "s32", "u32", "s64", "u64")))
        rows = self.parameter(type, [*batch[:along], len(mapped), *batch[along:]])
        offsets = sorted(self.rng.sample(range(len(window) + len(batch)), len(window)))
        of_window, of_batch = iter(window), iter(batch)
        dims = [next(of_window if axis in offsets else of_batch) for axis in range(len(window) + len(batch))]
        code = (
            f"gather(%{x.name}, %{rows.name}), offset_dims={_list(offsets)}, collapsed_slice_dims={_list(dropped)},"
            f" start_index_map={_list(mapped)}, index_vector_dim={along}, slice_sizes={_list(sizes)}"
        )
        self.add(x.type, dims, code, x.made)

    def dot(self) -> None:
        x = self.reducible()
        if x is None:
            return
        axes = self.rng.sample(range(len(x.dims)), len(x.dims))
        batch, summed = (axes[: self.rng.randrange(2)], axes[1 : 1 + self.rng.randrange(3)])
        free = [self.rng.choice((1, 2, 3)) for _ in range(self.rng.randrange(2))]
        y = self.partner(x.type, (*free, *(x.dims[axis] for axis in (*summed, *batch))), EXACT)
        first = len(free)
        code = (
            f"dot(%{x.name}, %{y.name}), lhs_batch_dims={_list(batch)}, lhs_contracting_dims={_list(summed)},"
            f" rhs_batch_dims={_list(range(first + len(summed), len(y.dims)))},"
            f" rhs_contracting_dims={_list(range(first, first + len(summed)))}"
        )
        own = [size for axis, size in enumerate(x.dims) if axis not in (*batch, *summed)]
        self.add(x.type, [*(x.dims[axis] for axis in batch), *own, *free], code, EXACT)

    steps = (
        reduce, reduce, reduce_window, map, gather, dot,
        *(elementwise,) * 10, compare, compare, select, select, convert, convert, reinterpret, reduce_precision, copy,
        broadcast, reshape, bitcast, transpose, reverse, slice,
        iota, concatenate, concatenate, pad, pad, dynamic_slice, dynamic_slice, dynamic_update_slice, dynamic_update_slice,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- numbers


ORDINARY = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 3.0, -7.0),
    *(88.0, 127.0, -128.0, 255.5, 65536.0, 2.0**31, -(2.0**63)),
)


def special_values(type: DType) -> Array:
    """The values at the edges of a type, as it holds them."""
    if type.kind is Kind.PRED:
        return np.array([False, True])
    if type.is_integer:
        lowest = -(1 << type.bits - 1) if type.kind is Kind.SIGNED else 0
        highest = (1 << type.bits - (type.kind is Kind.SIGNED)) - 1
        edges = {lowest, lowest + 1, highest, highest - 1, 0, 1, highest // 2, highest // 2 + 1} | {max(lowest, -1)}
        return np.array(sorted(edges), np.int64 if type.kind is Kind.SIGNED else np.uint64).astype(type.numpy)
    finfo: Any = ml_dtypes.finfo
    info = finfo(type.numpy)
    tiny, least, largest = (float(part) for part in (info.smallest_normal, info.smallest_subnormal, info.max))
    edges = (*ORDINARY, tiny, -tiny, least, -least, largest, -largest, math.inf, -math.inf, math.nan)
    with np.errstate(all="ignore"):
        return np.array(edges).astype(type.numpy)


def draw_input(rng: np.random.Generator, type: DType, dims: Sequence[int]) -> Array:
    """Random bits, ordinary numbers, and the edges of the type."""
    size = math.prod(dims)
    edges = rng.choice(special_values(type), size)
    if type.kind is Kind.PRED:
        return edges.reshape(dims)
    if type.is_integer and type.bits < 8:
        lowest = -(1 << type.bits - 1) if type.kind is Kind.SIGNED else 0
        return rng.integers(lowest, lowest + (1 << type.bits), size).astype(type.numpy).reshape(dims)
    if type.bits < 8:
        return (
            np.arange(1 << type.bits, dtype=np.uint8)
            .view(type.numpy)[rng.integers(0, 1 << type.bits, size)]
            .reshape(dims)
        )
    bits = rng.integers(0, 256, size * type.bytes, dtype=np.uint8).view(type.numpy)
    if type.is_integer:
        ordinary = rng.integers(0 if type.kind is Kind.UNSIGNED else -9, 40, size).astype(type.numpy)
    else:
        ordinary = (rng.standard_normal(size) * 4).astype(type.numpy)
    which = rng.integers(0, 4, size)
    return np.where(which == 0, bits, np.where(which == 1, edges, ordinary)).reshape(dims)


def draw_literal(rng: random.Random, type: DType) -> str:
    """A scalar in HLO's spelling; edges of the type, and small numbers."""
    if type.kind is Kind.PRED:
        return rng.choice(("true", "false"))
    if type.is_integer:
        number = (
            int(rng.choice(special_values(type)))
            if rng.random() < 0.5
            else rng.randrange(0, min(20, 1 << type.bits - 1))
        )
        return str(number)
    value = float(rng.choice(special_values(type))) if rng.random() < 0.5 else round(rng.gauss(0, 3), 3)
    if math.isnan(value) or math.isinf(value):
        text = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    else:
        text = repr(float(np.array(value).astype(type.numpy)))
    return text if _reads(type, text) else "1"


def _reads(type: DType, text: str) -> bool:
    """Not every type holds every number: some have no infinity, no NaN, no sign, no zero."""
    try:
        parse_hlo(f"ENTRY e {{\n  ROOT c = {type.name}[] constant({text})\n}}\n")
    except ParseError:
        return False
    return True
