"""Sizes of a program, and the guards that are checked before a run computes anything.

    sizes = sizes_of(module)
    print(sizes.report())

        symbols
          b     argument 0 (p0) 'x': axis 0
          s     argument 0 (p0) 'x': axis 1
        checked before a run
          ...

The walk is done twice: once with a symbol for each open axis of the arguments, which determines the symbols' names and equal axes,
and once with the named symbols; once if no axis is open. Where the entry's assertions name all sizes, as JAX's do, the first walk ends
with the last of them.
Guards, in order: number, rank and type of the arguments; JAX's assertions, in its words; the arguments' axes against the symbols;
requirements of ops on sizes; the range of sizes that the program computes in 32 bits. (JAX's products wrap around there, and a wrapped
size may look valid.)
Source: docs/reference/4 2.1, 3.1, 7.

`specialize` makes the program at fixed sizes: the same ops, with the numbers that the symbols' values give in their types.

    %y = add %x, %x : tensor<?x?xf32>        b = 2, s = 5        %y = add %x, %x : tensor<2x5xf32>

Sizes that depend on data stay unknown, and so do those of a computation that is called with several sizes. Ops that take sizes as
operands keep them: they compute the same values. jax.export's refinement of a module does the same to its text.

`spec_of` and others give the arrays of a program as plain values: sizes are numbers, the text of expressions in its symbols, or None where
only data decide: f32[b,s,64].

Names of symbols are from JAX's text if possible, else d0, d1 ...

    p0: f32[?,?]    'b' = {0} from specification '2*b' for dimension args[0].shape[0] (= {1})       axis 0 is 2*b
                    the argument "s" of a function is get_dimension_size(p0, 1) - 1                  axis 1 is s + 1

The text gives names for some sizes: `size == name`. If this equation can be solved for one axis's symbol, the axis is expressed by the name
from then on. `SizeNames` names the size of every axis, including sizes that depend on data: `b*s`, `u0`.
Source: behaviour of jax.export 0.10.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr, TupleType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.algebra.axes import Axes
from xla_emitters.algebra.expression import FLOORDIV
from xla_emitters.algebra.facts import AT_LEAST, AT_MOST, EQUAL, Facts, Relation
from xla_emitters.algebra.guards import Guard, needed
from xla_emitters.algebra.size import Size
from xla_emitters.algebra.solve import DeclaredShape, SymbolPlan, plan
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.types import (
    array_type,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    leaf_types,
    size_bounds,
    tuple_type,
    type_text,
)
from xla_emitters.dynamic.sizes.numbers import is_data
from xla_emitters.dynamic.sizes.size_walk import Assertion, Walk, last_assertion
from xla_emitters.dynamic.sizes.walked_array import AxisKey, Leaf, Number, Value, leaves
from xla_emitters.errors import DataError, VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.program.step_values import ArraySpec
from xla_emitters.program.step_values import Size as Plain

_OBTAINED = re.compile(r"'([A-Za-z_]\w*)' = \{(\d+)\} from specification")


def names_in(assertions: Iterable[Assertion]) -> list[tuple[str, Size]]:
    """(name, size) of the dimension variables in the messages of assertions."""
    found: dict[str, Size] = {}
    for assertion in assertions:
        for name, number in _OBTAINED.findall(assertion.op.message.data):
            shown = assertion.shown
            if int(number) < len(shown) and (size := shown[int(number)]) is not None:
                found.setdefault(name, size)
    return list(found.items())


def renaming(axes: Sequence[Size], named: Iterable[tuple[str, Size]], facts: Facts) -> dict[str, Size]:
    """The symbols of axes in terms of the final names.

    axes    the symbols of the open axes, in argument order
    named   (name, size) pairs from the text
    facts   known facts about the axes
    """
    found: dict[str, Size] = {}
    names = set[str]()
    for name, size in named:
        solved = _solved(facts.simplify(size).substitute(found), name, {str(axis) for axis in axes} - set(found))
        if solved is not None and name not in names:
            names.add(name)
            found[solved[0]] = solved[1]
    number = 0
    for axis in axes:
        simple = facts.simplify(axis)
        for symbol in sorted(simple.symbols - set(found)):
            while f"d{number}" in names:
                number += 1
            found[symbol] = Size.symbol(f"d{number}")
            number += 1
    return found


def _solved(size: Size, name: str, unknown: set[str]) -> tuple[str, Size] | None:
    """(symbol, its value) if `size == name` can be solved for one of the unknown symbols as k*name + rest; else None."""
    try:
        value = Size.symbol(name)
    except VerifyError:
        return None
    if size.kind is FLOORDIV:
        size, divisor = size.operands  # exact: the text asserts that the remainder is 0
        value = value * divisor
    symbols = size.symbols & unknown
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    rest = size - Size.symbol(symbol)
    return None if symbol in rest.symbols else (symbol, value - rest)


LARGEST = 2**31 - 1


class ArgumentFacts(NamedTuple):
    """The facts about an argument that guards need: its HLO type ("f32") and its shape."""

    element: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ProgramGuards:
    """The checks before a run computes anything.

    types       HLO's element types of the parameters
    parameters  their shapes in terms of the symbols
    own         the symbol of each open axis, from the arguments' shapes alone
    said        over `own`: JAX's assertions, and the bounds of the arguments' types
    plan        how the symbols are computed, and the checks of the arguments' other axes
    computed    sizes that must be in the range of the program's 32-bit integers
    """

    types: tuple[str, ...]
    own: Mapping[str, tuple[int, int]]
    said: tuple[Guard, ...]
    plan: SymbolPlan
    computed: tuple[Guard, ...]

    @property
    def parameters(self) -> tuple[DeclaredShape, ...]:
        return self.plan.parameters

    def check(self, arguments: Sequence[ArgumentFacts]) -> dict[str, int]:
        """The values of the symbols.

        raises DataError, which names the argument or has the assertion's message
        """
        shapes = [argument.shape for argument in arguments]
        self.plan.check_ranks(shapes)
        for number, (argument, wanted) in enumerate(zip(arguments, self.types, strict=True)):
            if argument.element != wanted:
                label = _label(number, self.parameters[number].name)
                raise DataError(f"{label}: type {argument.element}, expected {wanted}", stage="shapes")
        own = {name: shapes[argument][axis] for name, (argument, axis) in self.own.items()}
        for guard in self.said:
            guard.check(own)
        values = self.plan.solve(shapes)
        for guard in self.computed:
            guard.check(values)
        return values

    def lines(self) -> Iterator[str]:
        """A line per check."""
        for number, (element, parameter) in enumerate(zip(self.types, self.parameters, strict=True)):
            shape = ",".join(map(str, parameter.shape))
            yield f"{_label(number, parameter.name)} is {element}[{shape}]"
        yield from (f"{guard} (said by the program)" for guard in self.said)
        for fact in self.plan.others:
            yield f"{fact} (wanted by {fact.source})"
        yield from (str(guard) for guard in self.computed)


@dataclass(frozen=True)
class Sizes:
    """The sizes of every value of a module, in terms of its symbols."""

    walk: Walk
    guards: ProgramGuards
    assertions: tuple[Assertion, ...]

    @property
    def facts(self) -> Facts:
        return self.walk.facts

    def of(self, value: SSAValue) -> tuple[Size | None, ...]:
        """The sizes of an array; None for one that depends on data, or that differs between calls."""
        found = [self._shape(leaf) for leaf in self._contexts(value)]
        return tuple(
            sizes[0] if all(size == sizes[0] for size in sizes) else None for sizes in zip(*found, strict=True)
        )

    def numbers(self, value: SSAValue) -> tuple[Size | None, ...] | None:
        """The elements of a small integer array, None for unknown ones; None instead of the tuple if they are not tracked."""
        contexts = self._contexts(value)
        first = contexts[0].elements if contexts else None
        if first is None or any(leaf.elements != first for leaf in contexts):
            return None
        return tuple(self._number(number) for number in first)

    def same(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two arrays are known to have the same shape, in all of their contexts."""
        first, second = self._contexts(a), self._contexts(b)
        return (
            len(first) == len(second) == 1
            and first[0].rank == second[0].rank
            and all(self.walk.axes.same(x, y) is True for x, y in zip(first[0].axes, second[0].axes, strict=True))
        )

    def is_proven(self, op: HloOp) -> bool:
        """Whether the guards imply that `op` cannot fail because of sizes: those that must be equal are, and none is negative."""
        contexts = self.walk.values.get(op.result, [])
        if not contexts or op in self.walk.unproved:
            return False
        known = [self.walk.size(key) for value in contexts for leaf in leaves(value) for key in leaf.axes]
        if not all(size is not None and self.facts.at_least(size, 0) for size in known):
            return False
        if op.opcode == "dynamic-broadcast-in-dim":
            sizes, wanted = self.of(op.operands[0]), self.of(op.result)
            dims = integers(op.properties["dimensions"])
            return all(self._fits(size, wanted[dim]) for size, dim in zip(sizes, dims, strict=True))
        return True

    def _fits(self, size: Size | None, wanted: Size | None) -> bool:
        """Whether an axis keeps its size or has size 1."""
        return size is not None and wanted is not None and (size.value == 1 or self.facts.equal(size, wanted) is True)

    @property
    def unresolved(self) -> list[tuple[SSAValue, int]]:
        """(value, axis) for every array with an unknown size in some context."""
        return [
            (value, axis)
            for value, contexts in self.walk.values.items()
            for axis in sorted(
                {
                    key[1]
                    for found in contexts
                    for leaf in leaves(found)
                    for key in leaf.axes
                    if self.walk.size(key) is None
                }
            )
        ]

    def report(self) -> str:
        """The symbols, their sources, the checks of a run, and the unknown sizes."""
        lines = ["symbols"]
        for solved in self.guards.plan.solved:
            name = self.guards.parameters[solved.axis.argument].name
            wanted = self.guards.parameters[solved.axis.argument].shape[solved.axis.axis]
            equation = "" if wanted == Size.symbol(solved.symbol) else f", which is {wanted}"
            least = self.facts.bounds(Size.symbol(solved.symbol)).to_text()
            lines.append(
                f"  {solved.symbol:6}{_label(solved.axis.argument, name)}, axis {solved.axis.axis}{equation}; in {least}"
            )
        lines += ["checked before a run", *(f"  {line}" for line in self.guards.lines())]
        dims = [key for found in self.walk.values.values() for v in found for leaf in leaves(v) for key in leaf.axes]
        open_ones = self.unresolved
        lines.append(f"{len(self.walk.values)} values, {len(dims)} dimensions, {len(open_ones)} that depend on data")
        for value, axis in open_ones:
            lines.append(f"  %{_name(value)}, axis {axis}")
        return "\n".join(lines)

    def _contexts(self, value: SSAValue) -> list[Leaf]:
        return [found for found in self.walk.values.get(value, ()) if isinstance(found, Leaf)]

    def _shape(self, leaf: Leaf) -> list[Size | None]:
        return [self.walk.size(key) for key in leaf.axes]

    def _number(self, number: Number) -> Size | None:
        if isinstance(number, bool):
            return Size.constant(int(number))
        return self.facts.simplify(number) if isinstance(number, Size) and not is_data(number) else None


