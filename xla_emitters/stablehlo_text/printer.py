"""The `hlo` dialect to StableHLO text in generic form, which MLIR reads, and `parse_stablehlo` reads back to a module of the same meaning.

    module @jit_f attributes {jax.uses_shape_polymorphism = true} {
      func.func public @main(%0: tensor<?x4xf32>) -> tensor<?xf32> {
        %1 = "stablehlo.constant"() <{value = dense<0.000000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
          ^bb0(%3: tensor<f32>, %4: tensor<f32>): ...

StableHLO has no tuples around its loops, branches and functions: a tuple here is a list of values, and `tuple` and `get-tuple-element`
print nothing. A computation that an op applies becomes its region; one that is called, a private function. Layouts are not printed: a
module whose meaning depends on them (`bitcast`) is refused by name, like any op that StableHLO has not.
Source: StableHLO specification (https://openxla.org/stablehlo/spec).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, TupleType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.shape_ops import rows
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, leaf_types, tuple_type
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dtypes import Array, DType, Kind, dtype
from xla_emitters.errors import InternalError
from xla_emitters.stablehlo_text.rules import API_VERSIONS, CHLO_OPCODES, ELEMENTWISE, GENERATORS
from xla_emitters.stablehlo_text.types import stablehlo_type

Names: TypeAlias = "str | tuple[Names, ...]"
"""The name of a value; of a tuple, those of its elements."""

_FEW = 32
"""So many elements of a literal are written one by one; more as a string of bytes."""


def print_stablehlo(module: ModuleOp) -> str:
    """`module` as StableHLO text, with a newline at its end.

    module  holds `hlo.computation` ops and nothing else; what its entry does not reach is left out
    raises  Unsupported for an op that StableHLO has not
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
    """The functions of a module: the entry, and those that are called."""

    def __init__(self) -> None:
        self._waiting: list[ComputationOp] = []
        self._known: dict[ComputationOp, str] = {}

    def functions(self, entry: ComputationOp) -> Iterable[list[str]]:
        self.name_of(entry, "main")
        while self._waiting:
            computation = self._waiting.pop(0)
            yield _Function(self).text(computation, self._known[computation])

    def name_of(self, computation: ComputationOp, name: str | None = None) -> str:
        """The name of the function that a computation is; it will be printed."""
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
                if isinstance(value, StringAttr) and _is_kept_attribute(key) and key != "jax.arg_name"
            )
            known = parameter.attributes.get("jax.arg_name")
            where = f" loc({json.dumps(known.data)})" if isinstance(known, StringAttr) else ""
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
                self.names[op.result] = names[_number(op, "index")]
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
        """An op of a table."""
        row = PRINTED.get(op.opcode)
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

        bound  values that the only parameter of each region is, as for branches; None: the regions have arguments
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

        bound      what its only parameter is; None: the region has an argument for each parameter
        arguments  the region's, where `bound` has them
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
        """A value that the loop does not change is not printed as one of the loop's: its regions use it from outside.

        So MLIR sees the sizes in it, which it does not through a loop.
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
        """StableHLO gives the sizes as an operand too."""
        sizes = np.asarray(dims_of(op.result), np.int64)
        shape = self._fresh(op.operands[0].type)
        ir_type = f"tensor<{sizes.size}xi64>"
        self._line(f'{shape} = "stablehlo.constant"() <{{value = {_numbers(sizes)}}}> : () -> {ir_type}')
        low, high = (self.names[operand] for operand in op.operands)
        scalar = stablehlo_type(op.operands[0].type)
        word = _enum("rng_distribution", _word(op, "distribution").removeprefix("rng_").upper())
        result = self.names[op.result] = self._fresh(op.result.type)
        self._line(
            f'{result} = "stablehlo.rng"({low}, {high}, {shape}) <{{rng_distribution = {word}}}> : '
            f"({scalar}, {scalar}, {ir_type}) -> {stablehlo_type(op.result.type)}{_location(op)}"
        )

    def _conditional(self, op: HloOp) -> None:
        """The branches' operands are not printed: their regions use the values."""
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


