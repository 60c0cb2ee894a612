"""A reduction's partial results in the code of a loop: initial value, combination of two, conversion to the final result.

    begins with   -0.0             the initial value    anything, 0     an identity; a value that may count twice; or neither
    element       addf %p, %x      maximumf %p, %x      f ? body(%p, %x) : %x, 1         with a flag: whether there was an element
    two of them   addf %p, %q      maximumf %p, %q      body if both have elements, else the one that has some
    in the end    addf %init, %p   %p                   f ? body(%init, %p) : %init

The initial value counts once for any number of threads (`graph/reduction_starts` has the rules), and without any element it is
the result. The identity of float addition is -0.0: -0.0 + x is x for every x, while 0.0 + -0.0 is 0.0.

Sums and products of floats with fewer than 32 bits are carried in f32 and rounded once, at the end, and on a CPU extrema too, which
LLVM then computes in vectors; a body that does anything else with its operands gets them in their own type. Several arrays are reduced
together: partial results have one value for each.
Source: docs/reference/4 3.6, traps 1 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ComplexType, FloatAttr, i8
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.convert import constant, emit_convert, select_by_flag
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dialects.mlir import arith, complex
from xla_emitters.dtypes import DType, Kind, dtype
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.buffer_numbers import BufferNumbers
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.graph.reduction_starts import combining_opcodes, identities_needed

Place: TypeAlias = tuple[SSAValue, SSAValue]
"""A row and a column."""
F32 = dtype("f32")
Combine: TypeAlias = type[arith.FloatingPointLikeBinaryOperation]
WIDENED: Mapping[str, Combine] = {"add": arith.AddfOp, "multiply": arith.MulfOp}
"""Opcodes whose partial results of narrow floats are carried in f32, and the op that combines two of them."""
WIDENED_ON_CPU: Mapping[str, Combine] = {**WIDENED, "maximum": arith.MaximumfOp, "minimum": arith.MinimumfOp}
"""The same for a CPU, which has no instruction for the extremum of two halves."""


P = ParamSpec("P")
T = TypeVar("T")


def _located(
    emit: Callable[Concatenate[Reducer, KernelCode, P], T],
) -> Callable[Concatenate[Reducer, KernelCode, P], T]:
    """Gives new ops the location of the reduction."""

    @wraps(emit)
    def wrapper(reducer: Reducer, code: KernelCode, *given: P.args, **named: P.kwargs) -> T:
        with code.located(reducer.op.location):
            return emit(reducer, code, *given, **named)

    return wrapper


@dataclass(frozen=True, eq=False)
class Reducer:
    """See the file's head.

    op       an `lmhlo.reduce`: arrays, initial values -> results
    hero     the same on arrays
    body     its computation
    by_row   whether rows of a matrix are reduced, else columns
    is_cpu   whether the code is for a CPU
    """

    op: BufferOp
    hero: ReduceOp
    body: ComputationOp
    by_row: bool
    is_cpu: bool

    @staticmethod
    def of(op: BufferOp, *, by_row: bool, is_cpu: bool = False) -> Reducer:
        hero = op.as_hlo()
        assert isinstance(hero, ReduceOp)
        return Reducer(op, hero, find_computation(op, hero.to_apply), by_row, is_cpu)

    @property
    def arrays(self) -> Sequence[SSAValue]:
        return self.op.inputs[: len(self.op.inputs) // 2]

    @property
    def inits(self) -> Sequence[SSAValue]:
        return self.op.inputs[len(self.op.inputs) // 2 :]

    # ------------------------------------------------------------------------------------------------ the matrix

    @property
    def is_vector(self) -> bool:
        """Whether its arrays have one dimension: a matrix of one row, or of one column, with scalar results."""
        return tensor_of(self.arrays[0].type).get_num_dims() == 1

    def shape(self, numbers: BufferNumbers) -> tuple[Number, Number]:
        """Rows and columns of the matrix."""
        sizes = numbers.sizes(self.arrays[0])
        if not self.is_vector:
            rows, columns = sizes
            return rows, columns
        return (1, sizes[0]) if self.by_row else (sizes[0], 1)

    @_located
    def loaded(self, code: KernelCode, place: Place) -> list[SSAValue]:
        """The element of each array at a row and a column."""
        indices = [place[1] if self.by_row else place[0]] if self.is_vector else list(place)
        return [code.load(array, indices) for array in self.arrays]

    def result_indices(self, kept: SSAValue) -> list[SSAValue]:
        """The indices of the results of a row, or of a column."""
        return [] if self.is_vector else [kept]

    # ------------------------------------------------------------------------------------------------ types

    @cached_property
    def elements(self) -> tuple[DType, ...]:
        """The type of each array's elements."""
        return tuple(element_of(init) for init in self.hero.inits)

    @cached_property
    def opcodes(self) -> tuple[str | None, ...]:
        """For each result, the opcode of the combination if its body is that one op, else None."""
        return combining_opcodes(self.body)

    @cached_property
    def starting(self) -> tuple[int | None, ...] | str | None:
        return identities_needed(self.hero)

    @property
    def is_flagged(self) -> bool:
        """Whether a partial result has a flag as its last value: i8, 1 from the first element on."""
        return isinstance(self.starting, str)

    @cached_property
    def carried(self) -> tuple[DType, ...]:
        """The type in which each value of a partial result is carried, without the flag."""
        pairs = zip(self.elements, self.opcodes, strict=True)
        return tuple(F32 if opcode in self._widened and _is_narrow(element) else element for element, opcode in pairs)

    @property
    def _widened(self) -> Mapping[str, Combine]:
        return WIDENED_ON_CPU if self.is_cpu else WIDENED

    @cached_property
    def types(self) -> tuple[Attribute, ...]:
        """The types of a partial result's values, the flag's too."""
        return (*(part.storage_type for part in self.carried), *((i8,) if self.is_flagged else ()))

    # ------------------------------------------------------------------------------------------------ partial results

    @_located
    def starts(self, code: KernelCode) -> list[SSAValue]:
        """The partial result without elements."""
        match self.starting:
            case None:
                return self._initial(code)
            case str():
                return [*self._initial(code), constant(code, 0, i8)]
            case identities:
                return [
                    self._initial_value(code, number) if identity is None else self._identity(code, number, identity)
                    for number, identity in enumerate(identities)
                ]

    @_located
    def with_element(self, code: KernelCode, so_far: Sequence[SSAValue], loaded: Sequence[SSAValue]) -> list[SSAValue]:
        """A partial result after one more element of each array, as it was loaded."""
        pairs = zip(loaded, self.elements, self.carried, strict=True)
        element = [emit_convert(code, value, given, wanted) for value, given, wanted in pairs]
        if not self.is_flagged:
            return self._body(code, so_far, element)
        *values, flag = so_far
        return [*select_by_flag(code, flag, self._body(code, values, element), element), constant(code, 1, i8)]

    @_located
    def combined(self, code: KernelCode, one: Sequence[SSAValue], other: Sequence[SSAValue]) -> list[SSAValue]:
        """Combines two partial results."""
        if not self.is_flagged:
            return self._body(code, one, other)
        *ones, is_one = one
        *others, is_other = other
        both = select_by_flag(code, is_other, self._body(code, ones, others), ones)
        return [*select_by_flag(code, is_one, both, others), code.insert(arith.OrIOp(is_one, is_other)).result]

    @_located
    def with_partial(self, code: KernelCode, so_far: Sequence[SSAValue], loaded: Sequence[SSAValue]) -> list[SSAValue]:
        """Combines a partial result with a loaded one, which has no flag because it has at least one element."""
        return self.combined(code, so_far, [*loaded, constant(code, 1, i8)] if self.is_flagged else loaded)

    @_located
    def results(self, code: KernelCode, total: Sequence[SSAValue]) -> list[SSAValue]:
        """The results, from the partial result of all elements, in the arrays' own types."""
        found = list(total)
        if self.is_flagged:
            *values, flag = total
            initial = self._initial(code)
            found = select_by_flag(code, flag, self._body(code, initial, values), initial)
        elif self.starting is not None:
            found = self._body(code, self._initial(code), total)
        pairs = zip(found, self.carried, self.elements, strict=True)
        return [emit_convert(code, value, carried, element) for value, carried, element in pairs]

    # ------------------------------------------------------------------------------------------------ parts of it

    def _initial(self, code: KernelCode) -> list[SSAValue]:
        return [self._initial_value(code, number) for number in range(len(self.inits))]

    def _initial_value(self, code: KernelCode, number: int) -> SSAValue:
        loaded = code.load(self.inits[number], ())
        return emit_convert(code, loaded, self.elements[number], self.carried[number])

    def _identity(self, code: KernelCode, number: int, identity: int) -> SSAValue:
        wanted = self.carried[number].storage_type
        if identity or self.opcodes[number] != "add":
            return constant(code, identity, wanted)
        if isa(wanted, ComplexType[AnyFloat]):
            part = FloatAttr(-0.0, wanted.element_type)
            return code.insert(complex.ConstantOp(ArrayAttr([part, part]), wanted)).complex
        return constant(code, -0.0 if isa(wanted, AnyFloat) else 0, wanted)

    def _body(self, code: KernelCode, one: Sequence[SSAValue], other: Sequence[SSAValue]) -> list[SSAValue]:
        """Applies the body to two candidates: one op for each result that is carried in f32, the body's own code for the others."""
        count = len(self.elements)
        is_wide = [carried != element for carried, element in zip(self.carried, self.elements, strict=True)]
        found = list[SSAValue]()
        if not all(is_wide):
            given = [
                emit_convert(code, value, self.carried[number % count], self.elements[number % count])
                for number, value in enumerate((*one, *other))
            ]
            found = emit_scalars(code, self.body, given)
        return [
            code.insert(self._widened[self.opcodes[number] or ""](one[number], other[number])).result
            if is_wide[number]
            else found[number]
            for number in range(count)
        ]


