"""`repr` and the card of programs: one screen for any of them, dearest work first, by times that are computed here by hand."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import xla_emitters as xe
from xla_emitters.device import device
from xla_emitters.program import Argument, ArraySpec, Compiled, Kernel, LaunchDimensions, LibraryCall, Program
from xla_emitters.program.outline import MOST_LINES, Outline, Work, least_time, product_operations
from xla_emitters.program.steps import Branch, Call, Launch, Loop, NumberSlot, Step

EXAMPLES = Path(__file__).parents[3] / "examples"
UNBOUNDED = str(-(2**63))
CARD_BYTES = 200_000
MANY = 3000
H200 = device("h200")


def array(*shape: int, dtype: str = "f32") -> ArraySpec:
    return ArraySpec(dtype, shape, tuple(reversed(range(len(shape)))))


def kernel(name: str, elements: int, blocks: int = 1000) -> Kernel:
    """A kernel that reads and writes `elements` f32."""
    arguments = tuple(
        Argument(kind, 0, array(elements), 4 * elements, 16, number, kind == "result")
        for number, kind in enumerate(("parameter", "result"))
    )
    return Kernel(name, "", "sm_90", LaunchDimensions((blocks, 1, 1), (256, 1, 1)), 0, arguments)


def launch(kernel: Kernel) -> Step:
    return Launch(kernel.name, kernel.launch.grid, kernel.launch.block, 0, ())


def program(*parts: Kernel | Step, kernels: Sequence[Kernel] = (), calls: Sequence[LibraryCall] = ()) -> Program:
    """Steps, and launches of kernels."""
    steps = tuple(launch(part) if isinstance(part, Kernel) else part for part in parts)
    own = (part for part in parts if isinstance(part, Kernel))
    return Program("m", "h200", (array(8),), (array(8),), Compiled((), steps, (*own, *kernels), tuple(calls)))


def check_size(value: object) -> list[str]:
    """The lines of a value's `repr`, which fits on a screen, as its card does."""
    said, card = repr(value), value._repr_html_()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    assert len(said.splitlines()) <= MOST_LINES
    assert len(said) < 5000
    assert len(card) < CARD_BYTES  # pyright: ignore[reportUnknownArgumentType]
    assert UNBOUNDED not in said
    return said.splitlines()


@pytest.mark.tiny
def test_times_are_the_longer_of_bytes_and_products() -> None:
    """4.8 MB at 4.8 TB/s is 1 us; 2 * 4096^3 operations at 989.4 10^12 a second are 138.9 us; a launch is 2 us."""
    assert least_time(H200, 4.8e6) == pytest.approx(3.0)
    assert product_operations([(4096, 4096)] * 3) == pytest.approx(2 * 4096**3)
    assert product_operations([(5, 3, 7), (5, 7, 11), (5, 3, 11)], batch=5) == pytest.approx(2 * 5 * 3 * 7 * 11)
    found = least_time(H200, 3 * 2 * 4096**2, 2 * 4096**3, "bf16")
    assert found == pytest.approx(2 + 2 * 4096**3 / 989.4e6, rel=1e-6)


def test_the_dearest_is_first_and_shares_are_of_all_runs() -> None:
    """3 + 5 * 4 + 2.01 us: of small, ten and twenty times 4.8 MB; a loop's body counts as often as it runs."""
    less, body = kernel("less", 1), kernel("body", 1_200_000)
    loop = Loop("while", (launch(less),), NumberSlot(0), (launch(body),), (), trips=5)
    found = program(kernel("first", 600_000), loop, kernels=[less, body])
    rows = [(work.name, work.runs, round(work.time or 0, 2)) for work in found.outline.by_price()]
    assert rows == [("body", 5, 4.0), ("less", 5, 2.0), ("first", 1, 3.0)]
    lines = repr(found).splitlines()
    assert lines[0] == "m for h200: 3 kernels, 33.0 us"
    assert lines[3].split()[:5] == ["61%", "4.00", "us", "x", "5"]