def _is_kept_attribute(key: str) -> bool:
    """Whether an attribute is one of a dialect that we print; shardings name meshes, which are not."""
    return "." in key and not key.startswith("sdy.")


def _is_kept(body: ComputationOp, element: int) -> bool:
    """Whether a loop's body returns this element of its parameter as it is."""
    root = body.root.owner
    if not isinstance(root, TupleOp):
        return False
    (parameter,) = body.parameters
    found = root.operands[element].owner
    return (
        isinstance(found, GetTupleElementOp)
        and found.operands[0] is parameter.result
        and _number(found, "index") == element
    )


def _dictionary(attributes: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key} = {text}' for key, text in attributes.items())}}}"


_LAYOUTS = ("operand_layouts", "result_layouts", "output_operand_aliases")
_OF_A_CALL = (
    "call_target_name",
    "api_version",
    "has_side_effect",
    "backend_config",
    "called_computations",
    *_LAYOUTS,
)
"""The attributes that a custom call itself has; others follow its regions."""


def _leaves(names: Names) -> list[str]:
    return [leaf for part in names for leaf in _leaves(part)] if isinstance(names, tuple) else [names]


def _computation(op: HloOp, key: str) -> ComputationOp:
    symbol = op.properties[key]
    assert isinstance(symbol, SymbolRefAttr)
    return find_computation(op, symbol)


def _symbol(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_$.][\w$.]*", name, re.ASCII) else json.dumps(name)


_OP_NAME = re.compile(r'op_name=("(?:[^"\\]|\\.)*")')


def _location(op: HloOp) -> str:
    """The name that the metadata has."""
    text = op.attributes.get("metadata")
    match = _OP_NAME.search(text.data) if isinstance(text, StringAttr) else None
    return f" loc({match[1]})" if match else ""


# --------------------------------------------------------------------------------------------------------------- attributes


def _number(op: HloOp, key: str, default: int = 0) -> int:
    found = op.properties.get(key)
    return found.value.data if isinstance(found, IntegerAttr) else default


def _word(op: HloOp, key: str) -> str:
    found = op.properties.get(key)
    return found.data if isinstance(found, StringAttr) else ""


def _list(op: HloOp, key: str) -> tuple[int, ...]:
    found = op.properties.get(key)
    return integers(found) if isa(found, DenseArrayBase) else ()


def _array(numbers: Iterable[int]) -> str:
    shown = ", ".join(map(str, numbers))
    return f"array<i64: {shown}>" if shown else "array<i64>"


def _flag(op: HloOp, key: str) -> str:
    return "true" if _number(op, key) else "false"


def _enum(kind: str, word: str) -> str:
    return f"#stablehlo<{kind} {word}>"


def _numbers(array: Array) -> str:
    """A literal of s64."""
    return literal_text(array.astype(np.int64), dtype("s64"))


Attributes: TypeAlias = Callable[[HloOp], dict[str, str]]


def _none(op: HloOp) -> dict[str, str]:
    return {}


def _lists(**names: str) -> Attributes:
    """Attributes that are lists of numbers: StableHLO's name, and HLO's."""
    return lambda op: {key: _array(_list(op, name)) for key, name in names.items()}


def _numbers_of(**names: str) -> Attributes:
    """Attributes that are numbers."""
    return lambda op: {key: f"{_number(op, name)} : i64" for key, name in names.items()}


def _dimension(key: str) -> Attributes:
    """The only one of `dimensions`."""
    return lambda op: {key: f"{_list(op, 'dimensions')[0]} : i64"}


def _constant(op: HloOp) -> dict[str, str]:
    value = op.properties.get("value")
    if not is_dense(value):
        raise op.unsupported("no StableHLO of a literal that is a tuple or left out")
    return {"value": literal_text(undense(value), element_of(op.result))}


def _compare(op: HloOp) -> dict[str, str]:
    found = {"comparison_direction": _enum("comparison_direction", _word(op, "direction"))}
    kind = _word(op, "type")
    return found | ({"compare_type": _enum("comparison_type", kind)} if kind else {})


