"""The `hlo` dialect to StableHLO text in generic form, which MLIR reads, and `parse_stablehlo` reads back to a module of the same meaning.

    module @jit_f attributes {jax.uses_shape_polymorphism = true} {
      func.func public @main(%0: tensor<?x4xf32>) -> tensor<?xf32> {
        %1 = "stablehlo.constant"() <{value = dense<0.000000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
          ^bb0(%3: tensor<f32>, %4: tensor<f32>): ...

StableHLO has no tuples around its loops, branches and functions: a tuple is printed as a list of values, and `tuple` and
`get-tuple-element` print nothing. A computation that an op applies becomes its region; one that is called becomes a private function.
Layouts are not printed: a module whose meaning depends on them (`bitcast`) is refused by name, like any op that StableHLO lacks.
Source: StableHLO specification (https://openxla.org/stablehlo/spec).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, TupleType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.backend_configs import unquoted
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.types import dims_of, leaf_types, tuple_type
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import InternalError
from xla_emitters.text.stablehlo.fields import enum_text, number_of, numbers_text, word_of
from xla_emitters.text.stablehlo.op_table import LAYOUTS, is_kept_attribute, row_of
from xla_emitters.text.stablehlo.stablehlo_lexer import quoted
from xla_emitters.text.stablehlo.stablehlo_types import stablehlo_type

Names: TypeAlias = "str | tuple[Names, ...]"
"""The name of a value; for a tuple, the names of its elements."""


def print_stablehlo(module: ModuleOp) -> str:
    """`module` as StableHLO text, with a newline at its end.

    module  contains only `hlo.computation` ops; those that the entry does not reach are left out
    raises  Unsupported for an op that StableHLO lacks
    """
    entry = next((op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry), None)
    if entry is None:
        raise InternalError("a module without an entry", stage="stablehlo.print")
    name = module.sym_name.data if module.sym_name else "module"
    said = {key: value.data for key, value in module.attributes.items() if isinstance(value, StringAttr)}
    shown = ", ".join(f"{key} = {text}" for key, text in said.items() if not key.startswith("hlo."))
    printer = _ModulePrinter()
    functions = printer.functions(entry)
    head = f"module @{_symbol(name)}{f' attributes {{{shown}}}' if shown else ''} {{"
    return "\n".join((head, *(f"  {line}" for function in functions for line in function), "}")) + "\n"


class _ModulePrinter:
    """Prints the functions of a module: the entry, and the called ones."""

    def __init__(self) -> None:
        self._waiting: list[ComputationOp] = []
        self._known: dict[ComputationOp, str] = {}

    def functions(self, entry: ComputationOp) -> Iterable[list[str]]:
        self.name_of(entry, "main")
        while self._waiting:
            computation = self._waiting.pop(0)
            yield _Function(self).text(computation, self._known[computation])

    def name_of(self, computation: ComputationOp, name: str | None = None) -> str:
        """The name of the function for a computation, which is then printed."""
        if computation not in self._known:
            wanted, number = name or computation.sym_name.data, 0
            while wanted in self._known.values():
                number += 1
                wanted = f"{computation.sym_name.data}.{number}"
            self._known[computation] = wanted
            self._waiting.append(computation)
        return self._known[computation]


class _Function:
    """One function, with the regions inside it."""

    def __init__(self, module: _ModulePrinter):
        self.module = module
        self.lines: list[str] = []
        self.depth = 1
        self._count = 0
        self.names: dict[SSAValue, Names] = {}

    def text(self, computation: ComputationOp, name: str) -> list[str]:
        parameters = list[str]()
        for parameter in computation.parameters:
            names = self._fresh(parameter.result.type)
            self.names[parameter.result] = names
            said = ", ".join(
                f"{key} = {value.data}"
                for key, value in parameter.attributes.items()
                if isinstance(value, StringAttr) and is_kept_attribute(key) and key != "jax.arg_name"
            )
            known = parameter.attributes.get("jax.arg_name")
            where = f" loc({quoted(known.data)})" if isinstance(known, StringAttr) else ""
            for leaf, ir_type in zip(_leaves(names), leaf_types(parameter.result.type), strict=True):
                parameters.append(f"{leaf}: {stablehlo_type(ir_type)}{f' {{{said}}}' if said else ''}{where}")
        results = [stablehlo_type(leaf) for leaf in leaf_types(computation.root.type)]
        about = computation.attributes.get("result_attributes")
        if isa(about, ArrayAttr[StringAttr]) and len(about) == len(results):
            results = [
                f"{ir_type} {row.data}" if row.data != "{}" else ir_type
                for ir_type, row in zip(results, about, strict=True)
            ]
        visibility = "public" if computation.is_entry else "private"
        self.lines.append(
            f"func.func {visibility} @{_symbol(name)}({', '.join(parameters)}) -> ({', '.join(results)}) {{"
        )
        self._body(computation, "func.return")
        self.lines.append("}")
        return self.lines

    def _body(self, computation: ComputationOp, end: str, kept: Sequence[int] | None = None) -> None:
        for op in computation.instructions:
            if not isinstance(op, ParameterOp):
                self._op(op)
        names, ir_type = self.names[computation.root], computation.root.type
        if kept is not None:
            assert isinstance(names, tuple)
            assert isinstance(ir_type, TupleType)
            names, ir_type = tuple(names[i] for i in kept), tuple_type([ir_type.types.data[i] for i in kept])
        leaves = _leaves(names)
        types = ", ".join(stablehlo_type(leaf) for leaf in leaf_types(ir_type))
        self._line(f'"{end}"({", ".join(leaves)}) : ({types}) -> ()')

    def _line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def _fresh(self, ir_type: Attribute) -> Names:
        if isinstance(ir_type, TupleType):
            return tuple(self._fresh(part) for part in ir_type.types)
        self._count += 1
        return f"%{self._count - 1}"

    # --------------------------------------------------------------------------------------------------------------- ops

    def _op(self, op: HloOp) -> None:
        match op.opcode:
            case "tuple":
                self.names[op.result] = tuple(self.names[operand] for operand in op.operands)
            case "get-tuple-element":
                names = self.names[op.operands[0]]
                assert isinstance(names, tuple)
                self.names[op.result] = names[number_of(op, "index")]
            case "copy" | "add-dependency":
                self.names[op.result] = self.names[op.operands[0]]
            case "while":
                self._while(op)
            case "conditional":
                self._conditional(op)
            case "rng":
                self._rng(op)
            case "call" | "fusion":
                key = "to_apply" if op.opcode == "call" else "calls"
                callee = self.module.name_of(_computation(op, key))
                self.names[op.result] = self._emit(op, "func.call", op.operands, {"callee": f"@{_symbol(callee)}"})
            case _:
                self._plain(op)

    def _plain(self, op: HloOp) -> None:
        """Prints an op from the table."""
        row = row_of(op)
        if row is None:
            raise op.unsupported("no StableHLO", help="it is written from ops that StableHLO has")
        name, attributes, regions = row
        found = attributes(op)
        for key in ("called_computations",):
            value = op.properties.get(key)
            if isa(value, ArrayAttr[SymbolRefAttr]):
                called = (self.module.name_of(find_computation(op, symbol)) for symbol in value)
                found[key] = f"[{', '.join(f'@{_symbol(callee)}' for callee in called)}]"
        if op.opcode == "dynamic-reduce-window":
            found["called_computations"] = f"[@{_symbol(self.module.name_of(_computation(op, 'to_apply')))}]"
        self.names[op.result] = self._emit(op, name, op.operands, found, [_computation(op, key) for key in regions])

    def _emit(
        self,
        op: HloOp,
        name: str,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, str],
        regions: Sequence[ComputationOp] = (),
        bound: Sequence[Names] | None = None,
    ) -> Names:
        """Prints an op in generic form; returns the names of its result.

        bound  the values of the only parameter of each region, for branches; None: the regions have arguments
        """
        result = self._fresh(op.result.type)
        values = [leaf for operand in operands for leaf in _leaves(self.names[operand])]
        types = [stablehlo_type(leaf) for operand in operands for leaf in leaf_types(operand.type)]
        leaves = _leaves(result)
        to = f"{', '.join(leaves)} = " if leaves else ""
        others = {} if name != "stablehlo.custom_call" else {k: v for k, v in attributes.items() if k not in _OF_A_CALL}
        own = {key: text for key, text in attributes.items() if key not in others}
        said = f" <{_dictionary(own)}>" if own else ""
        results = ", ".join(stablehlo_type(leaf) for leaf in leaf_types(op.result.type))
        tail = f"{f' {_dictionary(others)}' if others else ''} : ({', '.join(types)}) -> ({results}){_location(op)}"
        head = f'{to}"{name}"({", ".join(values)}){said}'
        if not regions:
            self._line(head + tail)
            return result
        self._line(f"{head} ({{")
        for number, region in enumerate(regions):
            if number:
                self._line("}, {")
            self._region(region, None if bound is None else bound[number])
        self._line(f"}}){tail}")
        return result

    def _region(
        self,
        computation: ComputationOp,
        bound: Names | None,
        *,
        arguments: Sequence[str] = (),
        kept: Sequence[int] | None = None,
    ) -> None:
        """Prints the inside of a region.

        bound      the values of its only parameter; None: the region has an argument per parameter
        arguments  the region's arguments, if `bound` refers to them
        kept       the elements of the root that the region returns; None: all
        """
        self.depth += 1
        outside = self.names
        self.names = dict(outside)
        shown = list(arguments)
        if bound is not None:
            (parameter,) = computation.parameters
            self.names[parameter.result] = bound
        else:
            for parameter in computation.parameters:
                names = self.names[parameter.result] = self._fresh(parameter.result.type)
                shown += (
                    f"{leaf}: {stablehlo_type(ir_type)}"
                    for leaf, ir_type in zip(_leaves(names), leaf_types(parameter.result.type), strict=True)
                )
        if shown:
            self.lines.append("  " * (self.depth - 1) + f"^bb0({', '.join(shown)}):")
        self._body(computation, "stablehlo.return", kept)
        self.names = outside
        self.depth -= 1

    def _while(self, op: HloOp) -> None:
        """Values that the loop does not change are not printed as loop values: its regions use them from outside.

        This lets MLIR see sizes in them, which it cannot see through a loop.
        """
        if len(op.operands) > 1:
            raise op.unsupported("no StableHLO of a loop that disc-loop-invariant changed", help="print it before")
        condition, body = (_computation(op, key) for key in ("condition", "body"))
        given = self.names[op.operands[0]]
        types = op.operands[0].type
        if not isinstance(given, tuple) or not isinstance(types, TupleType):
            raise op.unsupported("no StableHLO of a loop whose value is not a tuple")
        changed = [i for i in range(len(given)) if not _is_kept(body, i)] or [0]
        inits = [leaf for i in changed for leaf in _leaves(given[i])]
        shown = [stablehlo_type(leaf) for i in changed for leaf in leaf_types(types.types.data[i])]
        results = [self._fresh(types.types.data[i]) for i in changed]
        to = ", ".join(leaf for names in results for leaf in _leaves(names))
        self._line(f'{to} = "stablehlo.while"({", ".join(inits)}) ({{')
        for region in (condition, body):
            if region is body:
                self._line("}, {")
            inside = [self._fresh(types.types.data[i]) if i in changed else names for i, names in enumerate(given)]
            arguments = [leaf for i in changed for leaf in _leaves(inside[i])]
            listed = [f"{leaf}: {ir_type}" for leaf, ir_type in zip(arguments, shown, strict=True)]
            kept = changed if region is body else None
            self._region(region, tuple(inside), arguments=listed, kept=kept)
        types_text = ", ".join(shown)
        self._line(f"}}) : ({types_text}) -> ({types_text}){_location(op)}")
        of_changed = dict(zip(changed, results, strict=True))
        self.names[op.result] = tuple(of_changed.get(i, names) for i, names in enumerate(given))

    def _rng(self, op: HloOp) -> None:
        """StableHLO also takes the sizes as an operand."""
        sizes = np.asarray(dims_of(op.result), np.int64)
        shape = self._fresh(op.operands[0].type)
        ir_type = f"tensor<{sizes.size}xi64>"
        self._line(f'{shape} = "stablehlo.constant"() <{{value = {numbers_text(sizes)}}}> : () -> {ir_type}')
        low, high = (self.names[operand] for operand in op.operands)
        scalar = stablehlo_type(op.operands[0].type)
        word = enum_text("rng_distribution", word_of(op, "distribution").removeprefix("rng_").upper())
        result = self.names[op.result] = self._fresh(op.result.type)
        self._line(
            f'{result} = "stablehlo.rng"({low}, {high}, {shape}) <{{rng_distribution = {word}}}> : '
            f"({scalar}, {scalar}, {ir_type}) -> {stablehlo_type(op.result.type)}{_location(op)}"
        )

    def _conditional(self, op: HloOp) -> None:
        """The branches' operands are not printed: their regions use the values directly."""
        chosen, *given = op.operands
        is_if = "true_computation" in op.properties
        if is_if:
            regions = [_computation(op, key) for key in ("true_computation", "false_computation")]
        else:
            symbols = op.properties["branch_computations"]
            assert isa(symbols, ArrayAttr[SymbolRefAttr])
            regions = [find_computation(op, symbol) for symbol in symbols]
        bound = [self.names[value] for value in given]
        name = "stablehlo.if" if is_if else "stablehlo.case"
        self.names[op.result] = self._emit(op, name, [chosen], {}, regions, bound)


