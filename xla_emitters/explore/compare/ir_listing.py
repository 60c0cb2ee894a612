"""A kernel's IR as lines that can be compared.

    %cst = arith.constant 2.0 : f32
    %y = arith.mulf %x, %cst : f32         %1 = arith.mulf(%0, arith.constant() {value=2.0 : f32} : f32) {} : f32

They have no discardable attributes, no names of variables of maps, and constants and thread ids where they are used. A private function is
called `@` and a digest of its own lines, so that functions are compared by what they do, not by their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from xla_emitters.algebra.interval import Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir.llvm import GlobalOp
from xla_emitters.dialects.mlir.vector import TransferReadOp
from xla_emitters.dialects.xla_gpu.loops import ApplyIndexingOp, LoopOp
from xla_emitters.rewrite.constants import constant_integer
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


def listing(module: ModuleOp) -> list[str]:
    """The module as lines that are equal for equal IR: values are numbered, functions are in the order of their text, and constants and ids
    are written where they are used; an unused one is not."""
    functions = list(module.body.block.ops)
    names = _names(functions)
    return [line for part in sorted(list(_Lines(names).of(function)) for function in functions) for line in part]


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
        text = "\n".join(_Lines(found).of(bodies[name]))
        found[f"@{name}"] = f"@{sha256(text.encode()).hexdigest()[:8]}"

    for name in bodies:
        visit(name)
    return found


class _Lines:
    """The lines of one function."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.values: dict[SSAValue, str] = {}
        self.count = 0
        self.blocks: dict[Block, str] = {}

    def of(self, op: Operation, depth: int = 0) -> Iterator[str]:
        text = self.text(op)
        if op.name in INLINED:
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
        given = ((key, self._attribute(op.properties[key])) for key in sorted(op.properties) if key not in _DROPPED)
        shown = {key: value for key, value in given if (key, value) not in _DEFAULTS}
        if isinstance(op, GlobalOp):
            shown["sym_name"] = str(op.sym_name)
        if isinstance(op, ApplyIndexingOp | LoopOp):
            applied = op.indexing_map_attr.data
            count = applied.num_dims
            # The map says which operand is where.
            shown["indexing_map_attr"] = map_of_operands(applied, values[:count])
            operands = ", ".join(values[count:])
        attributes = " ".join(f"{key}={value}" for key, value in shown.items())
        types = ", ".join(str(result.type) for result in op.results)
        return f"{_OTHER_NAMES.get(op.name, op.name)}({operands}){successors} {{{attributes}}} : {types}"

    def _value(self, op: Operation, number: int) -> str:
        """An operand, as the lines show it."""
        operand = op.operands[number]
        if isinstance(op, TransferReadOp) and operand is op.padding and _is_in_bounds(op):
            return "padding that is never read"
        is_position = op.name in _POSITION and number == len(op.operands) - 1
        if is_position and (known := constant_integer(operand)) is not None:
            return str(known)
        return self.values.get(operand, "%?")

    def _attribute(self, value: object) -> str:
        if isinstance(value, IntegerAttr):
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