def _columns(op: HloOp, key: str, *names: str) -> dict[str, str]:
    """Rows of numbers, one per dimension, as one list per column."""
    found = op.properties[key]
    assert isa(found, ArrayAttr[Attribute])
    table = rows(found)
    return {name: _array(row[i] for row in table) for i, name in enumerate(names)}


def _precision(op: HloOp) -> dict[str, str]:
    words = [word.strip().upper() for word in _word(op, "operand_precision").strip("{}").split(",") if word.strip()]
    return {"precision_config": f"[{', '.join(_enum('precision', word) for word in words)}]"} if words else {}


def _dot(op: HloOp) -> dict[str, str]:
    names = {
        "lhs_batching_dimensions": "lhs_batch_dims",
        "rhs_batching_dimensions": "rhs_batch_dims",
        "lhs_contracting_dimensions": "lhs_contracting_dims",
        "rhs_contracting_dimensions": "rhs_contracting_dims",
    }
    shown = ", ".join(f"{key} = {list(_list(op, name))}" for key, name in names.items())
    found = {"dot_dimension_numbers": f"#stablehlo.dot<{shown}>"} | _precision(op)
    if (algorithm := _word(op, "algorithm")) and algorithm != "unset":
        found["algorithm"] = _algorithm(op, algorithm)
    return found


def _algorithm(op: HloOp, text: str) -> str:
    match = re.fullmatch(r"dot_(\w+?)_(\w+?)_(\w+?)(?:_x(\d+))?", text)
    if match is None or "any" in text:
        raise op.unsupported(f"no StableHLO for algorithm {text}")
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {match[1]}, rhs_precision_type = {match[2]}, "
        f"accumulation_type = {match[3]}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {match[4] or 1}, allow_imprecise_accumulation = false>"
    )


def _windows(window: Window, op: HloOp) -> dict[str, str]:
    """The window of a convolution, but for its size and padding."""
    dims = window.dims
    reversed_ = ", ".join("true" if dim.reversed else "false" for dim in dims)
    return {
        "window_strides": _array(dim.stride for dim in dims),
        "lhs_dilation": _array(dim.base_dilation for dim in dims),
        "rhs_dilation": _array(dim.window_dilation for dim in dims),
        "window_reversal": f"array<i1: {reversed_}>" if dims else "array<i1>",
        "dimension_numbers": _labels(op),
        "feature_group_count": f"{_number(op, 'feature_group_count', 1)} : i64",
        "batch_group_count": f"{_number(op, 'batch_group_count', 1)} : i64",
    } | _precision(op)


def _labels(op: HloOp) -> str:
    image, kernel, result = _word(op, "dim_labels").replace("->", "_").split("_")
    shown = [f"[{', '.join(labels)}]" for labels in (image, kernel, result)]
    return f"#stablehlo.conv<{shown[0]}x{shown[1]}->{shown[2]}>"


def _window(op: HloOp) -> Window:
    found = op.properties.get("window")
    return found.data if isinstance(found, WindowAttr) else Window()


def _padding(window: Window) -> str:
    return _numbers(np.asarray([(dim.low, dim.high) for dim in window.dims], np.int64).reshape(-1, 2))


def _convolution(op: HloOp) -> dict[str, str]:
    window = _window(op)
    return _windows(window, op) | {"padding": _padding(window)}


def _dynamic_conv(op: HloOp) -> dict[str, str]:
    return _windows(_window(op), op)


def _reduce_window(op: HloOp) -> dict[str, str]:
    window = _window(op)
    return {
        "window_dimensions": _array(dim.size for dim in window.dims),
        "window_strides": _array(dim.stride for dim in window.dims),
        "base_dilations": _array(dim.base_dilation for dim in window.dims),
        "window_dilations": _array(dim.window_dilation for dim in window.dims),
        "padding": _padding(window),
    }


