"""Loop-invariant code motion: values that no iteration changes are computed outside of the loop. On HLO.

    body { p = (s32[], f32[?,?]) parameter(0)                  body { p = (s32[]) parameter(0),  w = f32[?,?] parameter(1)
           i = p.0, w = p.1                                           i = p.0
           n = negate(w), ...                          ->             v = f32[?,?] parameter(2), ...
           ROOT t = (s32[], f32[?,?]) tuple(i + 1, w) }               ROOT t = (s32[]) tuple(i + 1) }
    l = while((0, x)), body=body                               n = negate(x)
    y = l.1                                                    l = while((0)), x, n, body=body              y is x

1. A carried array that the body passes on unchanged is *transparent*: the body and the condition read the initial value, as an operand of
   the loop after the first, and the loop's result is that value. (Later it needs no buffer of its own, and no copy.)
2. An op of the body or the condition whose operands come from outside is moved before the loop, from nested loops too, until nothing moves.
   A constant moves with an op that needs it; alone it stays.
A loop may run zero times, so only ops that cannot fail move: no integer division, no reshape whose sizes are not proven, nothing with
effects or state (`MOVABLE`; sizes by the analysis of `sizes`). Computations that two loops share are copied first.
Source: seed document, "DhloLoopInvariant".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, SymbolRefAttr, UnitAttr, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CAPTURES,
    CallingOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.placement import TransferOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import element_of, has_dynamic_dims, tuple_type, tuple_types
from xla_emitters.dynamic.passes.shape_code import ShapeCode
from xla_emitters.dynamic.sizes import Sizes, sizes_of
from xla_emitters.graph.inlining import erase_unused
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

MOVABLE = frozenset(
    ("iota", "dot", "convolution", "reduce", "get-dimension-size", "dynamic-broadcast-in-dim", "dynamic-iota", "dynamic-reshape", "tuple",
     "get-tuple-element", "map")
)  # fmt: skip
"""Opcodes of ops that are moved, besides elementwise ones and those that move elements to places that are known."""
_NEEDS_PROOF = frozenset(("dynamic-broadcast-in-dim", "dynamic-iota", "dynamic-reshape"))


def _is_movable(op: HloOp) -> bool:
    if op.opcode in MOVABLE:
        return True
    if op.opcode in ("dynamic-slice", "dynamic-update-slice") or isinstance(op, TransferOp | BitcastOp):
        return False
    return bool(op.moved_operands) and not op.number_operands


class DiscLoopInvariantPass(KernelPass):
    name = "disc-loop-invariant"

    def apply_to(self, op: ModuleOp) -> None:
        has_entry = any(isinstance(inner, ComputationOp) and inner.is_entry for inner in op.ops)
        names = Names(op)
        proofs = Proofs(op if has_entry else None)
        for loop in _inner_first(op):
            _own_computations(loop, names)
            self._simplify(loop, names, proofs)
        erase_unused(op, [inner for inner in op.ops if isinstance(inner, ComputationOp)] if has_entry else [])

    def _simplify(self, loop: RuleOp, names: Names, proofs: Proofs) -> None:
        body, condition = (find_computation(loop, loop.symbols(name)[0]) for name in ("body", "condition"))
        root = body.root.owner
        carried = [called.parameters[0] for called in (body, condition)]
        if not isinstance(root, TupleOp):
            return self.skip(loop, "what it carries is not a tuple that its body makes")
        if any(not isinstance(use.operation, GetTupleElementOp) for p in carried for use in p.result.uses):
            return self.skip(loop, "the tuple that it carries is used as a whole")
        code = ShapeCode(names, loop)
        types = tuple_types(loop.operands[0].type)
        init = _elements(code, loop.operands[0])
        transparent = {
            index: init[index]
            for index, value in enumerate(root.operands)
            if isinstance(owner := value.owner, GetTupleElementOp)
            and owner.operands[0] is carried[0].result
            and owner.index.value.data == index
        }
        if len(transparent) == len(types):
            transparent.pop(0)  # a loop carries at least one value
        mover = _Mover(self, loop, code, proofs)
        for called in (body, condition):
            mover.move(called, transparent)
        if not transparent and len(mover.captured) == len(loop.operands) - 1:
            return None
        kept = [index for index in range(len(types)) if index not in transparent]
        _shrink(loop, (body, condition), code, kept, init, mover.captured)
        return None


@dataclass(eq=False)
class Proofs:
    """Proves that ops cannot fail for their sizes, by one analysis of the module; it is repeated for an op that it does not know.

    module  None: it has no entry, and nothing is proven

    A loop that is rebuilt carries the same values, so results for ops that stay, or were moved, remain valid.
    The copy of a computation that two loops shared is analysed when it is asked for: its sizes are those of one loop.
    """

    module: ModuleOp | None
    _moved: set[HloOp] = field(default_factory=set[HloOp])
    _sizes: Sizes | None = None

    def holds(self, op: HloOp) -> bool:
        """Whether the sizes of `op` are proven to fit."""
        if self.module is None:
            return False
        if op in self._moved:
            return True
        if self._sizes is None or any(value not in self._sizes.walk.values for value in (op.result, *op.operands)):
            self._sizes = sizes_of(self.module)
        return self._sizes.is_proven(op)

    def moved(self, op: HloOp) -> None:
        """Records that `op` replaces an op that was proven to be movable."""
        self._moved.add(op)


@dataclass(eq=False)
class _Mover:
    """Moves ops out of the computations of a loop.

    captured  outside values that a computation reads, in the order of the loop's new operands
    """

    wanting: DiscLoopInvariantPass
    loop: RuleOp
    code: ShapeCode
    proofs: Proofs
    captured: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])

    def __post_init__(self) -> None:
        self.captured = dict.fromkeys(self.loop.operands[1:])

    def move(self, called: ComputationOp, transparent: dict[int, SSAValue]) -> None:
        """Moves the invariant ops out of one computation; the remaining ops read them as new parameters."""
        outside = dict[SSAValue, SSAValue]()
        constants = dict[SSAValue, ConstantOp]()
        moved = list[HloOp]()
        parameters = called.parameters
        carried_on = (
            called.root if isinstance(called.root.owner, TupleOp) else None
        )  # the body's tuple stays in the loop
        for number, operand in enumerate(self.loop.operands[1:], 1):
            outside[parameters[number].result] = operand
        for op in called.instructions:
            if isinstance(op, GetTupleElementOp) and op.operands[0] is parameters[0].result:
                if op.index.value.data in transparent:
                    outside[op.result] = transparent[op.index.value.data]
                    moved.append(op)
            elif isinstance(op, ConstantOp):
                constants[op.result] = op
            elif op.result is carried_on or isinstance(op, ParameterOp):
                continue
            elif self._can_move(op, outside, constants):
                made = op.clone()
                made.operands = [self._outside(operand, outside, constants) for operand in op.operands]
                outside[op.result] = self.code.names.add(made, self.loop)
                self.proofs.moved(made)
                made.location = op.location
                moved.append(op)
        self._read(called, outside, moved)

    def _outside(
        self, value: SSAValue, outside: dict[SSAValue, SSAValue], constants: dict[SSAValue, ConstantOp]
    ) -> SSAValue:
        if value not in outside:
            outside[value] = self.code.names.add(constants[value].clone(), self.loop)
        return outside[value]

    def _can_move(self, op: HloOp, outside: dict[SSAValue, SSAValue], constants: dict[SSAValue, ConstantOp]) -> bool:
        if not all(operand in outside or operand in constants for operand in op.operands) or not op.operands:
            return False
        if reason := may_fail(op, self.proofs):
            self.wanting.skip(op, f"it does not depend on the loop, but {reason}")
            return False
        return True

    def _read(self, called: ComputationOp, outside: dict[SSAValue, SSAValue], moved: list[HloOp]) -> None:
        """Lets the remaining ops read new parameters in place of moved ops; erases ops without users."""
        gone = set(moved)
        root = called.root.owner
        new_root = (
            root if isinstance(root, TupleOp) else None
        )  # the body's; the condition's root reads what it compares
        first = next(iter(called.instructions))
        parameters = {parameter.number.value.data: parameter for parameter in called.parameters}
        for op in moved:
            readers = [
                use
                for use in op.result.uses
                if use.operation not in gone and not (use.operation is new_root and _hands_on(op, use.index))
            ]
            if not readers and op.result is not called.root:
                continue
            value = outside[op.result]
            self.captured.setdefault(value)
            number = 1 + list(self.captured).index(value)
            if number not in parameters:
                parameters[number] = ParameterOp(number, value.type, f"same.{number}")
                self.code.names.add(parameters[number], first)
                parameters[number].location = op.location
            for use in readers:
                use.operation.operands[use.index] = parameters[number].result
        for op in reversed(moved):
            if op.result.first_use is None:
                Rewriter.erase_op(op)


def _hands_on(op: HloOp, slot: int) -> bool:
    """Whether `op`, operand `slot` of the body's root tuple, is the unchanged value of that slot."""
    return isinstance(op, GetTupleElementOp) and op.index.value.data == slot


