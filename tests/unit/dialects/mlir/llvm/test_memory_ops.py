"""Addresses, loads and stores: flags in both text forms, what they do to memory, what is refused."""

import re

import pytest
from xdsl.dialects.builtin import bf16, f32, i32, i64
from xdsl.ir import Block, Operation
from xdsl.traits import get_effects, is_speculatable

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError

BLOCK = Block(arg_types=[llvm.LLVMPointerType(), i32, i64, f32])
POINTER, N, J, X = BLOCK.args


def in_function(line: str) -> str:
    return f"llvm.func @f(%p: !llvm.ptr, %i: i32, %x: f32) {{\n{line}\nllvm.return }}"


@pytest.mark.parametrize(
    ("inbounds", "nuw", "word", "flags"),
    [(False, False, "", 0), (True, False, "inbounds ", 3), (False, True, "nuw ", 4), (True, True, "inbounds|nuw ", 7)],
)
def test_an_address_built_with_flags_has_them_in_both_forms(inbounds: bool, nuw: bool, word: str, flags: int):
    """In xDSL's op `inbounds` and `noWrapFlags` are two properties: the generic form says 0 for an address in bounds."""
    address = llvm.GEPOp(POINTER, [0, N], bf16, inbounds=inbounds, nuw=nuw)
    assert f"llvm.getelementptr {word}%arg0[0, %arg1] : (!llvm.ptr, i32) -> !llvm.ptr, bf16" in print_ir(address)
    assert f"noWrapFlags = {flags} : i32" in print_ir(address, generic=True)


