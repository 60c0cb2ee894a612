"""Random programs of elementwise ops, broadcasts, transposes and reductions over dimensions of one size, and their values by NumPy.

    draw_program(7)    func.func @main(%p0: tensor<4x4xf32>, %p1: tensor<4xf32>) -> (tensor<4x4x4xf32>, tensor<4xf32>) {
                         %v0 = stablehlo.broadcast_in_dim %p0, dims = [0, 2] : (tensor<4x4xf32>) -> tensor<4x4x4xf32>
                         ...

Where all sizes are the same, an array of rows looks like one of columns: what takes an array's shape for its meaning is wrong here. With
`unknown` the size is a symbol: `tensor<?x?xf32>`. Numbers are small integers and stay so, so that results are exact; with `rough` there are
tanh and exponentials too, and no op that jumps. The value of each op is NumPy's, by the functions below.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST_RANK, LARGEST = 3, 8.0
UNARY: dict[str, Callable[[Any], Any]] = {"negate": np.negative, "abs": np.abs, "sign": np.sign}
SMOOTH: dict[str, Callable[[Any], Any]] = {"negate": np.negative, "tanh": np.tanh, "exponential": np.exp}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
REDUCERS: dict[str, tuple[Any, str]] = {
    "add": (np.add, "0.0"),
    "maximum": (np.maximum, "0xFF800000"),
    "minimum": (np.minimum, "0x7F800000"),
}
Shape = tuple[bool, ...]
"""For each dimension whether it has the size, else 1."""


@dataclass
class Value:
    name: str
    shape: Shape
    of: Callable[[Sequence[Any]], Any]


@dataclass
class Drawn:
    """A program: its text, the shapes of its parameters, and its results for given parameters."""

    text: str
    parameters: list[Shape]
    results: list[Value]

    def inputs(self, size: int, seed: int) -> list[Any]:
        numbers = np.random.default_rng(seed)
        return [
            numbers.integers(-3, 4, [size if each else 1 for each in shape]).astype(np.float32)
            for shape in self.parameters
        ]

    def wanted(self, inputs: Sequence[Any]) -> list[Any]:
        return [np.asarray(value.of(inputs)) for value in self.results]


@dataclass
class _Program:
    """asked: values that are results, too."""

    draw: random.Random
    size: int
    unknown: bool
    rough: bool
    lines: list[str] = field(default_factory=list[str])
    values: list[Value] = field(default_factory=list[Value])
    asked: list[Value] = field(default_factory=list[Value])

    def type(self, shape: Shape, element: str = "f32") -> str:
        extent = "?" if self.unknown else str(self.size)
        return f"tensor<{''.join((extent if each else '1') + 'x' for each in shape)}{element}>"

    def made(self, line: str, shape: Shape, of: Callable[[Sequence[Any]], Any]) -> Value:
        """Adds an op, written with `{}` for its own name; of large numbers the result is cut off."""
        value = Value(f"%v{len(self.lines)}", shape, _once(of))
        self.lines.append(f"{value.name} = {line}")
        self.values.append(value)
        return value

    def one(self) -> Value:
        return self.draw.choice(self.values[-5:] if self.draw.random() < 0.7 else self.values)

    def shape_operand(self, shape: Shape) -> str:
        if not shape:
            return "%scalar"
        parts = ["%n" if each else "%one" for each in shape]
        types = ", ".join(["tensor<1xi32>"] * len(parts))
        name = f"%s{len(self.lines)}"
        self.lines.append(
            f"{name} = stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({types}) -> tensor<{len(parts)}xi32>"
        )
        return name

    def unary(self) -> None:
        given, table = self.one(), SMOOTH if self.rough else UNARY
        name = self.draw.choice([*table])
        if name == "exponential":
            given = self.bounded(given)
        self.made(
            f"stablehlo.{name} {given.name} : {self.type(given.shape)}", given.shape, _applied(table[name], given)
        )

    def bounded(self, given: Value) -> Value:
        """Between -LARGEST and LARGEST."""
        kind = self.type(given.shape)
        line = f"stablehlo.clamp %low, {given.name}, %high : (tensor<f32>, {kind}, tensor<f32>) -> {kind}"
        return self.made(line, given.shape, lambda x: np.clip(given.of(x), np.float32(-LARGEST), np.float32(LARGEST)))

    def binary(self) -> None:
        one = self.one()
        alike = [value for value in self.values if value.shape == one.shape]
        other, name = self.draw.choice(alike), self.draw.choice([*BINARY])
        if name == "multiply":
            one, other = self.bounded(one), self.bounded(other)
        if not self.rough and self.draw.random() < 0.15:
            kind, flags = self.type(one.shape), self.type(one.shape, "i1")
            flag = f"%c{len(self.lines)}"
            self.lines.append(f"{flag} = stablehlo.compare LT, {one.name}, {other.name} : ({kind}, {kind}) -> {flags}")
            third = self.draw.choice(alike)
            self.made(
                f"stablehlo.select {flag}, {third.name}, {one.name} : {flags}, {kind}",
                one.shape,
                lambda x: np.where(one.of(x) < other.of(x), third.of(x), one.of(x)),
            )
            return
        line = f"stablehlo.{name} {one.name}, {other.name} : {self.type(one.shape)}"
        self.made(line, one.shape, _applied(BINARY[name], one, other))

    def broadcast(self) -> None:
        given = self.one()
        rank = self.draw.randint(len(given.shape), MOST_RANK)
        dims = self.draw.sample(range(rank), len(given.shape))
        if self.draw.random() < 0.85:
            dims.sort()
        self.broadcast_to(given, dims, [self.draw.random() < 0.85 for _ in range(rank)])

    def crossed(self) -> None:
        """A matrix as the rows of a cube and as something else of it, and a sum over the cube: what is a row's here is not there."""
        matrices = [value for value in self.values if value.shape == (True, True)]
        if not matrices:
            return
        given = self.draw.choice(matrices)
        if self.rough or self.draw.random() < 0.5:
            name = "tanh" if self.rough else "abs"
            function = np.tanh if self.rough else np.abs
            given = self.made(
                f"stablehlo.{name} {given.name} : {self.type(given.shape)}", given.shape, _applied(function, given)
            )
        places = [self.broadcast_to(given, self.draw.choice([[0, 1], [0, 2], [1, 2]]), [True] * 3) for _ in range(2)]
        one, other = map(self.bounded, places)
        line = f"stablehlo.multiply {one.name}, {other.name} : {self.type(one.shape)}"
        cube = self.made(line, one.shape, _applied(np.multiply, one, other))
        self.reduced(cube, [2] if self.draw.random() < 0.7 else [self.draw.randint(0, 2)], "add")
        self.asked.append(given)

    def broadcast_to(self, given: Value, dims: Sequence[int], shape: list[bool]) -> Value:
        rank = len(shape)
        for dim, is_long in zip(dims, given.shape, strict=True):
            shape[dim] = is_long or shape[dim]
        wanted = tuple(shape)
        types = f"{self.type(given.shape)}"
        if self.unknown:
            operand = self.shape_operand(wanted)
            line = (
                f"stablehlo.dynamic_broadcast_in_dim {given.name}, {operand}, dims = {dims} : "
                f"({types}, tensor<{rank}xi32>) -> {self.type(wanted)}"
            )
        else:
            line = f"stablehlo.broadcast_in_dim {given.name}, dims = {dims} : ({types}) -> {self.type(wanted)}"

        def of(inputs: Sequence[Any]) -> Any:
            array = given.of(inputs)
            sizes = [self.extent(inputs) if each else 1 for each in wanted]
            ones = [1] * rank
            for place, dim in enumerate(dims):
                ones[dim] = array.shape[place]
            moved = np.transpose(array, np.argsort(dims)).reshape(ones)
            return np.broadcast_to(moved, sizes)

        return self.made(line, wanted, of)

    def extent(self, inputs: Sequence[Any]) -> int:
        return inputs[0].shape[0]

    def transpose(self) -> None:
        given = self.one()
        order = self.draw.sample(range(len(given.shape)), len(given.shape))
        shape = tuple(given.shape[dim] for dim in order)
        line = f"stablehlo.transpose {given.name}, dims = {order} : ({self.type(given.shape)}) -> {self.type(shape)}"
        self.made(line, shape, lambda x: np.transpose(given.of(x), order))

    def reverse(self) -> None:
        given = self.one()
        dims = sorted(self.draw.sample(range(len(given.shape)), self.draw.randint(0, len(given.shape))))
        line = f"stablehlo.reverse {given.name}, dims = {dims} : {self.type(given.shape)}"
        self.made(line, given.shape, lambda x: np.flip(given.of(x), dims))

    def reshape(self) -> None:
        """Other dimensions of 1, elsewhere."""
        given = self.one()
        long = [True] * sum(given.shape)
        for _ in range(self.draw.randint(0, MOST_RANK - len(long))):
            long.insert(self.draw.randint(0, len(long)), False)
        shape = tuple(long)
        types = self.type(given.shape)
        if self.unknown:
            operand = self.shape_operand(shape)
            line = f"stablehlo.dynamic_reshape {given.name}, {operand} : ({types}, tensor<{len(shape)}xi32>) -> {self.type(shape)}"
        else:
            line = f"stablehlo.reshape {given.name} : ({types}) -> {self.type(shape)}"
        self.made(line, shape, lambda x: given.of(x).reshape([self.extent(x) if each else 1 for each in shape]))

    def reduce(self) -> None:
        given = self.one()
        if not given.shape:
            return
        dims = sorted(self.draw.sample(range(len(given.shape)), self.draw.randint(1, len(given.shape))))
        self.reduced(given, dims, self.draw.choice([*REDUCERS]))

    def reduced(self, given: Value, dims: Sequence[int], name: str) -> None:
        function, _ = REDUCERS[name]
        if name == "add":
            given = self.bounded(given)
        shape = tuple(each for dim, each in enumerate(given.shape) if dim not in dims)
        line = (
            f"stablehlo.reduce({given.name} init: %start_{name}) applies stablehlo.{name} across dimensions = {dims} : "
            f"({self.type(given.shape)}, tensor<f32>) -> {self.type(shape)}"
        )
        self.made(line, shape, lambda x: function.reduce(given.of(x), axis=tuple(dims), dtype=np.float32))


