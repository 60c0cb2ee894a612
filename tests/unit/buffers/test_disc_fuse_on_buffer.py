"""Fusions of programs: how many arrays a kernel may take, and how many kernels real programs have."""

from __future__ import annotations

import pytest
from runtime.fused_programs import CASES, Counts, fused
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp


def sums(count: int) -> ModuleOp:
    """The sum of `count` arguments, one after the other."""
    ir_type = 'memref<4xf32, "gpu">'
    lines = [f"func.func @main({', '.join(f'%x{i}: {ir_type}' for i in range(count))}) -> {ir_type} {{"]
    last = "x0"
    for i in range(1, count):
        lines.append(f"%s{i} = memref.alloc() : {ir_type}")
        lines.append(f'lmhlo.add %{last}, %x{i} -> %s{i} {{name = "s{i}"}} : ({ir_type}, {ir_type}) -> {ir_type}')
        last = f"s{i}"
    return parse_ir("\n".join((*lines, f"return %{last} : {ir_type}", "}")), "<test>")


def fusions(module: ModuleOp) -> list[FusionOp]:
    return [op for op in module.walk() if isinstance(op, FusionOp)]


@pytest.mark.parametrize(("count", "wanted"), [(63, 1), (64, 2)])
def test_a_kernel_takes_64_arrays(count: int, wanted: int) -> None:
    """63 arguments and a result; one argument more is two kernels."""
    module = sums(count)
    DiscFuseOnBufferPass().apply(Context(), module)
    assert len(fusions(module)) == wanted


def test_the_limit_is_an_option() -> None:
    module = sums(6)
    DiscFuseOnBufferPass(most_buffers=3).apply(Context(), module)
    assert len(fusions(module)) == 5


@pytest.mark.parametrize("name", CASES)
def test_real_programs_are_as_few_kernels_as_is_known(name: str) -> None:
    wanted: Counts = CASES[name][1]
    for stitch, most in ((False, wanted.base), (True, wanted.stitched)):
        module = fused(name, DiscFuseOnBufferPass(stitch=stitch))
        outside = [op for op in module.walk() if isinstance(op, BufferOp) and not isinstance(op.parent_op(), FusionOp)]
        calls = [op for op in outside if op.name == "lmhlo.dot"]
        assert len(fusions(module)) <= most
        assert len(calls) == wanted.calls
        assert not [op for op in outside if op not in calls and op.outputs and "gpu" in str(op.outputs[0].type)]
