"""How many elements a thread computes, rule by rule; `test_corpus` holds the launches of real fusions to XLA's."""

from __future__ import annotations

import pytest

from xla_emitters.device import device
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.graph.unroll import elements_per_thread, may_unroll
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo


def view(body: str) -> FusionView:
    return view_of(next(op for op in parse_hlo(f"ENTRY f {{\n{body}\n}}").ops if isinstance(op, ComputationOp)))


def filled(results: list[str]) -> FusionView:
    """A fusion with these results, whatever they hold."""
    lines = [f"p{i} = {text.split('[')[0]}[] parameter({i})" for i, text in enumerate(results)]
    lines += [f"r{i} = {text} broadcast(p{i}), dimensions={{}}" for i, text in enumerate(results)]
    root = ", ".join(f"r{i}" for i in range(len(results)))
    return view("\n".join([*lines, f"ROOT t = ({', '.join(results)}) tuple({root})"]))


@pytest.mark.parametrize(
    ("result", "target", "unroll"),
    [
        ("bf16[6,512,4096]", "a6000", 4),
        ("bf16[6,512,4096]", "h200", 4),
        ("bf16[6,512,4096]", "b200", 16),
        ("f32[6,512,4096]", "b200", 8),
        ("s8[6,512,4096]", "b200", 32),
        # 64 bits are not below a quarter of the widest access.
        ("f64[6,512,4096]", "b200", 4),
        ("f64[6,512,4096]", "h200", 4),
        # 240,000 elements fill an a6000 and not an h200.
        ("f32[20,40,300]", "a6000", 4),
        ("f32[20,40,300]", "h200", 1),
        ("f32[20]", "h200", 1),
        # Only powers of two that divide.
        ("s8[1000003]", "h200", 1),
        ("f32[1000002]", "h200", 2),
        # Whoever writes a byte writes all of it.
        ("s4[7]", "h200", 2),
        ("s2[7]", "h200", 4),
    ],
)
def test_unroll(result: str, target: str, unroll: int):
    assert elements_per_thread(filled([result]), device(target)) == unroll


def test_blackwell_looks_at_parameters_too():
    """The widest element on either side must fit: 256 / 64 = 4, and never less than 8."""
    made = view("p = f64[16777216] parameter(0)\nROOT r = f32[16777216] convert(p)")
    assert elements_per_thread(made, device("b200")) == 8


def test_blackwell_does_not_widen_with_two_results():
    assert elements_per_thread(filled(["bf16[16777216]", "bf16[16777216]"]), device("b200")) == 4


def test_blackwell_does_not_widen_beyond_what_a_transpose_keeps_together():
    body = "p = bf16[4096,4096,{n}] parameter(0)\nROOT t = bf16[4096,4096,{n}] transpose(p), dimensions={{1,0,2}}"
    assert elements_per_thread(view(body.format(n=32)), device("b200")) == 16
    assert elements_per_thread(view(body.format(n=8)), device("b200")) == 8
    # Dimensions of size 1 are not there.
    body = "p = bf16[4096,4096,32,1] parameter(0)\nROOT t = bf16[4096,4096,1,32] transpose(p), dimensions={1,0,3,2}"
    assert elements_per_thread(view(body), device("b200")) == 16


def test_pad_on_blackwell():
    body = "p = s8[16777200] parameter(0)\nz = s8[] constant(0)\nROOT t = s8[16777216] pad(p, z), padding=0_16"
    assert elements_per_thread(view(body), device("b200")) == 8


HEAVY = {
    "dot": """p = f32[1024,1024] parameter(0)
        ROOT d = f32[1024,1024] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "concatenate of eleven": f"""p = f32[100000] parameter(0)
        ROOT c = f32[1100000] concatenate({", ".join(["p"] * 11)}), dimensions={{0}}""",
}


@pytest.mark.parametrize("body", HEAVY.values(), ids=HEAVY)
def test_fusions_that_work_hard_per_element_are_not_unrolled(body: str):
    assert not may_unroll(view(body))
    assert elements_per_thread(view(body), device("h200")) == 1


@pytest.mark.parametrize(("size", "heavy"), [(8, False), (9, True)])
def test_a_window_of_more_than_eight_elements_is_heavy(size: int, heavy: bool):
    module = parse_hlo(f"""
        sum {{ a = f32[] parameter(0)
               b = f32[] parameter(1)
               ROOT s = f32[] add(a, b) }}
        ENTRY f {{ p = f32[1048576] parameter(0)
                  z = f32[] constant(0)
                  ROOT r = f32[{1048576 - size + 1}] reduce-window(p, z), window={{size={size}}}, to_apply=sum }}""")
    made = view_of(next(op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry))
    assert may_unroll(made) is not heavy


def test_a_concatenate_of_ten_is_not_heavy():
    body = f"p = f32[104857] parameter(0)\nROOT c = f32[1048570] concatenate({', '.join(['p'] * 10)}), dimensions={{0}}"
    assert may_unroll(view(body))
