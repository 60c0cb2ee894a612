"""Verifies IR and reports the first error as one message with its place.

    kernel.mlir:3:10: error: [ir.verify] arith.addi: ...

xDSL checks each op by itself; a value used before it is defined, or outside the region that defines it, is not found there, and fails
much later. Here definitions are checked too: down each block, and from a block into those that it dominates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import (
    HasAncestor,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    SymbolUserOpInterface,
)
from xdsl.utils import exceptions as xdsl_errors

from xla_emitters.dialects.isa import isa
from xla_emitters.errors import Place, VerifyError, XlaEmittersError

# Exceptions that xDSL's parser, verifiers and attribute constructors raise on wrong input, besides its ParseError, without a common base.
ESCAPING_ERRORS = (
    xdsl_errors.DiagnosticException,
    xdsl_errors.PyRDLError,
    xdsl_errors.UnregisteredConstructException,
    xdsl_errors.BuilderNotFoundException,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    ArithmeticError,
    TypeError,
    ValueError,
)

WRITTEN: WeakKeyDictionary[Operation, Callable[[], Place]] = WeakKeyDictionary()
"""Op -> its place in the text that it was read from, for ops read by a tool that reports errors."""

PlaceOf: TypeAlias = Callable[[Operation], Place | None]


def verify_ir(op: Operation, place_of: PlaceOf | None = None) -> None:
    """Checks `op`, all ops inside it, and that every value is defined where it is used.

    place_of  returns an op's place in its source; by default from its location
    raises    VerifyError naming the op
    """
    place_of = place_of or place_from_location
    current = op
    try:
        for current in op.walk():
            _verify_one(current)
        for region in op.regions:
            _verify_values(region, set(), place_of)
    except RecursionError:
        raise VerifyError("nested too deeply to be verified", stage="ir.verify", place=place_of(op)) from None
    except XlaEmittersError as error:
        error.place = error.place or place_of(current)
        raise
    except Exception as error:
        # xDSL's memref.load and memref.store raise a plain Exception.
        if not isinstance(error, ESCAPING_ERRORS) and type(error) is not Exception:
            raise
        if not isinstance(error, xdsl_errors.DiagnosticException):
            current, error = _fault_behind(op, current, error)
        if "Redefinition of symbol" in str(error):
            current = _second_of_its_name(current) or current
        reason = str(error).removeprefix("Operation does not verify: ").strip() or type(error).__name__
        message = reason if reason.startswith(f"{current.name}: ") else f"{current.name}: {reason}"
        first, *more = message.splitlines()
        raise VerifyError(first, stage="ir.verify", place=place_of(current), details=tuple(more)) from error


def _fault_behind(root: Operation, stumbled: Operation, error: Exception) -> tuple[Operation, Exception]:
    """The first op in `root` whose own check names a fault, and that; else the op whose check failed over what it did not expect.

    A check that looks at other ops, as a call at its function, may come before theirs.
    """
    for op in root.walk():
        try:
            op.verify(verify_nested_ops=False)
        except xdsl_errors.DiagnosticException as found:
            return op, found
        except Exception:
            continue
    return stumbled, error


def _second_of_its_name(table: Operation) -> Operation | None:
    """The first op directly inside `table` whose symbol another op before it has; xDSL's error is about the table."""
    names = set[Attribute]()
    for op in table.regions[0].block.ops:
        if (name := op.get_attr_or_prop("sym_name")) in names:
            return op
        if name is not None:
            names.add(name)
    return None


# Dialects with ops that can be verified one by one, unless a trait looks at the surroundings.
_SELF_CONTAINED = frozenset(
    ("affine", "arith", "complex", "gpu", "llvm", "math", "memref", "nvvm", "tensor", "vector", "xla_gpu")
)
_LOOKING_AROUND = (HasAncestor, HasParent, IsTerminator, SymbolUserOpInterface)
_LOOKING_AT_BLOCKS = frozenset(
    ("func.func", "func.return", "hlo.return", "scf.for", "scf.if", "scf.yield", "xla_gpu.loop", "xla_gpu.yield")
)
"""Ops whose checks read, besides the op, the class and function type of the op around them, and the arguments and the last op of their
own blocks.

That a function uses no value from outside is checked again with the definitions of all values.
"""
_MOST_REMEMBERED = 20_000

_correct: set[tuple[object, ...]] = set()
"""Signatures of ops that were verified: after a pass, most ops are unchanged or equal to another."""


