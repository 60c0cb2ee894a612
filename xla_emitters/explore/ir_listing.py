"""A kernel's IR as lines that can be compared, in two forms.

    %cst = arith.constant 2.0 : f32        exact    %0 = arith.constant() {value=2.0 : f32} : f32
    %y = arith.mulf %x, %cst : f32                  %2 = arith.mulf(%1, %0) {fastmath=#arith.fastmath<none>} : f32
                                           loose    %1 = arith.mulf(%0, arith.constant() {value=2.0 : f32} : f32) {} : f32

The loose form has no discardable attributes, no names of variables of maps, and constants and thread ids where they are used. A private
function is called `@` and a digest of its own loose lines, so that functions are compared by what they do, not by their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir.llvm import GlobalOp
from xla_emitters.dialects.mlir.vector import TransferReadOp
from xla_emitters.dialects.xla_gpu.loops import ApplyIndexingOp, LoopOp
from xla_emitters.indexing import IndexingMap, Variable
from xla_emitters.rewrite.folders import constant_integer
from xla_emitters.rewrite.symbols import symbol_name, symbols_in

# Values that are written where they are used, so that their places do not matter.
INLINED = frozenset(
    (
        "arith.constant",
        "llvm.mlir.constant",
        "llvm.mlir.undef",
        "llvm.mlir.poison",
        "ub.poison",
        "gpu.thread_id",
        "gpu.block_id",
        "nvvm.read.ptx.sreg.tid.x",
        "nvvm.read.ptx.sreg.ctaid.x",
    )
)


# Ops whose last operand is a position, of any integer type.
_POSITION = frozenset(("llvm.extractelement", "llvm.insertelement"))
# As maps name them.
_IDS = {"gpu.thread_id": "th", "gpu.block_id": "bl"}
_OTHER_NAMES = {"nvvm.barrier0": "nvvm.barrier"}
# Names of functions; attributes of arguments and visibility are for later passes, as discardable attributes are.
_DROPPED = ("sym_name", "sym_visibility", "arg_attrs", "res_attrs", "range", "linkage")
# What an op means without the property.
_DEFAULTS = frozenset(
    (
        ("overflowFlags", "0"),
        ("overflowFlags", "#arith.overflow<none>"),
        ("fastmath", "#arith.fastmath<none>"),
        ("operandSegmentSizes", "array<i32: 0, 0, 0>"),
    )
)


def listing(module: ModuleOp, *, keeps_spelling: bool) -> list[str]:
    """The module as lines that are equal for equal IR: values are numbered, each op is written in one form.

    keeps_spelling  with discardable attributes, names of functions, and every op at its place; else constants and ids are written
                    where they are used (an unused one is not), and functions are in the order of their text
    """
    functions = list(module.body.block.ops)
    names = {} if keeps_spelling else _names(functions)
    parts = [list(_Lines(names, keeps_spelling).of(function)) for function in functions]
    if not keeps_spelling:
        parts.sort()
    return [line for part in parts for line in part]


def _names(functions: list[Operation]) -> dict[str, str]:
    """Names of functions that have a body -> `@` and a digest of their code. A recursive function keeps its name."""
    bodies = {name: op for op in functions if (name := symbol_name(op)) and any(region.blocks for region in op.regions)}
    found: dict[str, str] = {}
    open_names = set[str]()

    def visit(name: str) -> None:
        if name in found or name in open_names:
            return
        open_names.add(name)
        for callee in {callee for callee in symbols_in(bodies[name]) if callee in bodies}:
            visit(callee)
        text = "\n".join(_Lines(found, keeps_spelling=False).of(bodies[name]))
        found[f"@{name}"] = f"@{sha256(text.encode()).hexdigest()[:8]}"

    for name in bodies:
        visit(name)
    return found


class _Lines:
    """The lines of one function."""

    def __init__(self, names: dict[str, str], keeps_spelling: bool) -> None:
        self.names, self.keeps = names, keeps_spelling
        self.values: dict[SSAValue, str] = {}
        self.count = 0
        self.blocks: dict[Block, str] = {}

    def of(self, op: Operation, depth: int = 0) -> Iterator[str]:
        text = self.text(op)
        if not self.keeps and op.name in INLINED:
            if isinstance(op, gpu.ThreadIdOp | gpu.BlockIdOp):
                text = f"{_IDS[op.name]}_{op.dimension.data.value}"
            for result in op.results:
                self.values[result] = text
            return
        for result in op.results:
            self._number(result)
        results = ", ".join(self.values[result] for result in op.results)
        yield f"{'  ' * depth}{results}{' = ' if results else ''}{text}"
        for region in op.regions:
            self.blocks |= {block: f"^{len(self.blocks) + n}" for n, block in enumerate(region.blocks)}
            for block in region.blocks:
                for argument in block.args:
                    self._number(argument)
                arguments = ", ".join(f"{self.values[argument]}: {argument.type}" for argument in block.args)
                yield f"{'  ' * depth}{self.blocks[block]}({arguments})"
                for inner in block.ops:
                    yield from self.of(inner, depth + 1)

    def _number(self, value: SSAValue) -> None:
        self.values[value] = f"%{self.count}"
        self.count += 1

    def text(self, op: Operation) -> str:
        """The op without its results."""
        values = [self._value(op, number) for number in range(len(op.operands))]
        operands = ", ".join(values)
        successors = "".join(f" {self.blocks[block]}" for block in op.successors)
        given = op.properties if not self.keeps else {**op.properties, **op.attributes}
        dropped = () if self.keeps else _DROPPED
        shown = {key: self._attribute(given[key]) for key in sorted(given) if key not in dropped}
        if isinstance(op, GlobalOp):
            shown["sym_name"] = str(op.sym_name)
        if not self.keeps:
            shown = {key: value for key, value in shown.items() if (key, value) not in _DEFAULTS}
        if not self.keeps and isinstance(op, ApplyIndexingOp | LoopOp):
            applied = op.indexing_map_attr.data
            count = applied.num_dims
            # The map says which operand is where.
            shown["indexing_map_attr"] = map_of_operands(applied, values[:count])
            operands = ", ".join(values[count:])
        attributes = " ".join(f"{key}={value}" for key, value in shown.items())
        types = ", ".join(str(result.type) for result in op.results)
        name = op.name if self.keeps else _OTHER_NAMES.get(op.name, op.name)
        return f"{name}({operands}){successors} {{{attributes}}} : {types}"

    def _value(self, op: Operation, number: int) -> str:
        """An operand, as the form shows it."""
        operand = op.operands[number]
        if not self.keeps:
            if isinstance(op, TransferReadOp) and operand is op.padding and _is_in_bounds(op):
                return "padding that is never read"
            if (
                op.name in _POSITION
                and number == len(op.operands) - 1
                and (known := constant_integer(operand)) is not None
            ):
                return str(known)
        return self.values.get(operand, "%?")

    def _attribute(self, value: object) -> str:
        if not self.keeps and isinstance(value, IntegerAttr):
            return str(value.value.data)
        text = str(value)
        return self.names.get(text, text)


def map_of_operands(applied: IndexingMap, operands: Sequence[str]) -> str:
    """A map in which operands are in the place of dims, r0, r1 ... in that of symbols, and the order of the dims does not count.

    >>> applied = IndexingMap.parse("(th_x, i)[s] -> (th_x * 4 + i + s), domain: th_x in [0, 1], i in [0, 2], s in [0, 3]")
    >>> map_of_operands(applied, ["%2", "%1"])
    '%2 * 4 + %1 + r0 for %1 in [0, 2], %2 in [0, 1], r0 in [0, 3]'
    """
    new = [*operands, *(f"r{number}" for number in range(applied.num_symbols))]
    numbers = iter(range(len(new)))
    kinds = ("dims", "range_vars", "runtime_vars")
    named = {kind: tuple(Variable(v.bounds, f"v{next(numbers)}_") for v in getattr(applied, kind)) for kind in kinds}
    text = re.sub(r"\bv(\d+)_\b", lambda number: new[int(number[1])], str(replace(applied, **named)))
    results, _, domain = text.partition(" -> (")[2].partition("), domain: ")
    return f"{results} for {', '.join(sorted(re.findall(r'[^]]+]', domain.replace('], ', ']'))))}"


def _is_in_bounds(op: TransferReadOp) -> bool:
    return all(is_inside == BoolAttr.from_bool(True) for is_inside in op.in_bounds)


def count_ops(module: ModuleOp) -> Counter[str]:
    """Counts of ops by name, without those that are written where they are used."""
    names = (op.name for op in module.walk() if op.name not in INLINED and op is not module)
    return Counter(_OTHER_NAMES.get(name, name) for name in names)
