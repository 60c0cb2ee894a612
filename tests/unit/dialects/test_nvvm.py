"""Every op of the `nvvm` dialect keeps its meaning through our text and back, as MLIR 22 sees it."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects import nvvm
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import ParseError

REGISTERS = [f"{kind}.{dim}" for kind in ("tid", "ctaid", "ntid", "nctaid") for dim in "xyz"]
LINES = (
    *(f"%r = nvvm.read.ptx.sreg.{name} : i32" for name in (*REGISTERS, "laneid", "warpid", "warpsize")),
    "%r = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32",
    "%r = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 24576> {note} : i32",
    "nvvm.barrier0",
    "nvvm.barrier",
    "nvvm.barrier id = %i",
    "nvvm.barrier id = %i number_of_threads = %i",
    *(f"%r = nvvm.shfl.sync {kind} %i, %x, %i, %i : f32 -> f32" for kind in ("bfly", "up", "down", "idx")),
    "%r = nvvm.shfl.sync down %i, %x, %i, %i {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>",
    "nvvm.griddepcontrol wait",
    "nvvm.griddepcontrol launch_dependents",
)
TARGETS = (
    "#nvvm.target",
    '#nvvm.target<chip = "sm_90">',
    '#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["a.bc", "b.bc"]>',
    '#nvvm.target<chip = "sm_80", flags = {fast, ftz}>',
)


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    modules = [f"llvm.func @f(%i: i32, %x: f32) {{ {line}\n llvm.return }}" for line in LINES]
    modules += [f"module attributes {{llvm.target = {target}}} {{}}" for target in TARGETS]
    covered = assert_means_the_same(modules)
    assert {op.name for op in nvvm.NVVM.operations} - covered == set()


def test_a_register_is_built_with_its_range():
    op = nvvm.THREAD_ID["x"]((0, 128))
    assert print_ir(op) == "%0 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32"


def test_a_target_is_built_from_its_parts():
    target = nvvm.TargetAttr.of(chip="sm_90", features="+ptx86", opt_level=3, link=["libdevice.10.bc"])
    assert str(target) == '#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>'


def test_a_target_has_no_other_parameters():
    with pytest.raises(ParseError, match="a target has no 'arch'"):
        parse_ir('module attributes {target = #nvvm.target<arch = "sm_90">} {}')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = nvvm.read.ptx.sreg.tid.x : i64", "a special register is i32"),
        ("%r = nvvm.read.ptx.sreg.tid.x range <f32, 0, 128> : i32", "a range is of integers"),
        ("%r = nvvm.shfl.sync bfly %i, %x, %i, %i : f32 -> i32", "the result is f32"),
    ],
)
def test_wrong_types_are_refused_where_they_stand(line: str, message: str):
    with pytest.raises(ParseError, match=message) as caught:
        parse_ir(f"llvm.func @f(%i: i32, %x: f32) {{\n{line}\n llvm.return }}")
    assert caught.value.place is not None
    assert caught.value.place.line == 2