def _is_narrow(element: DType) -> bool:
    return element.kind is Kind.FLOAT and element.bits < F32.bits


def reduces_rows(op: BufferOp) -> bool:
    """Whether an op reduces the last dimension: the rows of a matrix, or a vector."""
    dims = reduced_dims(op)
    return len(dims) == 1 and dims[0] == tensor_of(op.inputs[0].type).get_num_dims() - 1


def reduces_columns(op: BufferOp) -> bool:
    """Whether an op reduces the first dimension: the columns of a matrix, or a vector."""
    return reduced_dims(op) == (0,)


def reduced_dims(op: BufferOp) -> tuple[int, ...]:
    """The dimensions that an op reduces; none for one that is not a reduction of a matrix or of a vector."""
    if op.HLO is not ReduceOp or tensor_of(op.inputs[0].type).get_num_dims() > 2:
        return ()
    hero = op.as_hlo()
    assert isinstance(hero, ReduceOp)
    return integers(hero.dimensions)


def by_shape(numbers: BufferNumbers, reducers: Sequence[Reducer]) -> list[list[Reducer]]:
    """Reductions in groups, each of matrices of one shape."""
    found = dict[tuple[Number, Number], list[Reducer]]()
    for reducer in reducers:
        found.setdefault(reducer.shape(numbers), []).append(reducer)
    return list(found.values())


