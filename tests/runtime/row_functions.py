"""Functions of rows as fusions for Triton, at any shape: text of HLO as XLA writes it, some by name and others drawn from a seed.

softmax(4, 64, "bf16")        max, exp(x - max), sum, quotient
drawn(7, 4, 100, "f32")       two or three statistics of a row, each of what the one before made of the row
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

HEAD = """HloModule m
max { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = T[] maximum(a, b) }
min { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = T[] minimum(a, b) }
add { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = T[] add(a, b) }
"""
STARTS = {"max": "-inf", "min": "inf", "add": "0"}
TRITON = (
    'kind=kCustom, calls=f, backend_config={"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":'
    '{"num_warps":"4","output_tiles":[{"sizes":["1","64"]}]}}}'
)


@dataclass
class Rows:
    """A fusion under construction; elements of its parameters have `dtype`, all others f32.

    given  types of the parameters
    """

    rows: int
    columns: int
    dtype: str
    given: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])

    @property
    def matrix(self) -> str:
        return f"f32[{self.rows},{self.columns}]"

    def op(self, type: str, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {type} {text}")
        return name

    def full(self, opcode: str, *operands: str, more: str = "") -> str:
        return self.op(self.matrix, f"{opcode}({', '.join(operands)}){more}")

    def parameter(self, type: str) -> str:
        self.given.append(type)
        return self.op(type, f"parameter({len(self.given) - 1})")

    def row(self) -> str:
        """A matrix that is a parameter, in f32."""
        found = self.parameter(f"{self.dtype}[{self.rows},{self.columns}]")
        return found if self.dtype == "f32" else self.full("convert", found)

    def weights(self) -> str:
        """A vector of the columns that is a parameter, for each row."""
        return self.full("broadcast", self.parameter(f"f32[{self.columns}]"), more=", dimensions={1}")

    def number(self, value: float) -> str:
        return self.full("broadcast", self.op("f32[]", f"constant({value})"), more=", dimensions={}")

    def statistic(self, of: str, by: str) -> str:
        """The reduction of each row, for each of its elements."""
        start = self.op("f32[]", f"constant({STARTS[by]})")
        found = self.op(f"f32[{self.rows}]", f"reduce({of}, {start}), dimensions={{1}}, to_apply={by}")
        return self.full("broadcast", found, more=", dimensions={0}")

    def text(self, *results: str) -> str:
        """The module; results are matrices, in the parameters' type, or statistics."""
        roots = list[tuple[str, str]]()
        for result in results:
            made = result
            if self.dtype != "f32":
                made = self.op(f"{self.dtype}[{self.rows},{self.columns}]", f"convert({result})")
            roots.append((made, f"{self.dtype}[{self.rows},{self.columns}]"))
        return self._module(roots)

    def _module(self, roots: Sequence[tuple[str, str]]) -> str:
        type, lines = roots[0][1], [f"  {line}" for line in self.lines]
        if len(roots) > 1:
            type = f"({', '.join(each for _, each in roots)})"
            lines.append(f"  ROOT all = {type} tuple({', '.join(name for name, _ in roots)})")
        else:
            lines = [line.replace(f"  {roots[0][0]} =", f"  ROOT {roots[0][0]} =") for line in lines]
        given = [f"  p{number} = {each} parameter({number})" for number, each in enumerate(self.given)]
        names = ", ".join(f"p{number}" for number in range(len(self.given)))
        entry = [*given, f"  ROOT y = {type} fusion({names}), {TRITON}"]
        body = "\n".join(lines)
        return HEAD.replace("T[]", "f32[]") + f"f {{\n{body}\n}}\nENTRY e {{\n" + "\n".join(entry) + "\n}\n"


def softmax(rows: int, columns: int, dtype: str) -> str:
    made = Rows(rows, columns, dtype)
    x = made.row()
    raised = made.full("exponential", made.full("subtract", x, made.statistic(x, "max")))
    return made.text(made.full("divide", raised, made.statistic(raised, "add")))


def log_softmax(rows: int, columns: int, dtype: str) -> str:
    made = Rows(rows, columns, dtype)
    x = made.row()
    off = made.full("subtract", x, made.statistic(x, "max"))
    return made.text(made.full("subtract", off, made.full("log", made.statistic(made.full("exponential", off), "add"))))