def _select_and_scatter(op: HloOp) -> dict[str, str]:
    found = _reduce_window(op)
    return {key: found[key] for key in ("window_dimensions", "window_strides", "padding")}


def _struct(op: HloOp, kind: str, names: Sequence[str]) -> str:
    parts = [f"{name} = {list(_list(op, name))}" for name in names if _list(op, name)]
    parts.append(f"index_vector_dim = {_number(op, 'index_vector_dim')}")
    return f"#stablehlo.{kind}<{', '.join(parts)}>"


_GATHER = (
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
)
_SCATTER = (
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
)


def _dynamic_gather(op: HloOp) -> dict[str, str]:
    return {
        "dimension_numbers": _struct(op, "gather", _GATHER),
        "indices_are_sorted": _flag(op, "indices_are_sorted"),
    }


def _gather(op: HloOp) -> dict[str, str]:
    return _dynamic_gather(op) | {"slice_sizes": _array(_list(op, "slice_sizes"))}


def _scatter(op: HloOp) -> dict[str, str]:
    return {
        "scatter_dimension_numbers": _struct(op, "scatter", _SCATTER),
        "indices_are_sorted": _flag(op, "indices_are_sorted"),
        "unique_indices": _flag(op, "unique_indices"),
    }


def _sort(op: HloOp) -> dict[str, str]:
    return _dimension("dimension")(op) | {"is_stable": _flag(op, "is_stable")}


def _dynamic_broadcast(op: HloOp) -> dict[str, str]:
    found = {"broadcast_dimensions": _array(_list(op, "dimensions"))}
    for name in ("known_expanding", "known_nonexpanding"):
        if name in op.properties:
            found[f"{name}_dimensions"] = _array(_list(op, name))
    return found


def _generator(op: HloOp) -> dict[str, str]:
    words = {hlo: word for word, hlo in GENERATORS.items()}
    return {"rng_algorithm": _enum("rng_algorithm", words[_word(op, "algorithm")])}


def _fft(op: HloOp) -> dict[str, str]:
    return {"fft_type": _enum("fft_type", _word(op, "fft_type")), "fft_length": _array(_list(op, "fft_length"))}


def _triangular_solve(op: HloOp) -> dict[str, str]:
    found = {key: _flag(op, key) for key in ("left_side", "lower", "unit_diagonal")}
    return found | {"transpose_a": _enum("transpose", _word(op, "transpose_a") or "NO_TRANSPOSE")}


def _norm(op: HloOp) -> dict[str, str]:
    epsilon = float(_word(op, "epsilon"))
    return {"epsilon": f"{epsilon:.9e} : f32", "feature_index": f"{_number(op, 'feature_index')} : i64"}


def _top_k(op: HloOp) -> dict[str, str]:
    if not _number(op, "largest", 1):
        raise op.unsupported("no StableHLO for the smallest elements")
    return {"k": f"{_number(op, 'k')} : i64"}


def _target(target: str) -> dict[str, str]:
    return {"call_target_name": json.dumps(target), "api_version": "2 : i32"}


def _assertion(op: HloOp) -> dict[str, str]:
    message = _escaped(_word(op, "message"))
    return _target("shape_assertion") | {"error_message": message, "has_side_effect": "true"}


def _escaped(text: str) -> str:
    """A string of MLIR."""
    shown = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())
    return f'"{shown}"'


def _custom_call(op: HloOp) -> dict[str, str]:
    found = {
        "call_target_name": _word(op, "custom_call_target"),
        "api_version": f"{API_VERSIONS.index(word) + 1 if (word := _word(op, 'api_version')) else 1} : i32",
        "has_side_effect": _flag(op, "custom_call_has_side_effect"),
    }
    config = op.attributes.get("backend_config")
    if isinstance(config, StringAttr):
        found["backend_config"] = _escaped(str(json.loads(config.data)) if config.data.startswith('"') else config.data)
    for key, value in op.attributes.items():
        if isinstance(value, StringAttr) and (
            _is_kept_attribute(key) or key in (*_LAYOUTS, "indices_of_shape_operands")
        ):
            found[key] = value.data
    return found