def may_fail(op: HloOp, proofs: Proofs) -> str:
    """Why an op must not run where it did not run before; "" if it may."""
    if is_elementwise(op):
        if op.opcode in ("divide", "remainder") and element_of(op.result).is_integer:
            return "an integer division may fail"
    elif not _is_movable(op):
        return f"'{op.opcode}' is not moved"
    if (
        op.opcode in _NEEDS_PROOF
        or has_dynamic_dims(op.result.type)
        or any(has_dynamic_dims(v.type) for v in op.operands)
    ):
        if not proofs.holds(op):
            return "its sizes are not proven to fit"
    return ""


def _shrink(
    loop: RuleOp,
    called: tuple[ComputationOp, ComputationOp],
    code: ShapeCode,
    kept: list[int],
    init: list[SSAValue],
    captured: dict[SSAValue, None],
) -> None:
    """Makes the loop anew, with the slots `kept` and its new operands."""
    types = tuple_types(loop.result.type)
    small = tuple_type([types[index] for index in kept])
    body = called[0]
    root = body.root.owner
    assert isinstance(root, TupleOp)
    for computation in called:
        parameter = computation.parameters[0]
        for use in list(parameter.result.uses):
            element = use.operation
            assert isinstance(element, GetTupleElementOp)
            if element.index.value.data in kept:
                element.properties["index"] = IntegerAttr(kept.index(element.index.value.data), i64)
        present = {p.number.value.data for p in computation.parameters}
        for number, value in enumerate(captured, 1):
            if number not in present:
                unused = ParameterOp(number, value.type, f"same.{number}")
                code.names.add(unused, next(iter(computation.instructions)))
        Rewriter.replace_value_with_new_type(parameter.result, small)
    rest = [root.operands[index] for index in range(len(types)) if index not in kept]
    new_root = TupleOp([root.operands[index] for index in kept], small, root.instruction_name.data)
    code.names.replace(root, code.names.add(new_root, root))
    for value in rest:
        owner = value.owner
        if isinstance(owner, GetTupleElementOp) and value.first_use is None:
            Rewriter.erase_op(owner)
    name = loop.instruction_name.data
    start = code.names.add(TupleOp([init[index] for index in kept], small, f"{name}.init"), loop)
    properties = {key: value for key, value in loop.properties.items() if key != "name"}
    made = type(loop)([start, *captured], small, name, properties)
    made.attributes |= loop.attributes | ({CAPTURES: UnitAttr()} if captured else {})
    result = code.names.add(made, loop)
    values = [
        code.element_of_tuple(result, kept.index(index), types[index], f"{name}.{index}")
        if index in kept
        else init[index]
        for index in range(len(types))
    ]
    whole: SSAValue | None = None
    for use in list(loop.result.uses):
        if isinstance(element := use.operation, GetTupleElementOp):
            Rewriter.replace_op(element, (), [values[element.index.value.data]])
            continue
        if whole is None:
            whole = code.names.add(TupleOp(values, loop.result.type, f"{name}.tuple"), loop)
        use.operation.operands[use.index] = whole
    old = loop.operands[0].owner
    Rewriter.erase_op(loop)
    if isinstance(old, TupleOp) and old.result.first_use is None:
        Rewriter.erase_op(old)