def test_an_address_from_numbers_and_a_marker():
    address = llvm.GEPOp(POINTER, [-1, N], llvm.LLVMArrayType(4, f32))
    assert "%arg0[-1, %arg1]" in print_ir(address)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%0 = llvm.getelementptr %p[0, 0] : (!llvm.ptr) -> !llvm.ptr, f32", "index 1 goes into f32"),
        (
            "%0 = llvm.getelementptr %p[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(f32, i32)>",
            "index 1 must be a number below 2",
        ),
        (
            "%0 = llvm.getelementptr %p[0, %i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.struct<(f32, i32)>",
            "index 1 must be a number below 2",
        ),
        (
            '%0 = "llvm.getelementptr"(%p) <{elem_type = f32, noWrapFlags = 0 : i32, rawConstantIndices = array<i32: -2147483648>}>'
            " : (!llvm.ptr) -> !llvm.ptr",
            "1 indices are operands, but there are 0",
        ),
    ],
)
def test_an_address_goes_into_what_there_is(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(in_function(line))


def test_an_unknown_ordering_is_refused():
    with pytest.raises(ParseError, match="unknown atomic ordering 'loose'; one of: unordered, monotonic"):
        parse_ir(in_function("%0 = llvm.load %p atomic loose : !llvm.ptr -> f32"))


@pytest.mark.parametrize(
    ("op", "kinds"),
    [
        (llvm.LoadOp(POINTER, f32), {"READ"}),
        (llvm.LoadOp(POINTER, f32, invariant=True, alignment=4), set()),
        (llvm.LoadOp(POINTER, f32, volatile=True), None),
        (llvm.LoadOp(POINTER, f32, ordering=2, alignment=4), None),
        (llvm.StoreOp(X, POINTER), {"WRITE"}),
        (llvm.StoreOp(X, POINTER, volatile=True), None),
        (llvm.GEPOp(POINTER, [1], f32), set()),
    ],
)
def test_what_an_access_does(op: Operation, kinds: set[str] | None):
    """None: any effect, so that no pass moves it."""
    effects = get_effects(op)
    assert (None if effects is None else {effect.kind.name for effect in effects}) == kinds


def test_accesses_are_not_hoisted_but_addresses_are():
    assert not is_speculatable(llvm.LoadOp(POINTER, f32, invariant=True))
    assert is_speculatable(llvm.GEPOp(POINTER, [1], f32))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "%0 = llvm.load %p atomic release {alignment = 4 : i64} : !llvm.ptr -> f32",
            "ordering is release; it can be unordered",
        ),
        ("%0 = llvm.load %p atomic monotonic : !llvm.ptr -> f32", "is atomic, so it needs an alignment"),
        (
            "%0 = llvm.load %p atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i48",
            "i48 cannot be accessed atomically",
        ),
        (
            '%0 = "llvm.load"(%p) <{ordering = 0 : i64, syncscope = "x"}> : (!llvm.ptr) -> f32',
            "has a syncscope, but is not atomic",
        ),
        (
            "llvm.store %i, %p atomic acquire {alignment = 4 : i64} : i32, !llvm.ptr",
            "ordering is acquire; it can be unordered",
        ),
        ("%0 = llvm.load %p dereferenceable<bytes = 8> : !llvm.ptr -> f32", "but that is f32"),
        (
            "%0 = llvm.atomicrmw add %p, %x monotonic : !llvm.ptr, f32",
            "add is of an integer of 8, 16, 32 or 64 bits, not of f32",
        ),
        (
            "%0 = llvm.atomicrmw fadd %p, %i monotonic : !llvm.ptr, i32",
            "fadd is of a float or a vector of floats, not of i32",
        ),
        ("%0 = llvm.atomicrmw add %p, %i unordered : !llvm.ptr, i32", "ordering is unordered; it can be monotonic"),
        ("%0 = llvm.cmpxchg %p, %x, %x monotonic monotonic : !llvm.ptr, f32", "compares pointers or integers"),
        ("%0 = llvm.cmpxchg %p, %i, %i unordered monotonic : !llvm.ptr, i32", "ordering of success is unordered"),
        ("%0 = llvm.cmpxchg %p, %i, %i seq_cst release : !llvm.ptr, i32", "ordering of failure is release"),
        ("llvm.fence monotonic", "ordering is monotonic; it can be acquire, release, acq_rel, seq_cst"),
        (
            '%0 = "llvm.atomicrmw"(%p, %i) <{bin_op = 99 : i64, ordering = 2 : i64}> : (!llvm.ptr, i32) -> i32',
            "there is no atomic operation 99",
        ),
        (
            '%0 = "llvm.cmpxchg"(%p, %i, %i) <{success_ordering = 2 : i64, failure_ordering = 2 : i64}>'
            " : (!llvm.ptr, i32, i32) -> !llvm.struct<(i32, i32)>",
            "the result is !llvm.struct<(i32, i32)>; it must be !llvm.struct<(i32, i1)>",
        ),
    ],
)
def test_what_memory_cannot_do_in_one_step_is_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=re.escape(message)):
        parse_ir(in_function(line))


def test_an_unknown_operation_is_refused_where_it_stands():
    with pytest.raises(ParseError, match="unknown atomic operation 'times'; one of: xchg, add"):
        parse_ir(in_function("%0 = llvm.atomicrmw times %p, %i monotonic : !llvm.ptr, i32"))


def test_atomics_are_built_and_may_do_anything():
    built = (
        llvm.AtomicRMWOp("fadd", POINTER, X, syncscope="agent", alignment=4),
        llvm.AtomicCmpXchgOp(POINTER, N, N, "acq_rel", weak=True),
        llvm.FenceOp("seq_cst", "block"),
        llvm.AllocaOp(N, f32, alignment=16),
    )
    assert [print_ir(op).split(" = ", 1)[-1] for op in built] == [
        'llvm.atomicrmw fadd %arg0, %arg1 syncscope("agent") monotonic {alignment = 4 : i64} : !llvm.ptr, f32',
        "llvm.cmpxchg weak %arg0, %arg1, %arg1 acq_rel monotonic : !llvm.ptr, i32",
        'llvm.fence syncscope("block") seq_cst',
        "llvm.alloca %arg0 x f32 {alignment = 16 : i64} : (i32) -> !llvm.ptr",
    ]
    assert [get_effects(op) for op in built] == [None] * 4