def _is_kept(body: ComputationOp, element: int) -> bool:
    """Whether a loop's body returns this element of its parameter unchanged."""
    root = body.root.owner
    if not isinstance(root, TupleOp):
        return False
    (parameter,) = body.parameters
    found = root.operands[element].owner
    return (
        isinstance(found, GetTupleElementOp)
        and found.operands[0] is parameter.result
        and number_of(found, "index") == element
    )


def _dictionary(attributes: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key} = {text}' for key, text in attributes.items())}}}"


_OF_A_CALL = ("call_target_name", "api_version", "has_side_effect", "backend_config", "called_computations", *LAYOUTS)
"""The attributes that belong to the custom call itself; others follow its regions."""


def _leaves(names: Names) -> list[str]:
    return [leaf for part in names for leaf in _leaves(part)] if isinstance(names, tuple) else [names]


def _computation(op: HloOp, key: str) -> ComputationOp:
    symbol = op.properties[key]
    assert isinstance(symbol, SymbolRefAttr)
    return find_computation(op, symbol)


def _symbol(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_$.][\w$.]*", name, re.ASCII) else quoted(name)


_OP_NAME = re.compile(r'op_name=("(?:[^"\\]|\\.)*")')


def _location(op: HloOp) -> str:
    """The location with the name in the op's metadata."""
    text = op.attributes.get("metadata")
    match = _OP_NAME.search(text.data) if isinstance(text, StringAttr) else None
    return f" loc({quoted(unquoted(match[1]))})" if match else ""
