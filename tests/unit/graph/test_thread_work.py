"""The candidates for what a thread of a loop kernel computes: which there are, and that each visits every element once."""

import pytest

from xla_emitters.device import device
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.thread_work import (
    ThreadWork,
    blocks_of_same_work,
    elements_per_thread,
    may_unroll,
    thread_works,
)
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo


def view(body: str) -> FusionView:
    return view_of(entry_of(parse_hlo(f"ENTRY f {{\n{body}\n}}")))


def works(body: str, target: str = "h200") -> list[str]:
    fusion, chip = view(body), device(target)
    return [str(work) for work in thread_works(fusion, chip, elements_per_thread(fusion, chip))]


def negated(array: str) -> str:
    return f"p = {array} parameter(0)\nROOT n = {array} negate(p)"


@pytest.mark.parametrize(
    ("array", "target", "found"),
    [
        # Accesses of 8 or 16 bytes; one of 32 is two of 16.
        ("bf16[6,512,4096]", "h200", ["4", "2 x 4", "8", "2 x 8"]),
        ("f32[6,512,4096]", "h200", ["4", "2", "2 x 2", "2 x 4"]),
        ("s8[6,512,4096]", "h200", ["4", "8", "2 x 8", "16", "2 x 16"]),
        ("f64[6,512,4096]", "h200", ["4", "1", "2 x 1", "2", "2 x 2"]),
        # Accesses of 32 bytes.
        ("f32[6,512,4096]", "b200", ["8", "2", "2 x 2", "4", "2 x 4", "2 x 8"]),
        # Only what divides: a vector of four needs a multiple of four elements.
        ("bf16[2000004]", "h200", ["4", "2 x 4"]),
        ("f32[2000002]", "h200", ["2", "2 x 2"]),
        ("f32[2000001]", "h200", ["1"]),
        # Too few elements to fill the GPU: one a thread by XLA's choice.
        ("f32[20,40,300]", "h200", ["1", "2", "2 x 2", "4", "2 x 4"]),
    ],
)
def test_candidates(array: str, target: str, found: list[str]) -> None:
    assert works(negated(array), target) == found


def test_all_large_arrays_count() -> None:
    """f32 to bf16: eight elements are two accesses of 16 bytes to read, and one to write."""
    body = "p = f32[6,512,4096] parameter(0)\nROOT c = bf16[6,512,4096] convert(p)"
    assert works(body) == ["4", "2", "2 x 2", "2 x 4", "8", "2 x 8"]


def test_long_code_is_not_repeated() -> None:
    window = "reduce-window(p, z), window={size=1x9 pad=0_0x4_4}, to_apply=add"
    body = f"p = f32[4096,4096] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[4096,4096] {window}"
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    ops = [op for op in parse_hlo(f"{add}ENTRY f {{\n{body}\n}}").ops if isinstance(op, ComputationOp)]
    assert [str(work) for work in thread_works(view_of(ops[-1]), device("h200"), 1)] == ["1"]


@pytest.mark.parametrize("work", [ThreadWork(1, 2), ThreadWork(8), ThreadWork(2, 2), ThreadWork(8, 2)])
def test_blocks_of_the_same_work(work: ThreadWork) -> None:
    """By enumeration: the blocks of 4 elements a thread that visit what each block visits."""
    elements, own = 5112, ThreadWork(4)
    visits = [by_element(elements, each) for each in (work, own)]
    launches = [launch_for(elements, each.total, device("h200")) for each in (work, own)]
    for block in set(visits[0]):
        wanted = {other for mine, other in zip(*visits, strict=True) if mine == block}
        assert set(blocks_of_same_work([block], work, launches[0], own, launches[1])) >= wanted
        assert len(blocks_of_same_work([block], work, launches[0], own, launches[1])) <= len(wanted) + work.rounds


def by_element(elements: int, work: ThreadWork) -> list[int]:
    """The block that visits each element."""
    launch = launch_for(elements, work.total, device("h200"))
    visited = work_item_map(launch, (elements,), (0,), work.elements)
    number = [name for name, _ in launch.ids].index("bl_x")
    found = [-1] * elements
    for dims, symbols in visited.points():
        found[visited.evaluate(dims, symbols)[0]] = dims[number]
    return found


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
    made = view_of(entry_of(module))
    assert may_unroll(made) is not heavy


def test_a_concatenate_of_ten_is_not_heavy():
    body = f"p = f32[104857] parameter(0)\nROOT c = f32[1048570] concatenate({', '.join(['p'] * 10)}), dimensions={{0}}"
    assert may_unroll(view(body))
