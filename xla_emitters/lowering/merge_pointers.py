"""Merges arguments that are the same buffer slice into one pointer; then every remaining pointer is `noalias`.

    func.func @k(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index},
                 %c: !llvm.ptr {xla.slice_index = 1 : index}) attributes {xla.entry} {
      %x = func.call @f(%a, %b) : (!llvm.ptr, !llvm.ptr) -> f32
->
    func.func @k(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}, %c: !llvm.ptr {llvm.noalias}) attributes {xla.entry} {
      %x = func.call @f(%a) : (!llvm.ptr) -> f32

Uses of an argument are replaced by the first argument with its slice index, which gets the stronger alignment and size of both, because
accesses rely on either. The entry, and every function that is not private or has no body, keeps all its arguments, used or not: they are
its interface, as in XLA (docs/decisions/02). Private functions with a body lose the duplicates, and so do their calls. `noalias` is true
because distinct slices do not overlap and remaining duplicates are unused. An argument with `xla.not_invariant` may be written elsewhere,
and is not noalias.
A call that passes different buffers for arguments of one slice breaks a promise of xla-propagate-slice-indices: an InternalError.
Source: seed document, "Conversion to LLVM"; XLA merge_pointers_to_same_slice.cc.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.ir import Attribute

from xla_emitters.dialects.attributes import UNIT, array, function_type
from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.mlir.llvm import LLVMPointerType
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.kernel_entry import ENTRY, SLICE_INDEX
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import Scope, functions, is_private, scopes

NOT_INVARIANT = "xla.not_invariant"
NOALIAS = "llvm.noalias"
PROMISES = ("llvm.align", "llvm.dereferenceable")

Item = TypeVar("Item")


class MergePointersPass(KernelPass):
    name = "xla-merge-pointers"

    def apply_to(self, op: ModuleOp) -> None:
        for module in scopes(op):
            self._merge_in(module)

    def _merge_in(self, module: Scope) -> None:
        # By function: position of a duplicate -> position of the argument that replaces it.
        merged: dict[str, dict[int, int]] = {}
        by_name = functions(module)
        for function in by_name.values():
            if (arguments := self._sliced_arguments(function)) is not None:
                merged[function.sym_name.data] = _merge(function, arguments)
        # Bodies before calls, so that call operands of one buffer are already the same value.
        for call in [op for function in by_name.values() for op in function.walk() if isinstance(op, func.CallOp)]:
            duplicates = merged.get(call.callee.root_reference.data, {})
            for duplicate, first in duplicates.items():
                if call.operands[duplicate] is not call.operands[first]:
                    raise InternalError(
                        f"'{call.name}' of @{call.callee.root_reference.data} passes different buffers for arguments "
                        f"{first} and {duplicate}, which have one {SLICE_INDEX}",
                        stage=self.name,
                        details=tuple(filter(None, [place_of(call)])),
                    )
            call.operands = _without(call.operands, duplicates)

    def _sliced_arguments(self, function: func.FuncOp) -> list[dict[str, Attribute]] | None:
        """The attributes of each argument; None if there is nothing to merge."""
        if function.arg_attrs is None:
            return None
        attributes = [dict(argument.data) for argument in function.arg_attrs]
        sliced = [k for k, argument in enumerate(attributes) if SLICE_INDEX in argument]
        if not sliced:
            return None
        types = function.function_type.inputs.data
        for k in sliced:
            if not isinstance(types[k], LLVMPointerType):
                self.skip(function, f"argument {k} is {types[k]}, not a pointer")
                return None
        return attributes


def _merge(function: func.FuncOp, attributes: list[dict[str, Attribute]]) -> dict[int, int]:
    """Merges the arguments of `function`. returns position of each removed argument -> position of its replacement."""
    groups: dict[Attribute, list[int]] = {}
    for position, argument in enumerate(attributes):
        if (slice_index := argument.pop(SLICE_INDEX, None)) is not None:
            groups.setdefault(slice_index, []).append(position)
    duplicates: dict[int, int] = {}
    for first, *others in groups.values():
        # A list, not a generator: `any` must not stop before every argument of the group has lost the attribute.
        if not any([attributes[position].pop(NOT_INVARIANT, None) for position in (first, *others)]):
            for position in (first, *others):
                attributes[position][NOALIAS] = UNIT
        for promise in PROMISES:
            promised = [found for position in (first, *others) if (found := attributes[position].get(promise))]
            if promised:
                attributes[first][promise] = max(promised, key=_number)
        duplicates |= dict.fromkeys(others, first)

    if (block := function.body.first_block) is not None:
        for duplicate, first in duplicates.items():
            block.args[duplicate].replace_all_uses_with(block.args[first])
    if ENTRY in function.attributes or not is_private(function) or block is None:
        duplicates = {}
    for duplicate in sorted(duplicates, reverse=True):
        function.body.blocks[0].erase_arg(function.args[duplicate])
    inputs = _without(function.function_type.inputs.data, duplicates)
    function.function_type = function_type(inputs, function.function_type.outputs.data)
    function.arg_attrs = array(
        DictionaryAttr(dict(sorted(argument.items()))) for argument in _without(attributes, duplicates)
    )
    return duplicates


def _number(attribute: Attribute) -> int:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def _without(items: Sequence[Item], positions: Container[int]) -> list[Item]:
    return [item for position, item in enumerate(items) if position not in positions]
