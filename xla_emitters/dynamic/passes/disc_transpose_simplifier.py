"""Moves transposes behind convolutions down, through elementwise ops, until they meet the next convolution's and cancel. On HLO.

    a = dynamic_conv(...), b01f                     a = dynamic_conv(...), b01f
    t = transpose(a), {0,3,1,2}                     r = maximum(a, z')
    r = maximum(t, z)                       ->      b = dynamic_conv(r, ...), b01f
    u = transpose(r), {0,2,3,1}
    b = dynamic_conv(u, ...), b01f

`disc-conv-rewriter` puts transposes around every convolution that is not in the library's layout. Only these are moved: a transpose of a
convolution's result, and transposes that replace it. An elementwise op is moved before its operands' transposes if these are equal and
its other operands can have any layout at no cost: scalars, constants, broadcasts of one dimension, such as a bias. So is a reduce-window
(pooling). Two transposes in a row become one, or none. A transpose with other users stays, so that the number of transposes
never grows.

Source: BladeDISC, the pass of this name behind its convolution passes; the seed document leaves transposes where they are inserted.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicBroadcastInDimOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp, TransposeOp
from xla_emitters.dialects.hlo.types import ArrayType, array_type, as_array, dims_of, element_of
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dynamic.passes.shape_code import ShapeCode
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

Order = tuple[int, ...]
"""Result dimension k is operand dimension order[k]."""


class DiscTransposeSimplifierPass(KernelPass):
    name = "disc-transpose-simplifier"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for computation in op.ops:
            if isinstance(computation, ComputationOp):
                _Moving(names).run(computation)


class _Moving:
    """Transposes of one computation that come from a convolution."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.found = set[SSAValue]()

    def run(self, computation: ComputationOp) -> None:
        for op in list(computation.instructions):
            if isinstance(op, TransposeOp) and isinstance(op.operands[0].owner, DynamicConvOp):
                self.found.add(op.result)
            elif isinstance(op, TransposeOp) and op.operands[0] in self.found:
                self._compose(op)
            elif (order := self._order_of(op)) is not None:
                self._sink(op, order)

    def _compose(self, op: TransposeOp) -> None:
        """Merges two transposes in a row into one, or none."""
        first = op.operands[0].owner
        assert isinstance(first, TransposeOp)
        order = tuple(integers(first.dimensions)[dim] for dim in integers(op.dimensions))
        (source,) = first.operands
        if order == tuple(range(len(order))):
            self.names.replace(op, source)
        else:
            op.operands[0] = source
            op.properties["dimensions"] = integer_array(order)
        self._drop(first)

    def _drop(self, op: HloOp) -> None:
        if op.result.first_use is None:
            self.found.discard(op.result)
            Rewriter.erase_op(op)

    # ------------------------------------------------------------------------------------------- which ops are moved

    def _order_of(self, op: HloOp) -> Order | None:
        """The permutation of the operands' transposes if `op` is to be moved before them; None if that is impossible or gains nothing."""
        moving = [value for value in op.operands if value in self.found]
        orders = {_order(value) for value in moving}
        if len(orders) != 1 or not all(map(self._is_all_moved, moving)):
            return None
        (order,) = orders
        if isinstance(op, ReduceWindowOp):
            is_one = len(op.arrays) == 1 and not any(value in self.found for value in op.operands[1:])
            return order if is_one else None
        if not is_elementwise(op) or len(dims_of(op.result)) != len(order):
            return None
        return order if all(value in self.found or _is_free(value) for value in op.operands) else None

    def _is_all_moved(self, value: SSAValue) -> bool:
        """Whether all users are transposes, or ops that a transpose can be moved over."""
        readers = [use.operation for use in value.uses]
        return len(readers) == 1 or all(
            isinstance(reader, TransposeOp) or (isinstance(reader, HloOp) and is_elementwise(reader))
            for reader in readers
        )

    # -------------------------------------------------------------------------------------------------------------- moving

    def _sink(self, op: HloOp, order: Order) -> None:
        code = ShapeCode(self.names, op)
        back = tuple(order.index(dim) for dim in range(len(order)))
        transposes = [value.owner for value in op.operands if value in self.found]
        operands = [
            _transposed(value) if value in self.found else _laid_out(code, value, back) for value in op.operands
        ]
        properties = {key: value for key, value in op.properties.items() if key != "name"}
        if isinstance(op, ReduceWindowOp):
            dims = op.window.data.dims
            properties["window"] = WindowAttr(Window(tuple(dims[dim] for dim in back)))
        made = type(op)(operands, _moved_type(op.result, back), op.instruction_name.data, properties)
        made.attributes |= op.attributes
        result = code.add("transpose", [self.names.add(made, op)], op.result.type, {"dimensions": integer_array(order)})
        self.found.add(result)
        self.names.replace(op, result)
        for transpose in dict.fromkeys(transposes):
            assert isinstance(transpose, HloOp)
            self._drop(transpose)


def _transposed(value: SSAValue) -> SSAValue:
    """The operand of a transpose."""
    assert isinstance(value.owner, TransposeOp)
    return value.owner.operands[0]


def _order(value: SSAValue) -> Order:
    owner = value.owner
    assert isinstance(owner, TransposeOp)
    return integers(owner.dimensions)


def _moved_type(value: SSAValue, order: Order) -> ArrayType:
    return array_type(as_array(value.type).element_type, [dims_of(value)[dim] for dim in order])


def _is_free(value: SSAValue) -> bool:
    """Whether an array costs the same in any order of its dimensions."""
    if not dims_of(value):
        return True
    match value.owner:
        case ConstantOp() as op:
            return not op.is_elided
        case BroadcastOp() | DynamicBroadcastInDimOp() as op:
            return sum(size != 1 for size in dims_of(op.operands[0])) <= 1
        case _:
            return False


def _laid_out(code: ShapeCode, value: SSAValue, order: Order) -> SSAValue:
    """An array that is free (`_is_free`), with its dimensions in that order."""
    if not dims_of(value):
        return value
    op = value.owner
    if isinstance(op, ConstantOp):
        element = element_of(value)
        return code.insert(ConstantOp.from_array(op.array().transpose(order), element, op.instruction_name.data))
    assert isinstance(op, BroadcastOp | DynamicBroadcastInDimOp)
    source, *sizes = op.operands
    places = [order.index(dim) for dim in integers(op.dimensions)]
    ascending = tuple(int(number) for number in np.argsort(places))
    if ascending != tuple(range(len(ascending))):
        source = code.reshaped(source, [code.size(source, dim) for dim in ascending], "turned")
    properties = {key: held for key, held in op.properties.items() if key != "name"}
    properties["dimensions"] = integer_array(sorted(places))
    for name in ("known_expanding", "known_nonexpanding"):
        if name in properties:
            listed = integers(properties[name])
            properties[name] = integer_array(sorted(ascending.index(number) for number in listed))
    sizes = [_reordered(code, one, order) for one in sizes]
    return code.add(op.opcode, [source, *sizes], _moved_type(value, order), properties)


def _reordered(code: ShapeCode, sizes: SSAValue, order: Order) -> SSAValue:
    """The elements of a list of sizes in another order."""
    element = as_array(sizes.type).element_type
    one = array_type(element, (1,))
    ranges = [ArrayAttr([integer_array([dim, dim + 1, 1])]) for dim in order]
    parts = [code.add("slice", [sizes], one, {"slice": along}, of_sizes=True) for along in ranges]
    return code.add("concatenate", parts, sizes.type, {"dimensions": integer_array([0])}, of_sizes=True)