def _pairs(op: HloOp, key: str) -> str:
    """Lists of devices, all as long as the longest, with -1 at the end of shorter ones."""
    found = op.properties.get(key)
    lists = [integers(row) for row in found] if isa(found, ArrayAttr[DenseArrayBase]) else []
    if isinstance(found, StringAttr):
        raise op.unsupported(f"no StableHLO for {key}={found.data}")
    longest = max(map(len, lists), default=0)
    padded = [[*row, *[-1] * (longest - len(row))] for row in lists]
    return _numbers(np.asarray(padded, np.int64).reshape(len(lists), longest))


def _devices(*along: str) -> Attributes:
    """Groups of devices, their channel, and the attributes that are the only one of `dimensions`."""

    def found(op: HloOp) -> dict[str, str]:
        attributes = {"replica_groups": _pairs(op, "replica_groups")} | _channel(op)
        if _number(op, "use_global_device_ids"):
            attributes["use_global_device_ids"] = "unit"
        return attributes | {key: f"{_list(op, 'dimensions')[0]} : i64" for key in along}

    return found


def _channel(op: HloOp) -> dict[str, str]:
    handle = _number(op, "channel_id")
    return {"channel_handle": f"#stablehlo.channel_handle<handle = {handle}, type = 1>"} if handle else {}


def _all_to_all(op: HloOp) -> dict[str, str]:
    groups = op.properties.get("replica_groups")
    count = len(integers(groups.data[0])) if isa(groups, ArrayAttr[DenseArrayBase]) and groups.data else 1
    return _devices("split_dimension", "concat_dimension")(op) | {"split_count": f"{count} : i64"}


Row: TypeAlias = tuple[str, Attributes, tuple[str, ...]]


def _row(name: str, attributes: Attributes = _none, *regions: str) -> Row:
    """An op's name, its attributes, and the properties that name the computations which are its regions."""
    return f"stablehlo.{name}", attributes, regions


