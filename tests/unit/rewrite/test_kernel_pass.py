"""Remarks: what a pass declined, for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.trace import Remark

LOOP = """
func.func @f(%n: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c2 {
  } loc("tanh_0"("gelu.hlo":19:3))
  return
}
"""


@dataclass(frozen=True)
class DeclinePass(KernelPass):
    name = "decline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, scf.ForOp):
                self.skip(inner, "step is not 1")


def test_a_remark_says_pass_op_reason_and_place():
    with take_notes() as notes:
        DeclinePass().apply(make_context(), parse_ir(LOOP))
    assert notes.remarks == [Remark("decline", "skipped scf.for: step is not 1", "tanh_0 (gelu.hlo:19:3)")]
    assert str(notes.remarks[0]) == "decline: skipped scf.for: step is not 1 at tanh_0 (gelu.hlo:19:3)"


def test_the_same_remark_is_kept_once_and_nested_collections_are_apart():
    module = parse_ir(LOOP)
    with take_notes() as outer:
        DeclinePass().apply(make_context(), module)
        with take_notes() as inner:
            DeclinePass().apply(make_context(), module)
        DeclinePass().apply(make_context(), module)
    assert len(outer.remarks) == len(inner.remarks) == 1


def test_nobody_listening_is_fine():
    DeclinePass().apply(make_context(), parse_ir(LOOP))


REFUSED = """
func.func @f() {
  %c = arith.constant 0 : index
  scf.for %i = %c to %c step %c {
    %d = arith.constant 1 : index
  } loc("tanh_0"("gelu.hlo":19:3))
  func.return
}
"""


def test_a_refusal_says_pass_place_and_where_the_op_comes_from():
    module = parse_ir(REFUSED)
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    (inside,) = (op for op in loop.body.walk() if op.name == "arith.constant")
    for op in (loop, inside):
        error = DeclinePass().refuse(op, f"no code for {op.name}", "use another")
        assert (error.message, error.stage, error.help) == (f"no code for {op.name}", "decline", "use another")
        assert str(error.place) == "gelu.hlo:19:3"
        assert error.details == ("at tanh_0 (gelu.hlo:19:3)",)


def test_a_refusal_of_an_op_from_nowhere_has_no_place():
    (loop,) = (
        op for op in parse_ir(REFUSED.replace('loc("tanh_0"("gelu.hlo":19:3))', "")).walk() if isinstance(op, scf.ForOp)
    )
    error = DeclinePass().refuse(loop, "no code")
    assert (error.place, error.details, error.help) == (None, (), "")
