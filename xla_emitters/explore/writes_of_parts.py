"""XLA's loop that replaces some bits of a byte, in the form that ours has: two atomic ops on the byte.

    %place = llvm.and (llvm.ptrtoint %byte), 3             ->    llvm.atomicrmw _and %byte, %others
    %word = llvm.getelementptr %byte[%place * -1]                llvm.atomicrmw _or %byte, %bits
    scf.while (%old = llvm.load %word) {
      %new = %old with its byte %b at %place as (%b and %others) or %bits
      llvm.cmpxchg %word, %old, %new
      again if it failed
    }

Both are right where no other thread writes the same bits of the byte meanwhile, as of an element that one thread writes.
Source: docs/decisions/02-the-seed-and-the-stages.md; XLA lower_tensors.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.dialects.llvm import ExtractValueOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.mlir.llvm.atomics import AtomicRMWOp
from xla_emitters.dialects.mlir.llvm.memory import DYNAMIC_INDEX, GEPOp, LoadOp
from xla_emitters.rewrite.dce import dce
from xla_emitters.rewrite.effects import is_pure
from xla_emitters.rewrite.folders import constant_integer

Form = str | int | tuple["str | Form", ...]
"""What a value is computed by: an op's name and the forms of its operands; a constant; or a word for the same value wherever it occurs."""

_PLACE: Form = ("llvm.and", ("llvm.ptrtoint", "byte"), 3)
_SHIFT: Form = ("llvm.mul", ("llvm.trunc", _PLACE), 8)
_WORD: Form = ("llvm.getelementptr of bytes", "byte", ("llvm.mul", _PLACE, -1))
_OLD_BYTE: Form = ("llvm.trunc", ("llvm.lshr", "old", _SHIFT))
_NEW_BYTE: Form = ("arith.ori", ("arith.andi", _OLD_BYTE, "others"), "bits")
_OTHER_BYTES: Form = ("llvm.and", "old", ("llvm.xor", -1, ("llvm.shl", 255, _SHIFT)))
_NEW: Form = ("llvm.or", _OTHER_BYTES, ("llvm.shl", ("llvm.zext", _NEW_BYTE), _SHIFT))
_SWAP: Form = ("llvm.cmpxchg", _WORD, "old", _NEW)
_AGAIN: Form = ("llvm.xor", ("llvm.extractvalue 1", _SWAP), -1)
_NOW: Form = ("llvm.extractvalue 0", _SWAP)


def writes_of_parts_as_atomic_ops(module: ModuleOp) -> bool:
    """Each such loop -> the two atomic ops; says whether there was one."""
    changed = False
    for loop in tuple(op for op in module.walk() if isinstance(op, scf.WhileOp)):
        known: dict[str, SSAValue] = {}
        if _swaps_one_byte(loop, known):
            pair = AtomicRMWOp("_and", known["byte"], known["others"]), AtomicRMWOp("_or", known["byte"], known["bits"])
            Rewriter.insert_op(pair, InsertPoint.before(loop))
            Rewriter.erase_op(loop)
            changed = True
    if changed:
        dce(module)
    return changed


def _swaps_one_byte(loop: scf.WhileOp, known: dict[str, SSAValue]) -> bool:
    """Whether it is such a loop, and the values that its form names."""
    block, again = loop.before_region.block, loop.after_region.block
    end, repeat = block.last_op, again.last_op
    if len(block.args) != 1 or any(result.first_use is not None for result in loop.results):
        return False
    assert isinstance(end, scf.ConditionOp)
    assert isinstance(repeat, scf.YieldOp)
    known["old"] = block.args[0]
    return (
        _has_form(end.condition, _AGAIN, known)
        and [_has_form(value, _NOW, known) for value in end.args] == [True]
        and isinstance(load := loop.arguments[0].owner, LoadOp)
        and _has_form(load.ptr, _WORD, known)
        and all(op in (repeat, end) or op.name == "llvm.cmpxchg" or is_pure(op) for op in (*block.ops, *again.ops))
        and sum(op.name == "llvm.cmpxchg" for op in (*block.ops, *again.ops)) == 1
        and list(repeat.operands) == list(again.args)
        and all(loop not in _around(known[word]) for word in ("others", "bits"))
    )


def _has_form(value: SSAValue, form: Form, known: dict[str, SSAValue]) -> bool:
    if isinstance(form, int):
        return constant_integer(value) == form
    if isinstance(form, str):
        return known.setdefault(form, value) is value
    name, *operands = form
    op = value.owner
    return (
        isinstance(op, Operation)
        and _name(op) == name
        and len(op.operands) == len(operands)
        and all(_has_form(operand, part, known) for operand, part in zip(op.operands, operands, strict=True))
    )


def _name(op: Operation) -> str:
    """With what else says what the op computes."""
    match op:
        case GEPOp() if op.elem_type == i8 and op.rawConstantIndices.get_values() == (DYNAMIC_INDEX,):
            return f"{op.name} of bytes"
        case ExtractValueOp():
            return " ".join((op.name, *(str(place) for place in op.position.get_values())))
        case _:
            return op.name


def _around(value: SSAValue) -> Iterator[Operation]:
    """The ops in whose regions a value is computed."""
    op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    while op is not None:
        yield op
        op = op.parent_op()
