"""Addresses, loads and stores: flags in both text forms, what they do to memory, what is refused."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import bf16, f32, i32, i64
from xdsl.ir import Block, Operation
from xdsl.traits import get_effects, is_speculatable

from xla_emitters.dialects import llvm
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.printer import print_ir
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
    address = llvm.GEPOp.from_mixed_indices(POINTER, [0, N], bf16, inbounds=inbounds, nuw=nuw)
    assert address.inbounds is inbounds
    assert f"llvm.getelementptr {word}%arg0[0, %arg1] : (!llvm.ptr, i32) -> !llvm.ptr, bf16" in print_ir(address)
    assert f"noWrapFlags = {flags} : i32" in print_ir(address, generic=True)


def test_an_address_from_numbers_and_a_marker():
    address = llvm.GEPOp(POINTER, [-1, llvm.DYNAMIC_INDEX], llvm.LLVMArrayType(4, f32), [N])
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
            "1 indices are to be operands, but there are 0",
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
    """None: anything, so that nobody moves it."""
    effects = get_effects(op)
    assert (None if effects is None else {effect.kind.name for effect in effects}) == kinds


def test_accesses_are_not_hoisted_but_addresses_are():
    assert not is_speculatable(llvm.LoadOp(POINTER, f32, invariant=True))
    assert is_speculatable(llvm.GEPOp(POINTER, [1], f32))