def sizes_of(module: ModuleOp) -> Sizes:
    """The sizes of every value that a run of the module's entry computes.

    raises VerifyError at an op whose operands' sizes cannot be equal; Unsupported if a symbol does not follow from any argument
    """
    (entry,) = (op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)
    parameters = entry.parameters
    own = {
        f"p{number}_{axis}": (number, axis)
        for number, parameter in enumerate(parameters)
        if is_array(parameter.result.type)
        for axis, size in enumerate(dims_of(parameter.result))
        if size < 0
    }
    labels = [_label(number, _jax_name(parameter)) for number, parameter in enumerate(parameters)]
    last = last_assertion(entry) if own else None
    walks = _Walks(entry, own, labels, last)
    if last is not None and not walks.are_named_by_assertions:
        walks = _Walks(entry, own, labels, None)
    first, second, shapes, axes = walks.first, walks.second, walks.shapes, walks.axes
    types = tuple(
        element_of(parameter.result).name if is_array(parameter.result.type) else type_text(parameter.result.type)
        for parameter in parameters
    )
    planned = plan(
        [DeclaredShape(shape, _jax_name(op)) for shape, op in zip(shapes, parameters, strict=True)], second.facts
    )
    own_shapes = [_shape_of(parameter, number) or () for number, parameter in enumerate(parameters)]
    bounded = [
        Guard(
            AT_MOST,
            size,
            Size.constant(bound),
            f"{labels[number]}: axis {axis} is {{0}}, its bound is {bound}",
            (size,),
        )
        for number, axis, size, bound in _bounds(parameters, own_shapes)
    ]
    asserted = (*_asserted(first.assertions), *bounded)
    guards = ProgramGuards(types, own, asserted, planned, _computed(second, axes))
    return Sizes(second, guards, tuple(first.assertions))


