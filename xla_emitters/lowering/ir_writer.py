"""Writes functions of LLVM IR as text; generates names of values and the blocks of loops and branches.

    w = IrWriter()
    with w.function("define void @fill(ptr %x, i64 %n)"):
        with w.loop(0, "%n") as loop:                               for i in 0 .. n
            w.do(f"store float 1.0, ptr {w.at('float', '%x', loop.index)}")
    w.text

A loop can carry values: `loop.values` in the body, `loop.carry(...)` sets the values for the next iteration, and after the loop
`loop.values` are the final ones. The text is plain code in SSA form; LLVM optimises it.
Source: LLVM Language Reference Manual (https://llvm.org/docs/LangRef.html).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = str | int
"""A value's name, or a number."""


@dataclass
class Loop:
    """A loop whose body is being written.

    index   the induction variable
    values  the carried values
    """

    index: str
    values: list[str]
    following: list[Value] = field(default_factory=list[Value])

    def carry(self, values: Sequence[Value]) -> None:
        """Sets the carried values of the next iteration."""
        self.following = list(values)


class IrWriter:
    """See the file's head."""

    def __init__(self) -> None:
        self._lines = list[str]()
        self._declared = dict[str, None]()
        self._count = 0
        self._block = "entry"

    @property
    def text(self) -> str:
        return "\n".join((*self._declared, *self._lines, ""))

    def declare(self, line: str) -> None:
        """Adds a declaration, once however often it is requested."""
        self._declared[f"declare {line}"] = None

    @contextmanager
    def function(self, head: str) -> Generator[None]:
        """The body of a void function."""
        self._lines.append(f"{head} {{")
        self._label("entry")
        yield
        self._lines += ["  ret void", "}"]

    def do(self, line: str) -> None:
        """Writes an instruction without a value."""
        self._lines.append(f"  {line}")

    def value(self, line: str) -> str:
        """Writes an instruction; returns the name of its value."""
        name = f"%v{self._number()}"
        self._lines.append(f"  {name} = {line}")
        return name

    def at(self, ir_type: str, pointer: Value, index: Value) -> str:
        """The address of an element."""
        return self.value(f"getelementptr inbounds {ir_type}, ptr {pointer}, i64 {index}")

    def load(self, ir_type: str, pointer: Value, index: Value = 0) -> str:
        place = pointer if index == 0 else self.at(ir_type, pointer, index)
        return self.value(f"load {ir_type}, ptr {place}{_alignment(ir_type)}")

    def store(self, ir_type: str, value: Value, pointer: Value, index: Value = 0) -> None:
        place = pointer if index == 0 else self.at(ir_type, pointer, index)
        self.do(f"store {ir_type} {value}, ptr {place}{_alignment(ir_type)}")

    def add(self, *values: Value) -> str:
        """The sum of i64."""
        return self._folded("add", values)

    def multiply(self, *values: Value) -> str:
        """The product of i64."""
        return self._folded("mul", values)

    def binary(self, name: str, a: Value, b: Value) -> str:
        """A binary op on two i64: `sub`, `sdiv`, `srem` ..."""
        return self.value(f"{name} i64 {a}, {b}")

    def compare(self, predicate: str, a: Value, b: Value) -> str:
        """The i1 result of comparing two i64."""
        return self.value(f"icmp {predicate} i64 {a}, {b}")

    def select(self, condition: str, ir_type: str, a: Value, b: Value) -> str:
        return self.value(f"select i1 {condition}, {ir_type} {a}, {ir_type} {b}")

    def minimum(self, a: Value, b: Value) -> str:
        """The minimum of two i64."""
        return self.select(self.compare("slt", a, b), "i64", a, b)

    def splat(self, lanes: int, ir_type: str, value: Value) -> str:
        """A vector with the same value in all lanes."""
        vector = f"<{lanes} x {ir_type}>"
        first = self.value(f"insertelement {vector} poison, {ir_type} {value}, i64 0")
        return self.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    @contextmanager
    def loop(
        self, begin: Value, end: Value, step: Value = 1, carried: Iterable[tuple[str, Value]] = ()
    ) -> Generator[Loop]:
        """`for i = begin; i < end; i += step`.

        carried  type and initial value of each carried value
        """
        number, before, inits = self._number(), self._block, list(carried)
        head, body, latch, behind = (f"l{number}.{part}" for part in ("head", "body", "next", "end"))
        made = Loop(f"%i{number}", [f"%c{number}.{place}" for place in range(len(inits))])
        self.do(f"br label %{head}")
        self._label(head)
        self.do(f"{made.index} = phi i64 [ {begin}, %{before} ], [ {made.index}.next, %{latch} ]")
        phis = len(self._lines)
        more = self.compare("slt", made.index, end)
        self.do(f"br i1 {more}, label %{body}, label %{behind}")
        self._label(body)
        yield made
        self.do(f"br label %{latch}")
        self._label(latch)
        self.do(f"{made.index}.next = add nsw i64 {made.index}, {step}")
        self.do(f"br label %{head}")
        self._lines[phis:phis] = [
            f"  {name} = phi {ir_type} [ {first}, %{before} ], [ {following}, %{latch} ]"
            for name, (ir_type, first), following in zip(made.values, inits, made.following, strict=True)
        ]
        self._label(behind)

    @contextmanager
    def when(self, condition: str) -> Generator[None]:
        """The code inside runs only if the i1 `condition` is true."""
        number = self._number()
        self.do(f"br i1 {condition}, label %w{number}.then, label %w{number}.end")
        self._label(f"w{number}.then")
        yield
        self.do(f"br label %w{number}.end")
        self._label(f"w{number}.end")

    def _folded(self, name: str, values: Sequence[Value]) -> str:
        first, *rest = values
        for other in rest:
            first = self.value(f"{name} nsw i64 {first}, {other}")
        return str(first)

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _label(self, name: str) -> None:
        self._block = name
        self._lines.append(f"{name}:")


def _alignment(ir_type: str) -> str:
    """The alignment to state on an access: vectors may start at the address of any element."""
    if not ir_type.startswith("<"):
        return ""
    element = ir_type.rpartition(" ")[2].rstrip(">")
    return f", align {ELEMENT_BYTES[element]}"


ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8, "ptr": 8}
