"""Merging pointers: what the FileCheck cases do not show."""

import pytest

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import InternalError
from xla_emitters.lowering.merge_pointers import MergePointersPass

CALLEE = """
func.func private @f(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}) {
  return
}
"""


def merged(text: str) -> str:
    module = parse_ir(text)
    MergePointersPass().apply(make_context(), module)
    module.verify()
    return print_ir(module)


def test_calls_that_break_the_promise_are_reported():
    """A callee's two arguments of one slice must be one buffer at every call."""
    with pytest.raises(InternalError) as caught:
        merged(
            CALLEE
            + """
            func.func @main(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 1 : index}) {
              func.call @f(%a, %b) : (!llvm.ptr, !llvm.ptr) -> () loc("call.1"("k.hlo":3:3))
              return
            }"""
        )
    assert "'func.call' of @f passes different buffers for arguments 0 and 1" in caught.value.message
    assert caught.value.details == ("call.1 (k.hlo:3:3)",)


def test_a_caller_between_entry_and_callee_loses_its_duplicates_first():
    text = merged(
        CALLEE
        + """
        func.func private @g(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}) {
          func.call @f(%b, %a) : (!llvm.ptr, !llvm.ptr) -> ()
          return
        }
        func.func @main(%a: !llvm.ptr {xla.slice_index = 0 : index}) attributes {xla.entry} {
          func.call @g(%a, %a) : (!llvm.ptr, !llvm.ptr) -> ()
          return
        }"""
    )
    assert "call @f(%a) : (!llvm.ptr) -> ()" in text
    assert "call @g(%a) : (!llvm.ptr) -> ()" in text


def test_public_functions_keep_their_arguments():
    text = merged(CALLEE.replace("private ", ""))
    assert "@f(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias})" in text


def test_one_argument_that_others_may_write_is_enough():
    """The group's pointer gets no noalias if any of its arguments must not."""
    text = merged(CALLEE.replace("%b: !llvm.ptr {", "%b: !llvm.ptr {xla.not_invariant, "))
    assert "noalias" not in text
    assert "not_invariant" not in text