class _Walks:
    """The walk that names the sizes, up to the op `last`, and the walk of all ops with these names."""

    def __init__(
        self, entry: ComputationOp, own: Mapping[str, object], labels: Sequence[str], last: HloOp | None
    ) -> None:
        parameters = entry.parameters
        own_shapes = [_shape_of(parameter, number) for number, parameter in enumerate(parameters)]
        self.first = Walk(Axes(Facts.of_symbols(own, 0, "a size")), until=last)
        self.first.entry(entry, own_shapes, labels)
        said, facts = names_in(self.first.assertions), self.first.facts
        self._said = {name for name, _ in said}
        names = renaming([Size.symbol(name) for name in own], [*said, *self.first.named], facts)
        self.shapes = [tuple(facts.simplify(size).substitute(names) for size in shape or ()) for shape in own_shapes]
        self.axes = [size for shape in self.shapes for size in shape if size.value is None]
        known = _sizes_at_least_zero(self.axes)
        for _, _, size, bound in _bounds(parameters, self.shapes):
            known = known.with_at_most(size, bound, "the bound in an argument's type")
        self.second = self.first
        if own:  # without open axes the second walk would repeat the first
            self.second = Walk(Axes(known))
            self.second.entry(entry, self.shapes, labels)

    @property
    def are_named_by_assertions(self) -> bool:
        """Whether the assertions name all sizes, and no op makes two of them equal, or one a number."""
        symbols = {symbol for size in self.axes for symbol in size.symbols}
        facts = self.second.facts
        return symbols <= self._said and all(facts.simplify(Size.symbol(name)) == Size.symbol(name) for name in symbols)


