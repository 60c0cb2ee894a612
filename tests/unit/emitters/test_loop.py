"""The loop emitter: what its FileCheck files do not show. (One loop, one call, all values before the first insert: `two_results.hlo`.)"""

import pytest
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from xla_emitters.device import device
from xla_emitters.dialects.xla_gpu import LoopOp, PureCallOp
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import view_of
from xla_emitters.text.hlo import parse_hlo


def emitted(body: str, target: str = "h200") -> ModuleOp:
    computation = entry_of(parse_hlo(f"ENTRY f {{\n{body}\n}}"))
    module = emit_fusion(view_of(computation), device(target))
    module.verify()
    return module


def loop_of(module: ModuleOp) -> LoopOp:
    (loop,) = (op for op in module.walk() if isinstance(op, LoopOp))
    return loop


@pytest.mark.tiny
def test_one_result_as_two_outputs():
    body = "p = f32[64] parameter(0)\na = f32[64] negate(p)\nROOT t = (f32[64], f32[64]) tuple(a, a)"
    loop = loop_of(emitted(body))
    (call,) = (op for op in loop.walk() if isinstance(op, PureCallOp))
    assert len(call.results) == 2


def test_gelus_grid_on_blackwell_is_of_sixteen_elements_a_thread():
    loop = loop_of(emitted("p = bf16[6,512,4096] parameter(0)\nROOT a = bf16[6,512,4096] negate(p)", "b200"))
    assert str(loop.map) == (
        "(th_x, bl_x)[vector_index] -> ("
        "bl_x floordiv 1024, (bl_x floordiv 2) mod 512, (bl_x mod 2) * 2048 + th_x * 16 + vector_index), "
        "domain: th_x in [0, 127], bl_x in [0, 6143], vector_index in [0, 15]"
    )


def test_functions_say_that_all_elements_of_a_thread_are_unrolled():
    """The tanh of 16 elements is too much code to be copied 16 times by its size alone; XLA passes 16 to the pass that unrolls."""
    body = "p = bf16[6,512,4096] parameter(0)\na = bf16[6,512,4096] tanh(p)\nROOT b = bf16[6,512,4096] tanh(a)"
    module = emitted(body, "b200")
    assert {str(function.attributes["xla.unroll_factor"]) for function in module.ops} == {"16 : index"}
    assert not any("xla.unroll_factor" in function.attributes for function in emitted(body, "h200").ops)
    assert "scf.for" not in xe.compile(f"fusion {{\n{body} }}", target="b200", stage="unrolled").trace["unrolled"].ir


def test_an_empty_result_is_a_kernel_that_writes_nothing():
    assert loop_of(emitted("p = f32[0,4] parameter(0)\nROOT a = f32[0,4] negate(p)")).map.is_known_empty