def test_a_call_is_priced_by_its_product() -> None:
    a, b, c = (array(4096, 4096, dtype="bf16") for _ in range(3))
    call = LibraryCall("gemm", "dot.1", (a, b), (c,), {"lhs_batch": []})
    (work,) = program(Call(0, "dot.1", (), ()), calls=[call]).outline.work
    assert (work.name, work.how) == ("dot.1", "call gemm")
    assert work.time == pytest.approx(140.9, rel=1e-3)


def test_any_program_is_one_screen() -> None:
    """Thousands of kernels with long names and long types, and loops and branches that data decides."""
    inner = tuple(kernel(f"{'very_long_name_' * 20}{n}", n + 1, blocks=1) for n in range(MANY))
    same = kernel("same", 10)
    loops = tuple(Loop(f"while.{n}", (), NumberSlot(0), (launch(same),), ()) for n in range(50))
    branch = Branch("conditional.1", NumberSlot(1), (tuple(map(launch, inner)), loops), ())
    many = replace(
        program(branch, kernels=[*inner, same]),
        name="n" * 5000,
        parameters=(array(*range(100)),) * 900,
        results=(array(8),) * 900,
        left_out=("c",) * 999,
    )
    lines = check_size(many)
    assert any(line.strip().endswith("of the time") for line in lines)
    assert any("no known length" in line or "unusual" in line for line in lines)


def test_unusual_launches_of_many_kernels_are_one_line() -> None:
    few = [kernel(f"k{number}", 1 << 20, blocks=4) for number in range(9)]
    (said,) = program(*few, kernel("wide", 1 << 20)).outline.unusual()
    assert said == "90%: fewer blocks than half of the 132 multiprocessors: k0, k1 and 7 more"
    assert not program(kernel("tiny", 16, blocks=1)).outline.unusual()


def test_low_occupancy_is_of_threads_and_shared_memory() -> None:
    """An H200 holds 2,048 threads, 32 blocks and 228 KiB a multiprocessor: 32 blocks of 16; 2 blocks of 256 with 100 KiB each."""
    few, shared, full = (kernel(name, 1 << 20) for name in ("few", "shared", "full"))
    few = replace(few, launch=LaunchDimensions((1000, 1, 1), (16, 1, 1)))
    shared = replace(shared, shared_bytes=100 << 10)
    assert program(few, shared, full).outline.unusual() == [
        "33%: occupancy at most 25%: 16 threads and 0 bytes of shared memory a block: few",
        "33%: occupancy at most 25%: 256 threads and 102400 bytes of shared memory a block: shared",
    ]


@pytest.mark.parametrize("name", ["gelu.hlo", "two_outputs.hlo", "modules/loop.hlo", "softmax.mlir"])
def test_programs_of_both_kinds_have_the_same_shape(name: str) -> None:
    stage = {"hlo": "xla_gpu", "mlir": "host"}[name.rpartition(".")[2]]
    found = xe.compile(str(EXAMPLES / name), stage=stage)
    lines = check_size(found)
    assert re.search(r" for h200: .*(one kernel|\d+ kernels?)", lines[0])
    assert lines[1].lstrip().startswith("(")
    assert lines[2].split()[:4] == ["share", "time", "what", "how"]
    assert lines[-1].lstrip().startswith("more: print(p.explain())")
    for trace in found.traces:
        check_size(trace)


def test_a_program_without_kernels_says_where_it_stopped() -> None:
    """Stages before there are kernels, of both kinds."""
    for name in ("gelu.hlo", "softmax.mlir"):
        lines = check_size(xe.compile(str(EXAMPLES / name), stage="hlo"))
        assert "compiled to the stage 'hlo', where it has no kernels yet" in lines[0]


def test_times_that_data_decides_are_not_guessed() -> None:
    """Work without a size is last, and the shares are of the rest."""
    outline = Outline("m", (Work("a", "kLoop", "", 1, None), Work("b", "kLoop", "", 1, 3.0)))
    assert [line.split() for line in outline.table(5)] == [
        ["share", "time", "what", "how"],
        ["100%", "3.00", "us", "b", "kLoop"],
        ["?", "data", "decides", "a", "kLoop"],
    ]


def test_assumed_sizes_are_named_and_inside_their_bounds() -> None:
    found = xe.compile(str(EXAMPLES / "causal_attention.mlir"), stage="host")
    assert any("at b = 128, s = 128, which is assumed" in line for line in check_size(found))