def _shape_of(parameter: ParameterOp, number: int) -> tuple[Size, ...] | None:
    if not is_array(parameter.result.type):
        return None
    return tuple(
        Size.symbol(f"p{number}_{axis}") if size < 0 else Size.constant(size)
        for axis, size in enumerate(dims_of(parameter.result))
    )


def _sizes_at_least_zero(axes: Sequence[Size]) -> Facts:
    facts = Facts()
    for size in axes:
        facts = facts.with_at_least(size, 0, "a size")
    return facts


def _asserted(assertions: Sequence[Assertion]) -> Iterator[Guard]:
    """The assertions that compare sizes, each with its message. An assertion that cannot hold fails every run."""
    for assertion in assertions:
        message = assertion.op.message.data
        shown = tuple(Size.constant(0) if size is None else size for size in assertion.shown)
        source = f"%{assertion.op.instruction_name.data} = shape-assertion"
        if assertion.condition is False:
            yield Guard(EQUAL, Size.constant(0), Size.constant(1), message, shown, source)
        if isinstance(assertion.condition, frozenset) and None not in assertion.shown:
            for comparison in sorted(assertion.condition, key=str):
                if (statement := comparison.statement) is not None:
                    yield Guard(*statement, message, shown, source)


def _bounds(
    parameters: Sequence[ParameterOp], shapes: Sequence[tuple[Size, ...]]
) -> Iterator[tuple[int, int, Size, int]]:
    """(argument, axis, size, bound) of each open axis whose type has a bound: `tensor<?xf32, #stablehlo.bounds<8>>`."""
    for number, (parameter, shape) in enumerate(zip(parameters, shapes, strict=True)):
        bounds = size_bounds(parameter.result.type) if is_array(parameter.result.type) else ()
        for axis, (size, bound) in enumerate(zip(shape, bounds, strict=True)):
            if size.value is None and bound >= 0:
                yield number, axis, size, bound


