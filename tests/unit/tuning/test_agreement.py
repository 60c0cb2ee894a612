"""Kernels of one fusion are compared bit by bit, by elements, whatever their launches; a kernel that is wrong anywhere is found."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.emitters.loop import LoopEmitter
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.thread_work import ThreadWork
from xla_emitters.pipelines.compiler import compile, plan_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.tuning.agreement import are_near, disagreement, positive

SIZE = 1_050_004  # more than what is drawn, and 1025 blocks of which the last is not full


def fusion(body: str) -> str:
    return f"""
      f {{
        p = f32[{SIZE}] parameter(0)
        {body} }}
      ENTRY e {{
        p = f32[{SIZE}] parameter(0)
        ROOT r = f32[{SIZE}] fusion(p), kind=kLoop, calls=f }}"""


NEGATE = fusion(f"ROOT n = f32[{SIZE}] negate(p)")


def planned(text: str) -> PlannedKernel:
    (kernel,) = plan_module(read_module(text), CompileOptions()).kernels
    return kernel


def emitted(kernel: PlannedKernel, work: ThreadWork) -> ModuleOp:
    return emit_fusion(kernel.view, CompileOptions().device, choose=lambda _: LoopEmitter(work))


def compared(texts: Sequence[str], works: Sequence[ThreadWork]) -> str | None:
    kernels = [planned(text) for text in texts]
    candidate, other = (emitted(kernel, work) for kernel, work in zip(kernels, works, strict=True))
    return disagreement(candidate, other, kernels[0].view, kernels[0].arguments)


@pytest.mark.parametrize("work", [ThreadWork(2), ThreadWork(4), ThreadWork(4, 2), ThreadWork(2, 4)])
def test_other_work_of_a_thread_computes_the_same(work: ThreadWork) -> None:
    assert compared([NEGATE, NEGATE], [work, ThreadWork(4)]) is None


def test_a_bit_is_a_difference() -> None:
    """-0 is equal to 0, but is not the same: `abs` keeps none of the signs of `negate`."""
    other = fusion(f"ROOT n = f32[{SIZE}] abs(p)")
    found = compared([NEGATE, other], [ThreadWork(4, 2), ThreadWork(4)])
    assert found.startswith("argument 1: ")
    assert " elements differ, the first at " in found


@pytest.mark.parametrize("element", [0, SIZE // 2, SIZE - 1])
def test_one_wrong_element_is_found(element: int) -> None:
    other = fusion(f"""
        i = s32[{SIZE}] iota(), iota_dimension=0
        k = s32[] constant({element})
        b = s32[{SIZE}] broadcast(k), dimensions={{}}
        c = pred[{SIZE}] compare(i, b), direction=EQ
        n = f32[{SIZE}] negate(p)
        m = f32[{SIZE}] negate(n)
        ROOT s = f32[{SIZE}] select(c, m, n)""")
    found = compared([other, NEGATE], [ThreadWork(4, 2), ThreadWork(4)])
    assert found.startswith("argument 1: 1 of ")
    assert found.endswith(f"the first at {element}")


def test_an_element_that_is_not_written_is_found() -> None:
    """A kernel with half of the blocks leaves half of the elements as they were."""
    ir = compile(NEGATE, stage="xla_gpu").code
    half = ir.replace("bl_x in [0, 2050]", "bl_x in [0, 1024]")
    assert half != ir
    kernel = planned(NEGATE)
    found = disagreement(parse_ir(ir), parse_ir(half), kernel.view, kernel.arguments)
    assert found == "argument 1: the other kernel's blocks write other elements"


def test_complex_sums_are_near_by_their_modulus() -> None:
    right = np.array([3 + 4j, 1e-3 + 1j, 2 + 1j], np.complex64)
    found = right * np.array([1 + 4e-7, 1 + 4e-7j, 1 + 4e-6], np.complex64)
    assert are_near(found, right, 1e-6).tolist() == [True, True, False]
    assert positive(np.array([-3 + 4j, 3 - 4j], np.complex64)).tolist() == [3 + 4j, 3 + 4j]