PRINTED: dict[str, Row] = {
    **{opcode: _row(name) for name, opcode in ELEMENTWISE.items()},
    **{name: (f"chlo.{name}", _none, ()) for name in CHLO_OPCODES},
    "clamp": _row("clamp"),
    "compare": _row("compare", _compare),
    "reduce-precision": _row(
        "reduce_precision",
        lambda op: {key: f"{_number(op, key)} : i32" for key in ("exponent_bits", "mantissa_bits")},
    ),
    "constant": _row("constant", _constant),
    "iota": _row("iota", _numbers_of(iota_dimension="iota_dimension")),
    "broadcast": _row("broadcast_in_dim", _lists(broadcast_dimensions="dimensions")),
    "reshape": _row("reshape"),
    "transpose": _row("transpose", _lists(permutation="dimensions")),
    "reverse": _row("reverse", _lists(dimensions="dimensions")),
    "concatenate": _row("concatenate", _dimension("dimension")),
    "slice": _row("slice", lambda op: _columns(op, "slice", "start_indices", "limit_indices", "strides")),
    "pad": _row("pad", lambda op: _columns(op, "padding", "edge_padding_low", "edge_padding_high", "interior_padding")),
    "dynamic-slice": _row("dynamic_slice", _lists(slice_sizes="dynamic_slice_sizes")),
    "dynamic-update-slice": _row("dynamic_update_slice"),
    "dot": _row("dot_general", _dot),
    "convolution": _row("convolution", _convolution),
    "gather": _row("gather", _gather),
    "scatter": _row("scatter", _scatter, "to_apply"),
    "reduce": _row("reduce", _lists(dimensions="dimensions"), "to_apply"),
    "reduce-window": _row("reduce_window", _reduce_window, "to_apply"),
    "select-and-scatter": _row("select_and_scatter", _select_and_scatter, "select", "scatter"),
    "sort": _row("sort", _sort, "to_apply"),
    "map": _row("map", _lists(dimensions="dimensions"), "to_apply"),
    "opt-barrier": _row("optimization_barrier"),
    "after-all": _row("after_all"),
    "partition-id": _row("partition_id"),
    "replica-id": _row("replica_id"),
    "all-reduce": _row("all_reduce", _devices(), "to_apply"),
    "all-gather": _row("all_gather", _devices("all_gather_dim")),
    "reduce-scatter": _row("reduce_scatter", _devices("scatter_dimension"), "to_apply"),
    "all-to-all": _row("all_to_all", _all_to_all),
    "collective-broadcast": _row("collective_broadcast", _devices()),
    "collective-permute": _row(
        "collective_permute", lambda op: {"source_target_pairs": _pairs(op, "source_target_pairs")} | _channel(op)
    ),
    "rng-bit-generator": _row("rng_bit_generator", _generator),
    "fft": _row("fft", _fft),
    "cholesky": _row("cholesky", lambda op: {"lower": _flag(op, "lower")}),
    "triangular-solve": _row("triangular_solve", _triangular_solve),
    "batch-norm-training": _row("batch_norm_training", _norm),
    "batch-norm-inference": _row("batch_norm_inference", _norm),
    "batch-norm-grad": _row("batch_norm_grad", _norm),
    "topk": ("chlo.top_k", _top_k, ()),
    "custom-call": _row("custom_call", _custom_call),
    "get-dimension-size": _row("get_dimension_size", _dimension("dimension")),
    "set-dimension-size": _row("set_dimension_size", _dimension("dimension")),
    "dynamic-broadcast-in-dim": _row("dynamic_broadcast_in_dim", _dynamic_broadcast),
    "dynamic-reshape": _row("dynamic_reshape"),
    "dynamic-iota": _row("dynamic_iota", _numbers_of(iota_dimension="iota_dimension")),
    "dynamic-pad": _row("dynamic_pad"),
    "real-dynamic-slice": _row("real_dynamic_slice"),
    "dynamic-gather": _row("dynamic_gather", _dynamic_gather),
    "dynamic-conv": _row("dynamic_conv", _dynamic_conv),
    "dynamic-reduce-window": _row("custom_call", lambda op: _target("stablehlo.dynamic_reduce_window")),
    "dynamic-top-k": _row("custom_call", lambda op: _target("stablehlo.dynamic_top_k")),
    "dynamic-rng-bit-generator": _row(
        "custom_call", lambda op: _target("stablehlo.dynamic_rng_bit_generator") | _generator(op)
    ),
    "shape-assertion": _row("custom_call", _assertion),
}
"""How each opcode is printed."""


# ---------------------------------------------------------------------------------------------------------------- literals


def literal_text(array: Array, element: DType) -> str:
    """`dense<...> : tensor<...>` with all bits of the array."""
    ir_type = stablehlo_type(array_type(element.ir_type, array.shape))
    if not array.size:
        return f"dense<> : {ir_type}"
    flat = array.reshape(-1)
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    is_splat = bool((raw == raw[0]).all())
    if is_splat:
        return f"dense<{_scalar_text(flat[0], element)}> : {ir_type}"
    if flat.size <= _FEW or element.kind is Kind.PRED or element.bits < 8:
        return f"dense<{_nested_text(array, element)}> : {ir_type}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {ir_type}'


def _nested_text(array: Array, element: DType) -> str:
    if not array.ndim:
        return _scalar_text(array[()], element)
    return f"[{', '.join(_nested_text(part, element) for part in array)}]"


def _scalar_text(value: Any, element: DType) -> str:
    match element.kind:
        case Kind.PRED:
            return "true" if value else "false"
        case Kind.COMPLEX:
            return f"({_scalar_text(value.real, element.part)}, {_scalar_text(value.imag, element.part)})"
        case Kind.FLOAT:
            if np.isfinite(np.float64(value)):
                return f"{float(value):.{17 if element.bits == 64 else 9}e}"
            bits = np.asarray(value, element.numpy).view(f"u{element.numpy.itemsize}")
            return f"0x{int(bits):0{element.numpy.itemsize * 2}X}"
        case _:
            return str(int(value))