def _computed(walk: Walk, axes: Sequence[Size]) -> tuple[Guard, ...]:
    """Guards: sizes in shape operands are nonnegative and fit into 32 bits, like those of arguments; slices are inside their arrays."""
    facts = walk.facts
    for size in axes:
        facts = facts.with_at_most(size, LARGEST, "the size of an argument")
    guards = [
        Guard(AT_MOST, size, Size.constant(LARGEST), _too_large(op, size), (size,), _name(op.result))
        for size, op in walk.computed.items()
    ]
    zero = Size.constant(0)
    guards += [
        _at_least(size, zero, op, f"the size {size} is {{0}}, which is negative") for size, op in walk.computed.items()
    ]
    for start, limit, size, op in walk.ranges:
        numbers = " is {0} to {1}," if start.value is None or limit.value is None else " is"
        said = f"the range from {start} to {limit}{numbers} not inside an axis of size {{2}}"
        ordered = ((start, zero), (limit, start), (size, limit))
        guards += [_at_least(*pair, op, said, (start, limit, size)) for pair in ordered]
    for (own, wanted), op in walk.repeated.items():
        said = f"an axis of size {own} is broadcast to {wanted}: {{0}} to {{1}}"
        condition = (own - 1) * (own - wanted)
        guards.append(_relation(EQUAL, condition, zero, op, said, (own, wanted)))
    return needed(guards, facts)[0]


def _at_least(left: Size, right: Size, op: HloOp, said: str, shown: tuple[Size, ...] = ()) -> Guard:
    """The guard `left >= right`."""
    return _relation(AT_LEAST, left, right, op, said, shown or (left,))


def _relation(relation: Relation, left: Size, right: Size, op: HloOp, said: str, shown: tuple[Size, ...]) -> Guard:
    """The guard with this message, which includes the symbols' values."""
    symbols = sorted({symbol for size in shown for symbol in size.symbols})
    where = ", ".join(f"{symbol} is {{{len(shown) + number}}}" for number, symbol in enumerate(symbols))
    message = f"%{_name(op.result)} = {op.opcode}: {said}" + (f": {where}" if where else "")
    return Guard(relation, left, right, message, (*shown, *map(Size.symbol, symbols)), _name(op.result))


def _too_large(op: HloOp, size: Size) -> str:
    return f"%{_name(op.result)} = {op.opcode}: the size {size} is {{0}}, which 32 bits do not hold"


def _name(value: SSAValue) -> str:
    owner = value.owner
    return owner.instruction_name.data if isinstance(owner, HloOp) else str(value)


def _jax_name(parameter: ParameterOp) -> str:
    name = parameter.attributes.get("jax.arg_name")
    return name.data if isinstance(name, StringAttr) else ""


def _label(number: int, name: str) -> str:
    return f"argument {number} (p{number})" + (f" '{name}'" if name else "")


