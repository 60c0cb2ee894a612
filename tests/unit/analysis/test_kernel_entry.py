"""What a kernel module says about itself: its entry, its launch, its arguments, at every stage."""

from __future__ import annotations

import pytest
from runtime.small_programs import GELU, TARGET

from xla_emitters.analysis.kernel_entry import argument_number, entry_of_kernel, launch_of
from xla_emitters.analysis.launch import Launch
from xla_emitters.analysis.program_plan import PlannedKernel
from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.pipeline import Observer, compile_module, read_module

HEAD = "gpu.known_block_size = array<i32: 64, 2, 1>, gpu.known_grid_size = array<i32: 7, 1, 1>"
TENSORS = f"""
func.func @fusion(%a: tensor<8xf32> {{llvm.align = 16 : index, xla.slice_index = 3 : index}}, %b: tensor<8xf32>)
    attributes {{xla.entry, {HEAD}}} {{ return }}
func.func private @other()
"""
LLVM = """
llvm.func @fusion(%a: !llvm.ptr) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 2, 1>, gpu.known_grid_size = array<i32: 7, 1, 1>} {
  llvm.return
}
llvm.func @__nv_tanhf(f32) -> f32
"""


@pytest.mark.tiny
@pytest.mark.parametrize("text", [TENSORS, LLVM])
def test_entry_and_launch(text: str) -> None:
    module = parse_ir(text)
    assert entry_of_kernel(module).sym_name.data == "fusion"
    assert launch_of(module) == Launch((7, 1, 1), (64, 2, 1))


def test_numbers_of_arguments() -> None:
    module = parse_ir(TENSORS)
    assert argument_number(module, 0, "xla.slice_index") == 3
    assert argument_number(module, 0, "llvm.align") == 16
    assert argument_number(module, 1, "llvm.align") is None
    assert argument_number(module, 7, "llvm.align") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @other()", "the module has 0 entry functions"),
        (
            TENSORS + TENSORS.replace("@fusion", "@second").replace("@other", "@third"),
            "the module has 2 entry functions",
        ),
        (TENSORS.replace("known_grid_size", "known_size"), "function 'fusion' does not say how it is launched"),
        (
            TENSORS.replace("array<i32: 64, 2, 1>", "array<i32: 64>"),
            "function 'fusion' does not say how it is launched",
        ),
    ],
)
def test_what_is_no_kernel(text: str, message: str) -> None:
    module = parse_ir(text)
    with pytest.raises(VerifyError, match=message) as raised:
        launch_of(module)
    assert "gpu.known_grid_size" in raised.value.help or "xla.entry" in raised.value.help


def test_every_pass_keeps_the_launch() -> None:
    """A launcher needs nothing but the IR of any stage."""
    found: set[tuple[str, Launch]] = set()

    def observers(planned: PlannedKernel) -> Observer:
        return lambda name, stage, module: found.add((entry_of_kernel(module).sym_name.data, launch_of(module)))

    compile_module(read_module(GELU), target=TARGET, stage="llvm-dialect", record="none", observers=observers)
    assert found == {("fusion", Launch((80, 1, 1), (128, 1, 1)))}
