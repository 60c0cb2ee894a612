"""Random fusions of everything that the loop emitter supports, with inputs that include the values which code gets wrong.

    Drawing(random.Random(7), unrolled=False).fusion(7)

                    ->  HloModule fuzz_7                                    inputs: s16[3,5] with -32768, 32767, 0, -1 ... among them
                        fused {
                          %v0 = s16[3,5]{0,1} parameter(0)
                          %v1 = s16[] constant(-32768)
                          %v2 = s16[3,5] broadcast(%v1), dimensions={}
                          %v3 = s16[3,5] divide(%v2, %v0)
                          %v4 = pred[3,5] compare(%v3, %v0), direction=GE
                          ROOT %both = (s16[3,5], pred[3,5]) tuple(%v3, %v4)
                        }
                        ENTRY main { ... fusion(%p0), kind=kLoop, calls=fused }

The ops are those of the dialect's own tables, so an op that is added there is drawn from then on. A seed determines the fusion.

What is drawn is limited by what the reference can judge. A value records how it was made:

    BITS   every bit is determined: parameters, constants, whatever moves them     may become other bits (bitcast-convert, total order)
    EXACT  determined but for the payload of NaN: + - * / and the like             may become anything else
    ROUGH  within some ulps: tanh, exp, power ...                                  only what keeps order (+ - * max, moves, select)
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dialects.hlo.elementwise import ROWS, ElementwiseRow
from xla_emitters.dialects.hlo.shape_rule import INTS
from xla_emitters.dialects.hlo.windows import Window, WindowDim
from xla_emitters.dtypes import DTYPES, Array, DType, Kind, dtype
from xla_emitters.errors import ParseError
from xla_emitters.runtime.reference.tolerance import ulps_of
from xla_emitters.text.hlo import parse_hlo

BITS, EXACT, ROUGH = range(3)

# s1 and u1 have no code, f6 types are not stored.
TYPES = tuple(row for row in DTYPES if row.name not in ("s1", "u1") and row.name[:2] != "f6")
COMMON = tuple(dtype(name) for name in "pred s8 u8 s16 s32 u32 s64 u64 f16 bf16 f32 f64 c64".split())
KEEPS_ORDER = ("add", "subtract", "multiply", "maximum", "minimum", "negate")
# Functions that are applied to the parts of complex numbers separately, or as in the reference; others are within ulps of the modulus.
EXACT_OF_COMPLEX = ("add", "subtract", "multiply", "maximum", "minimum", "clamp", "negate", "real", "imag")
# Ops that join or dilate arrays are not applied to arrays with more elements.
LARGEST = 45_000


@dataclass(frozen=True)
class Fusion:
    """HLO text, and arrays for ENTRY's parameters.

    kind       what was drawn: "loop", or the intended hero
    """

    text: str
    inputs: tuple[Array, ...]
    kind: str = "loop"


@dataclass(frozen=True)
class Value:
    """An instruction of the fusion that others may use.

    of_tuple  the type in HLO's spelling if it is a tuple: only a root or get-tuple-element may use it
    """

    name: str
    type: DType
    dims: tuple[int, ...]
    made: int
    minor_to_major: tuple[int, ...] = ()
    of_tuple: str = ""

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def shape(self) -> str:
        return self.of_tuple or shape_text(self.type, self.dims, self.minor_to_major)


def shape_text(type: DType, dims: Sequence[int], minor_to_major: Sequence[int] = ()) -> str:
    return f"{type.name}[{','.join(map(str, dims))}]{list_text(minor_to_major) if minor_to_major else ''}"


def list_text(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def draw_dims(rng: random.Random, unrolled: bool) -> tuple[int, ...]:
    """Rank 0 to 5, sizes often 1, sometimes 0, odd ones, powers of two and their neighbours."""
    if not unrolled:
        sizes = (1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 129, 257)
        dims = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5)))]
        if len(dims) == 1 and rng.random() < 0.2:
            dims = [rng.choice((1023, 1024, 1025, 2053, 2999))]
        if dims and rng.random() < 0.05:
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
    """Mostly the default layout, which is not written; else any."""
    if rank < 2 or rng.random() < 0.75:
        return ()
    order = list(range(rank))
    rng.shuffle(order)
    return tuple(order)


@dataclass
class Drawing:
    rng: random.Random
    unrolled: bool
    values: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    parameters: list[Value] = field(default_factory=list[Value])
    bodies: dict[str, str] = field(default_factory=dict[str, str])
    is_tame: bool = False
    """Whether floats among the inputs are ordinary numbers only."""
    distinct: set[str] = field(default_factory=set[str])
    """Parameters of the fusion that need an array of their own: those that are written, or that contain indices."""

    # ------------------------------------------------------------------------------------------- text

    def fusion(self, seed: int) -> Fusion:
        dims = draw_dims(self.rng, self.unrolled)
        if self.rng.random() < 0.03:
            self.add_constant(self.draw_type(), dims)
        else:
            first = self.parameter(self.draw_type(), dims)
            if self.rng.random() < 0.5:
                self.parameter(first.type if self.rng.random() < 0.7 else self.draw_type(), dims)
        for _ in range(self.rng.choice((1, 2, 3, 4, 6, 8, 12, 16))):
            self.rng.choice(self.steps)(self)
        return self.finished(seed, "loop", self.choose_roots())

    def finished(self, seed: int, kind: str, roots: Sequence[Value]) -> Fusion:
        """The text with these roots, and inputs."""
        entry_parameters, entry = self.entry(roots)
        text = "\n".join((f"HloModule fuzz_{seed}{self.alias(roots)}", *self.bodies.values(), *entry)) + "\n"
        numbers = np.random.default_rng([seed, 17])
        inputs = tuple(self.draw_input(numbers, value) for value in entry_parameters)
        return Fusion(text, inputs, kind)

    def draw_input(self, rng: np.random.Generator, parameter: Value) -> Array:
        return draw_input(rng, parameter.type, parameter.dims, self.is_tame)

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
        if self.rng.random() < 0.1 and not self.distinct:
            return self.parameters, ["ENTRY main {", *body, "}"]
        # Two parameters of the fusion may be given the same array.
        given, own = list[Value](), list[Value]()
        for parameter in self.parameters:
            same = [value for value in own if (value.type, value.shape) == (parameter.type, parameter.shape)]
            if same and self.rng.random() < 0.3 and parameter.name not in self.distinct:
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
        """Sometimes lets the result overwrite the first parameter."""
        if (
            len(roots) > 1
            or not self.parameters
            or roots[0].shape != self.parameters[0].shape
            or self.rng.random() < 0.7
        ):
            return ""
        return ", input_output_alias={ {}: (0, {}, may-alias) }"

    def choose_roots(self) -> list[Value]:
        """Mostly the last instruction; sometimes with others of as many elements, unused ones first."""
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
        if self.rng.random() < 0.1:
            # A result may be an unchanged parameter, or equal to another result.
            roots += [value for value in self.parameters if value.elements == last.elements][:1]
        elif self.rng.random() < 0.05:
            roots.append(self.rng.choice(roots))
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

    def add_constant(self, type: DType, dims: Sequence[int]) -> Value:
        """A literal of any rank, or if that would be long, a scalar that is broadcast."""
        if math.prod(dims) > 100:
            return self.filled(type, dims)
        return self.add(type, dims, f"constant({self._nested(type, dims)})", BITS)

    def _nested(self, type: DType, dims: Sequence[int]) -> str:
        if not dims:
            return draw_literal(self.rng, type)
        return f"{{{', '.join(self._nested(type, dims[1:]) for _ in range(dims[0]))}}}"

    def scalar(self, type: DType) -> Value:
        return self.add(type, (), f"constant({draw_literal(self.rng, type)})", BITS)

    def partner(self, type: DType, dims: tuple[int, ...], worst: int = ROUGH) -> Value:
        """A value of that type and shape: an existing one, a parameter, a constant, or a conversion."""

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
                return self.add(type, dims, f"broadcast(%{small.name}), dimensions={list_text(axes)}", BITS)
        return self.add_constant(type, dims) if self.rng.random() < 0.5 else self.filled(type, dims)

    def filled(self, type: DType, dims: Sequence[int]) -> Value:
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
        rounds |= x.type.kind is Kind.COMPLEX and row.opcode not in EXACT_OF_COMPLEX
        made = max(ROUGH if rounds else EXACT, *(operand.made for operand in operands))
        # An elementwise instruction mostly keeps its operand's layout, but need not.
        order = x.minor_to_major if self.rng.random() < 0.5 else draw_order(self.rng, len(x.dims))
        code = f"{row.opcode}({', '.join(f'%{operand.name}' for operand in operands)})"
        self.add(result, x.dims, code, made, order)

    def _allows(self, row: ElementwiseRow, x: Value) -> bool:
        if x.made == ROUGH and x.type.kind is Kind.COMPLEX and row.opcode in ("maximum", "minimum"):
            return False
        return x.type.kind in row.code and (x.made < ROUGH or row.opcode in KEEPS_ORDER)

    def complex_of_parts(self) -> None:
        x = self.pick(lambda value: value.type.name in ("f32", "f64"))
        if x is not None:
            y = self.partner(x.type, x.dims)
            type = dtype("c64" if x.type.name == "f32" else "c128")
            self.add(type, x.dims, f"complex(%{x.name}, %{y.name})", max(x.made, y.made))

    def constant_array(self) -> None:
        x = self.pick()
        dims = (
            x.dims
            if x and self.rng.random() < 0.5
            else [self.rng.choice((1, 2, 3, 5)) for _ in range(self.rng.randrange(4))]
        )
        self.add_constant(self.draw_type(), dims)

    def compare(self) -> None:
        x = self.pick(lambda value: value.made < ROUGH)
        if x is None:
            return
        total = x.type.kind is Kind.FLOAT and x.type.bits >= 16 and x.made == BITS and self.rng.random() < 0.4
        y = self.partner(x.type, x.dims, BITS if total else EXACT)
        directions = ("EQ", "NE") if x.type.kind is Kind.COMPLEX else ("EQ", "NE", "GE", "GT", "LE", "LT")
        direction = self.rng.choice(directions)
        type = ", type=TOTALORDER" if total else ""
        self.add(dtype("pred"), x.dims, f"compare(%{x.name}, %{y.name}), direction={direction}{type}", EXACT)

    def select(self) -> None:
        x = self.pick()
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
        without = (Kind.PRED, Kind.COMPLEX)
        x = self.pick(lambda value: value.made == BITS and value.type.kind not in without)
        if x is None:
            return
        if self.rng.random() < 0.3:
            self.reinterpret_parts(x)
            return
        types = [type for type in TYPES if type.bits == x.type.bits and type.kind not in without]
        # For a type without NaN, or with several NaNs, equal values need equal bits.
        self.add(self.rng.choice(types), x.dims, f"bitcast-convert(%{x.name})", BITS)

    def reinterpret_parts(self, x: Value) -> None:
        """As an integer type of another width; a wider one needs parts in the last dimension."""
        for type in self.rng.sample([type for type in TYPES if type.is_integer], 6):
            wide, narrow = max(type.bits, x.type.bits), min(type.bits, x.type.bits)
            if type.bits < x.type.bits:
                self.add(type, (*x.dims, wide // narrow), f"bitcast-convert(%{x.name})", BITS)
                return
            if wide > narrow and x.dims and x.dims[-1] == wide // narrow:
                self.add(type, x.dims[:-1], f"bitcast-convert(%{x.name})", BITS)
                return

    def reduce_precision(self) -> None:
        x = self.pick(lambda value: value.type.kind is Kind.FLOAT and value.made < ROUGH)
        if x is not None:
            bits = f"exponent_bits={self.rng.randrange(1, 9)}, mantissa_bits={self.rng.randrange(0, 12)}"
            self.add(x.type, x.dims, f"reduce-precision(%{x.name}), {bits}", EXACT)

    def copy(self) -> None:
        x = self.pick()
        self.add(x.type, x.dims, f"copy(%{x.name})", x.made, draw_order(self.rng, len(x.dims)))

    def broadcast(self) -> None:
        x = self.pick(lambda value: 0 < value.elements <= 64)
        if x is None or len(x.dims) >= 5 or self.unrolled:
            return
        dims, axes = list(x.dims), list(range(len(x.dims)))
        for _ in range(self.rng.choice((1, 1, 2))):
            at = self.rng.randrange(len(dims) + 1)
            dims.insert(at, self.rng.choice((1, 2, 3, 8)))
            axes = [axis + (axis >= at) for axis in axes]
        self.add(x.type, dims, f"broadcast(%{x.name}), dimensions={list_text(axes)}", x.made)

    def reshape(self) -> None:
        x = self.pick()
        self.add(x.type, self._other_shape(x.elements), f"reshape(%{x.name})", x.made)

    def bitcast(self) -> None:
        x = self.pick()
        dims = self._other_shape(x.elements)
        self.add(x.type, dims, f"bitcast(%{x.name})", x.made, draw_order(self.rng, len(dims)))

    def _other_shape(self, elements: int) -> list[int]:
        """Random sizes with product `elements`: its prime factors distributed, and some ones."""
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
            code = f"transpose(%{x.name}), dimensions={list_text(order)}"
            self.add(x.type, dims, code, x.made, draw_order(self.rng, len(dims)))

    def reverse(self) -> None:
        x = self.pick(lambda value: len(value.dims) > 0)
        if x is not None:
            axes = sorted(self.rng.sample(range(len(x.dims)), self.rng.randrange(len(x.dims) + 1)))
            self.add(x.type, x.dims, f"reverse(%{x.name}), dimensions={list_text(axes)}", x.made)

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
        """`rank` integer scalars of one type: constants, parameters, computed; inside the array, outside, at the limits of the type."""
        names = list[str]()
        type = dtype(self.rng.choice("s8 u8 s16 s32 s32 u32 s64 u64".split()))
        for _ in range(rank):
            there = self.pick(lambda value: value.type == type and value.dims == () and value.made < ROUGH)
            if there is None or self.rng.random() < 0.5:
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
        sizes = list_text(dims)
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
        """A value to reduce. Sums of rough numbers may exceed the bounds that are computed from the corners."""
        return self.pick(lambda value: len(value.dims) > 0 and value.made < ROUGH and value.elements <= 1000)

    def combination(self, x: Value) -> tuple[Value, str]:
        """An initial value and a computation for elements like those of `x`, combined in HLO's order."""
        match x.type.kind:
            case Kind.PRED:
                opcodes = ("and", "or", "xor")
            case Kind.COMPLEX:
                opcodes = ("add", "multiply", "subtract")
            case _:
                opcodes = ("add", "multiply", "maximum", "minimum", "subtract")
        return self.partner(x.type, (), EXACT), self.body(x.type, self.rng.choice(opcodes))

    def associative(self, type: DType) -> str:
        """An opcode that may combine elements in any order."""
        match type.kind:
            case Kind.PRED:
                return self.rng.choice(("and", "or", "xor"))
            case Kind.COMPLEX:
                return "add"
            case Kind.FLOAT:
                return self.rng.choice(("add", "add", "maximum", "minimum", "multiply"))
            case _:
                return self.rng.choice(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))

    def reduce(self) -> None:
        x = self.reducible()
        if x is not None:
            axes = self.rng.sample(range(len(x.dims)), self.rng.randrange(len(x.dims) + 1))
            self.add_reduce(x, axes, self.associative(x.type))

    def add_reduce(self, x: Value, axes: Sequence[int], opcode: str) -> Value:
        init, body = self.partner(x.type, (), EXACT), self.body(x.type, opcode)
        dims = [size for axis, size in enumerate(x.dims) if axis not in axes]
        code = f"reduce(%{x.name}, %{init.name}), dimensions={list_text(axes)}, to_apply={body}"
        # Threads that share a reduction add in an order of their own.
        rounds = x.type.kind in (Kind.FLOAT, Kind.COMPLEX) and opcode in ("add", "multiply")
        return self.add(x.type, dims, code, ROUGH if rounds else max(x.made, EXACT), draw_order(self.rng, len(dims)))

    def reduce_several(self) -> None:
        x = self.reducible()
        if x is not None and x.type.kind is not Kind.COMPLEX:
            axes = self.rng.sample(range(len(x.dims)), self.rng.randrange(len(x.dims) + 1))
            self.elements(*self.add_reduce_several(x, axes))

    def add_reduce_several(self, x: Value, axes: Sequence[int]) -> tuple[Value, tuple[Value, ...]]:
        """Two arrays reduced together: the index of the greatest element, or two unrelated reductions.

        returns  the tuple, and values that have the types of its elements
        """
        dims = tuple(size for axis, size in enumerate(x.dims) if axis not in axes)
        is_argmax = x.made < ROUGH and x.type.kind is not Kind.COMPLEX and self.rng.random() < 0.5
        if is_argmax:
            y = self.add(dtype("s32"), x.dims, f"iota(), iota_dimension={axes[0] if axes else 0}", BITS)
            inits = [self.extreme(x.type), self.add(dtype("s32"), (), "constant(2147483647)", BITS)]
            body = self.argmax_body(x.type)
            made = [max(x.made, EXACT), EXACT]
        else:
            y = self.partner(self.draw_type(), x.dims)
            opcodes = [self.associative(value.type) for value in (x, y)]
            inits = [self.partner(value.type, (), EXACT) for value in (x, y)]
            body = self.body_of_two(x.type, y.type, opcodes)
            made = [ROUGH if value.type.kind in (Kind.FLOAT, Kind.COMPLEX) else EXACT for value in (x, y)]
        parts = tuple(Value("", value.type, dims, made[i]) for i, value in enumerate((x, y)))
        names = ", ".join(f"%{value.name}" for value in (x, y, *inits))
        shapes = f"({', '.join(part.shape for part in parts)})"
        both = Value(f"v{len(self.lines)}", x.type, dims, max(made), (), shapes)
        self.lines.append(f"%{both.name} = {shapes} reduce({names}), dimensions={list_text(axes)}, to_apply={body}")
        self.used |= {value.name for value in (x, y, *inits)}
        return both, parts

    def elements(self, both: Value, parts: Sequence[Value]) -> list[Value]:
        """The elements of a tuple, each extracted."""
        return [
            self.add(part.type, part.dims, f"get-tuple-element(%{both.name}), index={i}", part.made)
            for i, part in enumerate(parts)
        ]

    def extreme(self, type: DType) -> Value:
        """The least value of a type."""
        if type.kind is Kind.PRED:
            text = "false"
        elif type.is_integer:
            text = str(-(1 << type.bits - 1) if type.kind is Kind.SIGNED else 0)
        else:
            text = next(
                text
                for text in ("-inf", repr(float(np.nanmin(special_values(type).astype(np.float64)))), "0")
                if _reads(type, text)
            )
        return self.add(type, (), f"constant({text})", BITS)

    def argmax_body(self, type: DType) -> str:
        """The greater value; of equal ones, the one with the smaller index. NaN is greater than all others, so order does not matter."""
        name, t = f"argmax_{type.name}", type.name
        self.bodies[name] = f"""{name} {{
  %a = {t}[] parameter(0)
  %i = s32[] parameter(1)
  %b = {t}[] parameter(2)
  %j = s32[] parameter(3)
  %above = pred[] compare(%a, %b), direction=GT
  %odd = pred[] compare(%a, %a), direction=NE
  %other_odd = pred[] compare(%b, %b), direction=NE
  %greater = pred[] or(%above, %odd)
  %less = pred[] compare(%a, %b), direction=LT
  %smaller = pred[] or(%less, %other_odd)
  %equal = pred[] compare(%greater, %smaller), direction=EQ
  %before = pred[] compare(%i, %j), direction=LT
  %not_smaller = pred[] not(%smaller)
  %strictly = pred[] and(%greater, %not_smaller)
  %first = pred[] and(%equal, %before)
  %keep = pred[] or(%strictly, %first)
  %value = {t}[] select(%keep, %a, %b)
  %place = s32[] select(%keep, %i, %j)
  ROOT %both = ({t}[], s32[]) tuple(%value, %place)
}}"""
        return name

    def body_of_two(self, one: DType, other: DType, opcodes: Sequence[str]) -> str:
        name = f"{opcodes[0]}_{one.name}_and_{opcodes[1]}_{other.name}"
        self.bodies[name] = f"""{name} {{
  %a = {one.name}[] parameter(0)
  %b = {other.name}[] parameter(1)
  %c = {one.name}[] parameter(2)
  %d = {other.name}[] parameter(3)
  %x = {one.name}[] {opcodes[0]}(%a, %c)
  %y = {other.name}[] {opcodes[1]}(%b, %d)
  ROOT %both = ({one.name}[], {other.name}[]) tuple(%x, %y)
}}"""
        return name

    def reduce_window(self) -> None:
        x = self.reducible()
        if x is None:
            return
        window = self.window([self.rng.choice((1, 2, 3)) for _ in x.dims])
        dims = [along.positions(INTS, size) for along, size in zip(window.dims, x.dims, strict=True)]
        init, body = self.combination(x)
        code = f"reduce-window(%{x.name}, %{init.name}), window={{{window_text(window)}}}, to_apply={body}"
        if math.prod(dims) <= 3000:
            self.add(x.type, dims, code, EXACT)

    def window(self, sizes: Sequence[int]) -> Window:
        """Strides, padding (negative too) and dilations for a window of those sizes."""
        one_of = self.rng.choice
        return Window(
            tuple(
                WindowDim(
                    size=size,
                    stride=one_of((1, 1, 2, 3)),
                    low=one_of((0, 0, 1, 2, -1)),
                    high=one_of((0, 0, 1)),
                    base_dilation=one_of((1, 1, 2)),
                    window_dilation=one_of((1, 1, 2)),
                )
                for size in sizes
            )
        )

    def map(self) -> None:
        x = self.pick(lambda value: value.made < ROUGH)
        if x is not None:
            _, body = self.combination(x)
            y = self.partner(x.type, x.dims, EXACT)
            axes = list_text(range(len(x.dims)))
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
            f"gather(%{x.name}, %{rows.name}), offset_dims={list_text(offsets)}, collapsed_slice_dims={list_text(dropped)},"
            f" start_index_map={list_text(mapped)}, index_vector_dim={along}, slice_sizes={list_text(sizes)}"
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
            f"dot(%{x.name}, %{y.name}), lhs_batch_dims={list_text(batch)}, lhs_contracting_dims={list_text(summed)},"
            f" rhs_batch_dims={list_text(range(first + len(summed), len(y.dims)))},"
            f" rhs_contracting_dims={list_text(range(first, first + len(summed)))}"
        )
        own = [size for axis, size in enumerate(x.dims) if axis not in (*batch, *summed)]
        self.add(x.type, [*(x.dims[axis] for axis in batch), *own, *free], code, EXACT)

    def convolution(self) -> None:
        """One or two spatial dimensions, any order of dimensions, groups of features or of batches."""
        type = self.draw_type()
        rank = self.rng.choice((1, 1, 2))
        features, batches = self.rng.choice(((1, 1), (1, 1), (2, 1), (3, 1), (1, 2)))
        seen, made_features = self.rng.choice((1, 2, 3)), features * batches * self.rng.choice((1, 2))
        spatial = [str(i) for i in range(rank)]
        image = {dim: self.rng.choice((1, 3, 5, 8)) for dim in spatial}
        image |= {"b": batches * self.rng.choice((1, 2)), "f": seen * features}
        kernel = {dim: self.rng.choice((1, 2, 3)) for dim in spatial} | {"i": seen, "o": made_features}
        window = self.window([kernel[dim] for dim in spatial])
        result = {dim: along.positions(INTS, image[dim]) for dim, along in zip(spatial, window.dims, strict=True)}
        result |= {"b": image["b"] // batches, "f": made_features}
        labels = [self.rng.sample(sorted(sizes), len(sizes)) for sizes in (image, kernel, result)]
        x = self.partner(type, tuple(image[label] for label in labels[0]), EXACT)
        y = self.partner(type, tuple(kernel[label] for label in labels[1]), EXACT)
        one, other, third = ("".join(label) for label in labels)
        code = (
            f"convolution(%{x.name}, %{y.name}), window={{{window_text(window)}}}, dim_labels={one}_{other}->{third},"
            f" feature_group_count={features}, batch_group_count={batches}"
        )
        self.add(type, [result[label] for label in labels[2]], code, EXACT)

    steps = (
        reduce, reduce, reduce_several, reduce_window, map, gather, dot, convolution, complex_of_parts, constant_array,
        *(elementwise,) * 10, compare, compare, select, select, convert, convert, reinterpret, reduce_precision, copy,
        broadcast, reshape, bitcast, transpose, reverse, slice,
        iota, concatenate, concatenate, pad, pad, dynamic_slice, dynamic_slice, dynamic_update_slice, dynamic_update_slice,
    )  # fmt: skip


def window_text(window: Window) -> str:
    """The text between the braces of `window={...}`."""
    pads = "x".join(f"{along.low}_{along.high}" for along in window.dims)
    return " ".join(
        f"{name}={pads if name == 'pad' else 'x'.join(map(str, numbers))}" for name, numbers in window.lists().items()
    )


# ------------------------------------------------------------------------------------------- numbers


ORDINARY = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 3.0, -7.0),
    *(88.0, 127.0, -128.0, 255.5, 65536.0, 2.0**31, -(2.0**63)),
)