def _verify_one(op: Operation) -> None:
    around: tuple[object, ...] | None = ()
    if op.name in _LOOKING_AT_BLOCKS:
        around = _blocks_of(op)
    elif op.regions or op.successors or op.next_op is None or not _is_self_contained(type(op)):
        around = None
    if around is None:
        _verify_fully(op)
        return
    parts = (
        type(op),
        op.operand_types,
        op.result_types,
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
        *around,
    )
    if parts in _correct:
        return
    _verify_fully(op)
    if len(_correct) >= _MOST_REMEMBERED:
        _correct.clear()
    _correct.add(parts)


def _blocks_of(op: Operation) -> tuple[object, ...] | None:
    """What an op of `_LOOKING_AT_BLOCKS` reads besides itself; None for regions of several blocks, or around it."""
    block = op.parent
    if block is None or block.next_block is not None or block.prev_block is not None:
        return None
    around = block.parent_op()
    found: list[object] = [type(around), around and around.properties.get("function_type"), op.next_op is None]
    for region in op.regions:
        own = region.blocks.first
        if own is None:
            found.append(None)
            continue
        last = own.last_op
        if own.next_block is not None or last is None:
            return None
        found += (own.arg_types, type(last), last.operand_types)
    return tuple(found)


@cache
def _is_self_contained(kind: type[Operation]) -> bool:
    if kind.name == "memref.dim":
        return False  # its check reads the constant that is its operand
    if kind.name.startswith("hlo."):
        return kind.name == "hlo.parameter" or hasattr(kind, "ROW")  # those of one element at a time
    return kind.name.split(".")[0] in _SELF_CONTAINED and not any(kind.has_trait(trait) for trait in _LOOKING_AROUND)


def _verify_fully(op: Operation) -> None:
    op.verify(verify_nested_ops=False)
    for region in op.regions:
        block = region.blocks.first
        if block is None or block.next_block is not None or block.last_op is not None or op.has_trait(NoTerminator):
            continue
        raise xdsl_errors.VerifyException("its block is empty, but must end in a terminator")


def place_from_location(op: Operation) -> Place | None:
    """The place in the op's location, else in the text that it was read from; None if neither is known."""
    place = _place_in(op.location)
    return WRITTEN[op]() if place is None and op in WRITTEN else place


def _place_in(location: Attribute) -> Place | None:
    match location:
        case FileLineColLoc():
            return Place(location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            place = _place_in(location.location)
            return place and replace(place, instruction=place.instruction or f"%{location.desc.data}")
        case FusedLoc():
            parts = location.locations
            assert isa(parts, ArrayAttr[Attribute])
            return next((place for part in parts if (place := _place_in(part))), None)
        case _:
            return None


# ---- values ---------------------------------------------------------------------------------------------------------------------------


def _verify_values(region: Region, visible: set[SSAValue], place_of: PlaceOf) -> None:
    """Checks that ops in `region` use only values in `visible` (defined around it) and values defined before them inside it."""
    # Values defined in a block are visible in the blocks that it dominates, and removed when that subtree is done.
    added: list[list[SSAValue]] = []
    for block in _by_dominance(region):
        if block is None:
            visible.difference_update(added.pop())
            continue
        own: list[SSAValue] = list(block.args)
        visible.update(block.args)
        for op in block.ops:
            for number, operand in enumerate(op.operands):
                if operand not in visible:
                    name = f"%{operand.name_hint}" if operand.name_hint else f"operand {number}"
                    raise VerifyError(
                        f"{op.name}: {name} is used where it is not defined", stage="ir.verify", place=place_of(op)
                    )
            for inner in op.regions:
                _verify_values(inner, set() if op.has_trait(IsolatedFromAbove) else visible, place_of)
            own += op.results
            visible.update(op.results)
        added.append(own)


def _by_dominance(region: Region) -> Iterator[Block | None]:
    """The reachable blocks, each before those that it dominates; None marks the end of a block's subtree."""
    entry = region.blocks.first
    if entry is None:
        return
    if entry.next_block is None:
        yield entry
        yield None
        return
    from xla_emitters.support.dominance import immediate_dominators  # imported here: most regions have one block

    below: dict[Block, list[Block]] = {}
    for block, parent in immediate_dominators(entry, successors).items():
        if block is not entry:
            below.setdefault(parent, []).append(block)
    stack: list[Block | None] = [entry]
    while stack:
        block = stack.pop()
        yield block
        if block is not None:
            stack += [None, *below.get(block, [])]


def successors(block: Block) -> Sequence[Block]:
    """The blocks that its terminator names."""
    return block.last_op.successors if block.last_op else ()