def layer_norm(rows: int, columns: int, dtype: str) -> str:
    made = Rows(rows, columns, dtype)
    x, scale = made.row(), made.number(1 / columns)
    off = made.full("subtract", x, made.full("multiply", made.statistic(x, "add"), scale))
    variance = made.full("multiply", made.statistic(made.full("multiply", off, off), "add"), scale)
    root = made.full("rsqrt", made.full("add", variance, made.number(1e-5)))
    weighted = made.full("multiply", made.full("multiply", off, root), made.weights())
    return made.text(made.full("add", weighted, made.weights()))


def masked_softmax(rows: int, columns: int, dtype: str) -> str:
    """Each row up to its diagonal, as causal attention has it."""
    made = Rows(rows, columns, dtype)
    x, places = made.row(), f"s32[{rows},{columns}]"
    row, column = (made.op(places, f"iota(), iota_dimension={number}") for number in (0, 1))
    is_seen = made.op(f"pred[{rows},{columns}]", f"compare({column}, {row}), direction=LE")
    seen = made.full("select", is_seen, x, made.number(-1e9))
    raised = made.full("exponential", made.full("subtract", seen, made.statistic(seen, "max")))
    return made.text(made.full("divide", raised, made.statistic(raised, "add")))


def softmax_gradient(rows: int, columns: int, dtype: str) -> str:
    made = Rows(rows, columns, dtype)
    x, of_result = made.row(), made.row()
    raised = made.full("exponential", made.full("subtract", x, made.statistic(x, "max")))
    y = made.full("divide", raised, made.statistic(raised, "add"))
    inner = made.statistic(made.full("multiply", y, of_result), "add")
    return made.text(made.full("multiply", y, made.full("subtract", of_result, inner)))


def cross_entropy_gradient(rows: int, columns: int, dtype: str) -> str:
    """softmax(x) - 1 at the row's label, which is one of the operands."""
    made = Rows(rows, columns, dtype)
    x, labels = made.row(), made.parameter(f"s32[{rows}]")
    places = f"s32[{rows},{columns}]"
    label = made.op(places, f"broadcast({labels}), dimensions={{0}}")
    is_label = made.op(
        f"pred[{rows},{columns}]",
        f"compare({made.op(places, 'iota(), iota_dimension=1')}, {label}), direction=EQ",
    )
    one = made.full("select", is_label, made.number(1), made.number(0))
    raised = made.full("exponential", made.full("subtract", x, made.statistic(x, "max")))
    return made.text(made.full("subtract", made.full("divide", raised, made.statistic(raised, "add")), one))


NAMED = {
    each.__name__: each
    for each in (softmax, log_softmax, layer_norm, masked_softmax, softmax_gradient, cross_entropy_gradient)
}


def drawn(seed: int, rows: int, columns: int, dtype: str) -> str:
    """A function of rows drawn from a seed: two or three statistics, of the row or of what was made of it, and one or two results."""
    draw, made = random.Random(seed), Rows(rows, columns, dtype)
    now = made.row()
    others, results = [now, *([made.row()] if draw.random() < 0.4 else [])], list[str]()
    if draw.random() < 0.4:
        others.append(made.weights())
    for _ in range(draw.choice((2, 2, 3))):
        other = draw.choice(others)
        of = draw.choice((now, made.full("multiply", now, other), made.full("abs", now)))
        statistic = made.statistic(of, draw.choice(("max", "min", "add")))
        now = _changed(made, draw, now, statistic)
        if draw.random() < 0.25:
            results.append(now)
    return made.text(*dict.fromkeys((*results, now)))


def _changed(made: Rows, draw: random.Random, row: str, statistic: str) -> str:
    """A row changed by a statistic: values stay of the order of one."""
    match draw.randrange(4):
        case 0:
            return made.full("subtract", row, statistic)
        case 1:
            return made.full("tanh", made.full("subtract", row, statistic))
        case 2:
            by = made.full("add", made.full("abs", statistic), made.number(draw.choice((0.5, 2))))
            return made.full("divide", row, by)
        case _:
            return made.full("multiply", row, made.full("tanh", statistic))