def special_values(type: DType) -> Array:
    """The values at the limits of a type, as the type stores them."""
    if type.kind is Kind.PRED:
        return np.array([False, True])
    if type.kind is Kind.COMPLEX:
        parts = special_values(dtype("f32" if type.name == "c64" else "f64"))
        return from_parts(np.repeat(parts, parts.size), np.tile(parts, parts.size))
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


def draw_input(rng: np.random.Generator, type: DType, dims: Sequence[int], is_tame: bool = False) -> Array:
    """Random bits, ordinary numbers, and the edges of the type; `is_tame`: of floats, ordinary numbers only."""
    size = math.prod(dims)
    if type.kind is Kind.COMPLEX:
        part = dtype("f32" if type.name == "c64" else "f64")
        return from_parts(*(draw_input(rng, part, dims, is_tame) for _ in range(2)))
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
    if is_tame and not type.is_integer:
        return ordinary.reshape(dims)
    which = rng.integers(0, 4, size)
    return np.where(which == 0, bits, np.where(which == 1, edges, ordinary)).reshape(dims)


def draw_literal(rng: random.Random, type: DType) -> str:
    """A scalar in HLO's spelling; edges of the type, and small numbers."""
    if type.kind is Kind.PRED:
        return rng.choice(("true", "false"))
    if type.kind is Kind.COMPLEX:
        part = dtype("f32" if type.name == "c64" else "f64")
        return f"({draw_literal(rng, part)}, {draw_literal(rng, part)})"
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
    """Whether the type has the number: some have no infinity, no NaN, no sign, no zero."""
    try:
        parse_hlo(f"ENTRY e {{\n  ROOT c = {type.name}[] constant({text})\n}}\n")
    except ParseError:
        return False
    return True
