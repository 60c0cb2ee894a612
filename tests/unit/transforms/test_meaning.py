"""Passes keep what a program computes: random programs of loops and branches, run before and after by xDSL's interpreter."""

import random
from collections.abc import Callable

import pytest
from runtime.seeds import seeds
from unit.dialects.stock import stock_context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.interpreter import Interpreter

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.rewrite.common_subexpressions import cse
from xla_emitters.transforms.canonicalize import canonicalize
from xla_emitters.transforms.loop_invariant_code_motion import loop_invariant_code_motion
from xla_emitters.transforms.simplify_arith import SimplifyArithPass
from xla_emitters.transforms.unswitch_loops import UnswitchLoopsPass

BINARY = ("addi", "subi", "muli", "andi", "ori", "xori")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
INPUTS = ((0, 0, 0), (1, -1, 5), (7, 3, -100), (2**31 - 1, 2, -(2**31)))


class Program:
    """Text of a random function of three i32 (the first of which is said to be small) that returns an i32."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.lines: list[str] = []
        values, truths = ["%x", "%y", "%z"], list[str]()
        self.block(values, truths, depth=3)
        body = "\n".join(self.lines)
        self.text = f"func.func @f(%x: i32, %y: i32, %z: i32) -> i32 {{\n{body}\nreturn {values[-1]} : i32\n}}"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def block(self, values: list[str], truths: list[str], depth: int) -> None:
        """Ops on `values` and `truths`, to which their results are added."""
        pick = self.random.choice
        for _ in range(self.random.randint(3, 6)):
            kind = self.random.random()
            if kind < 0.15:
                values.append(self.emit(f"arith.constant {pick((0, 1, -1, 2, 7))} : i32"))
            elif kind < 0.5:
                values.append(self.emit(f"arith.{pick(BINARY)} {pick(values)}, {pick(values)} : i32"))
            elif kind < 0.65 or not truths:
                truths.append(self.emit(f"arith.cmpi {pick(PREDICATES)}, {pick(values)}, {pick(values)} : i32"))
            elif kind < 0.75:
                values.append(self.emit(f"arith.select {pick(truths)}, {pick(values)}, {pick(values)} : i32"))
            elif depth and kind < 0.87:
                self.branch(values, truths, depth)
            elif depth:
                self.loop(values, truths, depth)

    def branch(self, values: list[str], truths: list[str], depth: int) -> None:
        result, condition = self.name(), self.random.choice(truths)
        self.lines.append(f"{result}:2 = scf.if {condition} -> (i32, i32) {{")
        for separator in ("} else {", "}"):
            inner = list(values)
            self.block(inner, list(truths), depth - 1)
            one, other = self.random.choice(inner), self.random.choice(values)
            self.lines += [f"scf.yield {one}, {other} : i32, i32", separator]
        values += [f"{result}#0", f"{result}#1"]

    def loop(self, values: list[str], truths: list[str], depth: int) -> None:
        pick = self.random.choice
        bounds = [self.emit(f"arith.constant {n} : index") for n in (pick((0, 1)), pick((0, 1, 2, 4)), pick((1, 2)))]
        result, iv, a, b = (self.name() for _ in range(4))
        inits = f"{a} = {pick(values)}, {b} = {pick(values)}"
        self.lines.append(
            f"{result}:2 = scf.for {iv} = {bounds[0]} to {bounds[1]} step {bounds[2]} iter_args({inits}) -> (i32, i32) {{"
        )
        inner = [*values, a, b, self.emit(f"arith.index_cast {iv} : index to i32")]
        self.block(inner, list(truths), depth - 1)
        self.lines += [f"scf.yield {pick(inner)}, {pick((b, inner[-1], values[0]))} : i32, i32", "}"]
        values += [f"{result}#0", f"{result}#1"]


def answers(module: ModuleOp) -> list[object]:
    # xDSL's interpreter finds an op's meaning by its very class.
    context = stock_context()
    from xdsl.interpreters import register_implementations  # loads RISC-V's dialects: not while tests are collected

    interpreter = Interpreter(parse_ir(print_ir(module, generic=True), verify=False, context=context))
    register_implementations(interpreter, context)
    return [interpreter.call_op("f", tuple(IntegerAttr(number, i32) for number in arguments)) for arguments in INPUTS]


def in_turn(module: ModuleOp) -> None:
    for step in (canonicalize, cse, loop_invariant_code_motion, unswitch, simplify, canonicalize, cse):
        step(module)


def unswitch(module: ModuleOp) -> None:
    UnswitchLoopsPass().apply(make_context(), module)


def simplify(module: ModuleOp) -> None:
    SimplifyArithPass().apply(make_context(), module)


STEPS: list[Callable[[ModuleOp], object]] = [
    canonicalize,
    cse,
    loop_invariant_code_motion,
    unswitch,
    simplify,
    in_turn,
]


@pytest.mark.parametrize("seed", seeds(20))
def test_every_step_keeps_the_meaning(seed: int):
    original = parse_ir(Program(seed).text)
    wanted = answers(original)
    for step in STEPS:
        module = original.clone()
        step(module)
        module.verify()
        assert answers(module) == wanted, f"{getattr(step, '__name__', step)}\n{original}\n{module}"