def _once(of: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    """The value for the inputs of the last call is kept: many ops read one."""
    known: list[Any] = [None, None]

    def kept(inputs: Sequence[Any]) -> Any:
        if known[0] is not inputs:
            known[:] = [inputs, np.asarray(of(inputs), np.float32)]
        return known[1]

    return kept


def _applied(function: Callable[..., Any], *given: Value) -> Callable[[Sequence[Any]], Any]:
    return lambda inputs: function(*(value.of(inputs) for value in given))


def draw_program(seed: int, size: int, *, unknown: bool, rough: bool = False) -> Drawn:
    draw = random.Random(seed)
    program = _Program(draw, size, unknown, rough)
    shapes: list[Shape] = [(True,) * draw.choice([1, 2, 2, 3])]
    shapes += [tuple(draw.random() < 0.9 for _ in range(draw.randint(0, MOST_RANK))) for _ in range(draw.randint(0, 2))]
    for number, shape in enumerate(shapes):
        program.values.append(Value(f"%p{number}", shape, lambda inputs, number=number: inputs[number]))
    ops = [program.unary, program.binary, program.binary, program.broadcast, program.broadcast, program.transpose]
    ops += [program.crossed, program.reduce, program.reduce, program.reshape, program.reverse]
    for _ in range(draw.randint(4, 14)):
        draw.choice(ops)()
    made = program.values[len(shapes) :] or program.values
    results = [made[-1], *program.asked, *draw.sample(made, min(len(made), draw.randint(0, 3)))]
    parameters = ", ".join(f"%p{number}: {program.type(shape)}" for number, shape in enumerate(shapes))
    types = ", ".join(program.type(value.shape) for value in results)
    head = [
        f"%low = stablehlo.constant dense<{-LARGEST}> : tensor<f32>",
        f"%high = stablehlo.constant dense<{LARGEST}> : tensor<f32>",
        *(f"%start_{name} = stablehlo.constant dense<{start}> : tensor<f32>" for name, (_, start) in REDUCERS.items()),
    ]
    if unknown:
        head += [
            "%one = stablehlo.constant dense<1> : tensor<1xi32>",
            "%scalar = stablehlo.constant dense<[]> : tensor<0xi32>",
            f"%size = stablehlo.get_dimension_size %p0, dim = 0 : ({program.type(shapes[0])}) -> tensor<i32>",
            "%n = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>",
        ]
    body = "\n    ".join([*head, *program.lines, f"return {', '.join(each.name for each in results)} : {types}"])
    text = f"module @fuzz_{seed} {{\n  func.func public @main({parameters}) -> ({types}) {{\n    {body}\n  }}\n}}\n"
    return Drawn(text, shapes, results)