class SizeNames:
    """Names of the sizes of a program's values."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        taken = {solved.symbol for solved in sizes.guards.plan.solved}
        self._fresh = (name for name in (f"u{number}" for number in count()) if name not in taken)
        self._named = list[tuple[AxisKey, str]]()

    def of(self, value: SSAValue) -> list[tuple[str | None, ...]]:
        """The sizes of each array of a value; an empty list for a value that was not walked."""
        contexts = [list(leaves(found)) for found in self.sizes.walk.values.get(value, ())]
        if not contexts:
            return []
        arrays = list[tuple[str | None, ...]]()
        for same in zip(*contexts, strict=True):
            texts = [self._texts(leaf, is_alone=len(contexts) == 1) for leaf in same]
            arrays.append(tuple(row[0] if len(set(row)) == 1 else None for row in zip(*texts, strict=True)))
        return arrays

    def _texts(self, leaf: Leaf, *, is_alone: bool) -> list[str | None]:
        return [self._text(key, is_alone=is_alone) for key in leaf.axes]

    def _text(self, key: AxisKey, *, is_alone: bool) -> str | None:
        known = self.sizes.walk.size(key)
        if known is not None:
            return str(known)
        axes = self.sizes.walk.axes
        if not is_alone or any(axes.same(key, other) for other in self.sizes.walk.changing):
            return None
        for other, name in self._named:
            if axes.same(key, other):
                return name
        self._named.append((key, next(self._fresh)))
        return self._named[-1][1]


def specialize(module: ModuleOp, values: Mapping[str, int], sizes: Sizes | None = None) -> ModuleOp:
    """A copy of `module` whose types contain the sizes for these values of the symbols.

    sizes   of `module`; None: computed here
    raises  DataError for a symbol without a value, and for an undefined size
    """
    sizes = sizes or sizes_of(module)
    copies: dict[SSAValue, SSAValue] = {}
    result = module.clone(copies)
    for value, contexts in sizes.walk.values.items():
        if not has_dynamic_dims(value.type):
            continue
        types = {_type_at(value.type, found, sizes, values) for found in contexts}
        if len(types) == 1:
            Rewriter.replace_value_with_new_type(copies[value], types.pop())
    return result


def _type_at(ir_type: Attribute, found: Value, sizes: Sizes, values: Mapping[str, int]) -> Attribute:
    if isinstance(ir_type, TupleType) and isinstance(found, tuple):
        parts = zip(ir_type.types, found, strict=True)
        return tuple_type([_type_at(part, value, sizes, values) for part, value in parts])
    if not is_array(ir_type) or not isinstance(found, Leaf):
        return ir_type
    known = [sizes.walk.size(key) for key in found.axes]
    return array_type(
        as_array(ir_type).element_type,
        [_extent(size, dim, values) for size, dim in zip(known, dims_of(ir_type), strict=True)],
    )


def _extent(size: Size | None, dim: int, values: Mapping[str, int]) -> int:
    return dim if dim >= 0 or size is None else size.evaluate(values)


def plain_size(size: Size | int | None) -> Plain:
    """A number, the text of an expression, or None."""
    value = size.value if isinstance(size, Size) else size
    return str(size) if value is None and size is not None else value


def spec_of(value: SSAValue, sizes: Sizes) -> ArraySpec:
    """The array that a value is."""
    dims = dims_of(value)
    known = sizes.of(value) or (None,) * len(dims)
    shape = [dim if dim >= 0 else plain_size(size) for dim, size in zip(dims, known, strict=True)]
    return ArraySpec.sized(element_of(value).name, shape)


def parameter_specs(sizes: Sizes) -> Iterator[ArraySpec]:
    """The program's parameters."""
    for element, parameter in zip(sizes.guards.types, sizes.guards.parameters, strict=True):
        yield ArraySpec.sized(element, list(map(plain_size, parameter.shape)))


def arguments_at(sizes: Sizes, values: Mapping[str, int]) -> list[ArraySpec]:
    """The parameters at these sizes of the symbols. raises DataError where the program refuses them"""
    guards = sizes.guards
    shapes = [[size.evaluate(values) for size in parameter.shape] for parameter in guards.parameters]
    specs = [ArraySpec.sized(element, shape) for element, shape in zip(guards.types, shapes, strict=True)]
    guards.check([ArgumentFacts(spec.dtype, spec.shape) for spec in specs])
    return specs


def result_specs(module: ModuleOp, sizes: Sizes) -> Iterator[ArraySpec]:
    """The program's results."""
    root = entry_of(module).root
    for value in root.owner.operands if isinstance(root.owner, TupleOp) else [root]:
        if is_array(value.type):
            yield spec_of(value, sizes)
        else:
            for leaf in filter(is_array, leaf_types(value.type)):
                shape = [dim if dim >= 0 else None for dim in as_array(leaf).get_shape()]
                yield ArraySpec.sized(element_of(leaf).name, shape)
