"""Remarks: what a pass declined. Passes that depend on the GPU: its name is an option on the command line."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import PassFailedException

from xla_emitters.device import DEVICES, device
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import scf
from xla_emitters.errors import InternalError, UsageError
from xla_emitters.lowering.convert_float_nvidia import ConvertFloatNvidiaPass
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.rewrite.kernel_pass import DevicePass, KernelPass, run_pass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.trace import Remark
from xla_emitters.transforms.vectorize_loads_stores import VectorizeLoadsStoresPass

LOOP = """
func.func @f(%n: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c2 {
  } loc("tanh_0"("gelu.hlo":19:3))
  return
}
"""


class DeclinePass(KernelPass):
    name = "decline"

    def apply_to(self, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, scf.ForOp):
                self.skip(inner, "step is not 1")


def test_a_remark_says_pass_op_reason_and_place():
    with take_notes() as notes:
        DeclinePass().apply(make_context(), parse_ir(LOOP))
    assert notes.remarks == [Remark("decline", "skipped scf.for: step is not 1", "tanh_0 (gelu.hlo:19:3)")]
    assert str(notes.remarks[0]) == "decline: skipped scf.for: step is not 1 at tanh_0 (gelu.hlo:19:3)"


DEVICE_PASSES = (ConvertFloatNvidiaPass, LowerTensorsPass, LowerToLlvmGpuPass, VectorizeLoadsStoresPass)


@pytest.mark.parametrize("made", DEVICE_PASSES)
@pytest.mark.parametrize("chip", [row.name for row in DEVICES])
def test_a_device_on_the_command_line(made: type[DevicePass], chip: str) -> None:
    """As text and back; the default is left out of the text, and an architecture is a device too."""
    wanted = made(device(chip))
    text = str(wanted.spec(include_default=True))
    assert text.startswith(f'{made.name}{{device="{chip}"')
    (spec,) = parse_pipeline(text)
    assert made.from_spec(spec) == wanted
    assert str(made().spec()) == made.name
    assert made.from_spec(made().spec()) == made()
    (by_architecture,) = parse_pipeline(f'{made.name}{{device="{wanted.device.architecture}"}}')
    assert made.from_spec(by_architecture).device.architecture == wanted.device.architecture


@pytest.mark.parametrize("made", DEVICE_PASSES)
def test_what_is_no_device(made: type[DevicePass]) -> None:
    for options, message in (
        ('device="h2000"', "unknown target 'h2000'"),
        ('device="h100","h200"', f"{made.name}: a device is one name"),
        ("device=7", f"{made.name}: a device is one name"),
    ):
        (spec,) = parse_pipeline(f"{made.name}{{{options}}}")
        with pytest.raises(UsageError, match=message):
            made.from_spec(spec)


def test_a_refusal_says_pass_place_and_where_the_op_or_the_nearest_around_it_comes_from():
    (loop,) = (op for op in parse_ir(LOOP).walk() if isinstance(op, scf.ForOp))
    for op in (loop, loop.body.block.last_op):
        error = DeclinePass().refuse(op, f"no code for {op.name}", "use another")
        assert (error.message, error.stage, error.help) == (f"no code for {op.name}", "decline", "use another")
        assert str(error.place) == "gelu.hlo:19:3"
        assert error.details == ("at tanh_0 (gelu.hlo:19:3)",)


def test_a_refusal_of_an_op_from_nowhere_has_no_place():
    (loop,) = (
        op for op in parse_ir(LOOP.replace('loc("tanh_0"("gelu.hlo":19:3))', "")).walk() if isinstance(op, scf.ForOp)
    )
    error = DeclinePass().refuse(loop, "no code")
    assert (error.place, error.details, error.help) == (None, (), "")


class FailPass(KernelPass):
    __module__ = "xla_emitters.transforms.fail"
    name = "fail"

    def apply_to(self, op: ModuleOp) -> None:
        raise PassFailedException("not today")


class StockFailPass(ModulePass):
    __module__ = "xdsl.transforms.stock_fail"
    name = "stock-fail"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailedException("not today")


def test_a_pass_of_ours_that_fails_unasked_is_our_bug_and_one_of_xdsl_may_refuse():
    with pytest.raises(InternalError, match="fail: PassFailedException: not today"):
        run_pass(FailPass(), make_context(), parse_ir(LOOP))
    with pytest.raises(PassFailedException, match="not today"):
        run_pass(StockFailPass(), make_context(), parse_ir(LOOP))