def starts_of(code: KernelCode, reducers: Sequence[Reducer]) -> list[SSAValue]:
    """The initial carried values of a loop over the elements of several reductions."""
    return [value for reducer in reducers for value in reducer.starts(code)]


def parts_of(reducers: Sequence[Reducer], values: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
    """Splits the values of all reductions into one partial result for each."""
    found, at = list[Sequence[SSAValue]](), 0
    for reducer in reducers:
        found.append(values[at : at + len(reducer.types)])
        at += len(reducer.types)
    return found


def with_elements(
    code: KernelCode, reducers: Sequence[Reducer], so_far: Sequence[SSAValue], place: Place
) -> list[SSAValue]:
    """Adds one more element of each array, at a row and a column, to the values of several reductions."""
    found = list[SSAValue]()
    for reducer, own in zip(reducers, parts_of(reducers, so_far), strict=True):
        found += reducer.with_element(code, own, reducer.loaded(code, place))
    return found


def with_partials(
    code: KernelCode, reducers: Sequence[Reducer], one: Sequence[SSAValue], other: Sequence[SSAValue]
) -> list[SSAValue]:
    """Combines two sets of partial results of several reductions."""
    both = zip(reducers, parts_of(reducers, one), parts_of(reducers, other), strict=True)
    return [value for reducer, first, second in both for value in reducer.combined(code, first, second)]


def store_results(
    code: KernelCode, reducers: Sequence[Reducer], totals: Sequence[Sequence[SSAValue]], kept: SSAValue
) -> None:
    """Writes the results of several reductions for one row, or one column."""
    for reducer, total in zip(reducers, totals, strict=True):
        with code.located(reducer.op.location):
            for value, output in zip(reducer.results(code, total), reducer.op.outputs, strict=True):
                code.store(value, output, reducer.result_indices(kept))
