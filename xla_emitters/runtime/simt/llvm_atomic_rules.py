"""`llvm`'s atomic accesses: lanes with one address take turns, block by block, thread by thread (see `atomic_rules`).

    llvm.atomicrmw fadd %p, %x monotonic       each lane gets the value after the lanes before it
    llvm.cmpxchg %p, %old, %new ...            a weak one fails only if the values differ
    llvm.inline_asm "atom.global.v2 ..."       `dialects/mlir/ptx_atomics.py`; other machine code is refused

Lanes run in lockstep, so orderings, scopes and fences have no effect but on the race detector.
Source: LLVM language reference, "atomicrmw", "cmpxchg", "fence"; PTX ISA, "atom".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import arith, llvm
from xla_emitters.dialects.mlir.data_layout import size_and_alignment
from xla_emitters.dialects.mlir.ptx_atomics import addition_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt.arith_rules import FLOAT_OPS, INTEGER_OPS, OfForm
from xla_emitters.runtime.simt.atomic_rules import accumulated, take_turns
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules
from xla_emitters.runtime.simt.gpu_rules import block_fence, fence
from xla_emitters.runtime.simt.llvm_rules import check_alignment, load_value, store_value
from xla_emitters.runtime.simt.machine import Machine, Value, merge
from xla_emitters.runtime.simt.memory import Buffer, Memory
from xla_emitters.runtime.simt.scalars import Form, form_of, to_bits, unsigned, wrap
from xla_emitters.runtime.simt.vector_rules import Elements, columns, count_of, rows_of

RULES = Rules()


def _unsigned_pairs(function: Binary) -> OfForm:
    """`function` of the unsigned readings of the old value and the operand, wrapped."""

    def run(form: Form, old: Array, value: Array) -> Array:
        return wrap(form, function(unsigned(form, old), unsigned(form, value)))

    return lambda form: partial(run, form)


def _exchange(old: Array, value: Array) -> Array:
    return value


def _nand(old: Array, value: Array) -> Array:
    return ~(old & value)


UPDATES: dict[str, OfForm] = {
    "xchg": lambda form: _exchange,
    "add": INTEGER_OPS["add"],
    "sub": INTEGER_OPS["sub"],
    "_and": INTEGER_OPS["and"],
    "nand": lambda form: _nand,
    "_or": INTEGER_OPS["or"],
    "_xor": INTEGER_OPS["xor"],
    "max": INTEGER_OPS["maxs"],
    "min": INTEGER_OPS["mins"],
    "umax": INTEGER_OPS["maxu"],
    "umin": INTEGER_OPS["minu"],
    "fadd": FLOAT_OPS["add"],
    "fsub": FLOAT_OPS["sub"],
    "fmax": FLOAT_OPS["maxnum"],
    "fmin": FLOAT_OPS["minnum"],
    "fmaximum": FLOAT_OPS["maximum"],
    "fminimum": FLOAT_OPS["minimum"],
    "uinc_wrap": _unsigned_pairs(lambda old, value: np.where(old >= value, 0, old + 1)),
    "udec_wrap": _unsigned_pairs(lambda old, value: np.where((old == 0) | (old > value), value, old - 1)),
    "usub_cond": _unsigned_pairs(lambda old, value: np.where(old >= value, old - value, old)),
    "usub_sat": _unsigned_pairs(lambda old, value: np.where(old >= value, old - value, 0)),
}
"""Operation -> form -> the function from the old value and the operand to the new value."""

_ACCUMULATED_LIKE = {
    "add": arith.AddiOp.name,
    "_and": arith.AndIOp.name,
    "_or": arith.OrIOp.name,
    "_xor": arith.XOrIOp.name,
    "max": arith.MaxSIOp.name,
    "min": arith.MinSIOp.name,
    "umax": arith.MaxUIOp.name,
    "umin": arith.MinUIOp.name,
    "fadd": arith.AddfOp.name,
}
"""Operation -> the `arith` op with which NumPy accumulates it."""


@RULES.op(llvm.AtomicRMWOp)
def atomicrmw(op: llvm.AtomicRMWOp) -> Kernel:
    ir_type: Attribute = op.val.type
    alignment = op.alignment.value.data if op.alignment else size_and_alignment(ir_type)[0]
    return _update(op, ir_type, op.operation, alignment)


@RULES.op(llvm.InlineAsmOp)
def inline_asm(op: llvm.InlineAsmOp) -> Kernel:
    """raises Unsupported for machine code other than an atomic update"""
    if (addition := addition_of(op)) is None:
        place = (f"at {place_of(op) or str(op).splitlines()[0]}",)
        raise Unsupported(f"'{op.name}' of '{op.asm_string.data}'", stage="simt", details=place)
    vector = addition.vector
    update = _update(op, vector, "fadd", size_and_alignment(vector)[0])

    if not addition.is_packed:

        def run(machine: Machine, address: Array, *values: Array) -> Value:
            return update(machine, address, values)

        return run
    form, word = form_of(vector), form_of(i32)

    def run_on_words(machine: Machine, address: Array, *words: Array) -> Value:
        old: Any = update(machine, address, columns(form, rows_of(word, words).view(form.storage)))
        one, *others = columns(word, rows_of(form, old).view(word.storage))
        return (one, *others) if others else one

    return run_on_words


def _update(op: llvm.AtomicRMWOp | llvm.InlineAsmOp, ir_type: Attribute, operation: str, alignment: int) -> Kernel:
    """A kernel (address, operand) -> the old value: an array, or a tuple of its elements if `ir_type` is a vector."""
    form, is_vector = form_of(ir_type), isinstance(ir_type, VectorType)
    update, count = UPDATES[operation](form), count_of(ir_type) if is_vector else None
    size, found = form.size * (count or 1), accumulated(form, _ACCUMULATED_LIKE.get(operation, ""))
    if op.results[0].first_use is None and found is not None and alignment % size == 0:
        ufunc, seen_as = found

        def accumulate(machine: Machine, address: Array, value: Any) -> Value:
            check_alignment(machine, op, address, alignment)
            bits = to_bits(form, value) if count is None else rows_of(form, value)
            for buffer, lanes in machine.memory.buffers_at(op, address, machine.active):
                index = (address - buffer.base) // size
                machine.memory.accumulate(op, buffer, ufunc, index, bits.view(seen_as), lanes)
            return value

        return accumulate

    def run(machine: Machine, address: Array, value: Any) -> Value:
        old: Value | None = None

        def turn() -> None:
            nonlocal old
            found: Any = load_value(op, ir_type, alignment, machine, address)
            new = tuple(map(update, found, value)) if is_vector else update(found, value)
            store_value(op, ir_type, alignment, machine, new, address)
            old = found if machine.active is None else merge(machine.active, found, old)

        _at_each_address(machine, op, address, turn)
        assert old is not None
        return old

    return run


@RULES.op(llvm.AtomicCmpXchgOp)
def cmpxchg(op: llvm.AtomicCmpXchgOp) -> Kernel:
    ir_type = op.val.type
    alignment = op.alignment.value.data if op.alignment else size_and_alignment(ir_type)[0]
    if isa(ir_type, VectorType):
        return partial(_cmpxchg_of_vectors, op, ir_type, alignment)

    def run(machine: Machine, address: Array, expected: Array, value: Array) -> Value:
        swapped = np.zeros(machine.shape, np.bool_)
        loaded: Any = load_value(op, ir_type, alignment, machine, address)
        found = np.array(np.broadcast_to(loaded, machine.shape), order="C")
        wanted, new = (np.broadcast_to(each, machine.shape).reshape(-1) for each in (expected, value))
        for buffer, lanes in machine.memory.buffers_at(op, address, machine.active):
            keys = np.broadcast_to(_place(machine.memory, buffer, address), machine.shape).reshape(-1)
            numbers = np.arange(keys.size) if lanes is None else np.flatnonzero(np.broadcast_to(lanes, machine.shape))
            _, chosen, group = np.unique(keys[numbers], return_index=True, return_inverse=True)
            there = found.reshape(-1)[numbers][chosen]
            # At each address the first lane that finds what it expects comes next: those before it find that too, and change nothing.
            while numbers.size:
                first = np.full(there.size, keys.size)
                same = wanted[numbers] == there[group]
                np.minimum.at(first, group[same], numbers[same])
                is_done = numbers <= first[group]
                found.reshape(-1)[numbers[is_done]] = there[group[is_done]]
                winners = first[first < keys.size]
                swapped.reshape(-1)[winners] = True
                if winners.size:
                    there[first < keys.size] = new[winners]
                    storing = np.zeros(keys.size, np.bool_)
                    storing[winners] = True
                    with machine.only(storing.reshape(machine.shape)):
                        store_value(op, ir_type, alignment, machine, value, address)
                numbers, group = numbers[~is_done], group[~is_done]
        return found, swapped

    return run


def _cmpxchg_of_vectors(
    op: llvm.AtomicCmpXchgOp,
    ir_type: Attribute,
    alignment: int,
    machine: Machine,
    address: Array,
    expected: Elements,
    value: Elements,
) -> Value:
    """Of several words at once, such as the 128 bits of PTX: lane by lane at each address."""
    old, swapped = expected, np.zeros(machine.shape, np.bool_)

    def turn() -> None:
        nonlocal old, swapped
        found: Any = load_value(op, ir_type, alignment, machine, address)
        is_same = np.logical_and.reduce([a == b for a, b in zip(found, expected, strict=True)])
        active = machine.lanes
        old, swapped = merge(active, found, old), np.where(active, is_same, swapped)
        if (storing := active & is_same).any():
            with machine.only(storing):
                store_value(op, ir_type, alignment, machine, value, address)

    _at_each_address(machine, op, address, turn)
    return old, swapped


def _at_each_address(machine: Machine, op: Operation, address: Array, turn: Callable[[], None]) -> None:
    """Runs `turn` for groups of the active lanes: the lanes of a group have different addresses, those of one address run in order."""
    for buffer, lanes in machine.memory.buffers_at(op, address, machine.active):
        with machine.only(lanes):
            take_turns(machine, _place(machine.memory, buffer, address), turn)


def _place(memory: Memory, buffer: Buffer, address: Array) -> Array:
    """A different number for each byte; the address alone is the same in the shared memory of all blocks."""
    offset = address - buffer.base
    if buffer.is_of_block:
        rows, offset = memory.placed(offset)
        return offset + rows * buffer.stride
    return offset if buffer.origin is None else offset + buffer.origin


@RULES.op(llvm.FenceOp)
def fence_of_scope(op: llvm.FenceOp) -> Callable[[Machine], None]:
    return block_fence if op.syncscope is not None and op.syncscope.data == llvm.OF_BLOCK else fence