def _elements(code: ShapeCode, value: SSAValue) -> list[SSAValue]:
    """The elements of a tuple."""
    if isinstance(value.owner, TupleOp):
        return list(value.owner.operands)
    return [
        code.element_of_tuple(value, index, ir_type, "element") for index, ir_type in enumerate(tuple_types(value.type))
    ]


def _inner_first(module: ModuleOp) -> list[RuleOp]:
    """The loops of a module; each after the loops inside its computations."""
    found = dict[RuleOp, None]()

    def visit(computation: ComputationOp, path: tuple[ComputationOp, ...]) -> None:
        for op in computation.instructions:
            if isinstance(op, CallingOp) and op.opcode in ("while", "conditional", "call") and op not in found:
                for callee in op.callees():
                    called = find_computation(op, callee.symbol)
                    if called not in path:
                        visit(called, (*path, called))
                if isinstance(op, RuleOp) and op.opcode == "while":
                    found[op] = None

    for computation in module.ops:
        if isinstance(computation, ComputationOp):
            visit(computation, (computation,))
    return list(found)


def _own_computations(loop: RuleOp, names: Names) -> None:
    """Gives the loop a private copy of each computation that is also used elsewhere."""
    used = [
        callee.symbol.root_reference.data
        for op in names.module.walk()
        if isinstance(op, CallingOp)
        for callee in op.callees()
    ]
    for name in ("body", "condition"):
        called = find_computation(loop, loop.symbols(name)[0])
        if used.count(called.sym_name.data) > 1:
            copy = called.clone()
            names.add_computation(copy, called)
            loop.properties[name] = SymbolRefAttr(copy.sym_name.data)
