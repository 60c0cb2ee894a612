"""Costs as text: short, aligned, complete."""

from dataclasses import replace

from unit.pricing.example import EXAMPLE
from unit.pricing.test_call_prices import GEMM

from xla_emitters.device import device
from xla_emitters.pricing.call_prices import CallCost, price_call
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.report import ProgramCost, kernel_text, program_text
from xla_emitters.support.units import bytes_text, microseconds


def test_figures_have_units() -> None:
    assert [microseconds(time) for time in (0.5, 12.34, 2410.7)] == ["0.50 us", "12.3 us", "2,411 us"]
    assert [bytes_text(size) for size in (12, 50_331_648, 2 * 10**9)] == ["12 B", "50.3 MB", "2 GB"]


def test_one_kernel_is_a_column_a_device() -> None:
    other = replace(EXAMPLE, target="a6000", registers=25, spills=8, stack=16, unknown_loops=1)
    title, *rows = kernel_text([EXAMPLE, other]).splitlines()
    assert title == "kernel fusion"
    starts = {row.index(cell) for row, cell in zip(rows, ("h200", "14.0 us", "11.0 us"), strict=False)}
    assert len(starts) == 1
    assert "a6000" in rows[0]
    text = "\n".join(rows)
    assert "24, no spills" in text
    assert "25, 8 bytes spilled, 16 bytes of stack" in text
    assert "at most 60, 1 unknown loops once" in text
    assert "12 kB a multiprocessor, 16 kB needed" in text
    assert len(rows) < 40
    assert not any(row.strip().startswith(("shared memory", "bank conflicts")) for row in rows)


def program(*kernels: KernelCost, calls: tuple[CallCost, ...] = (), unpriced: tuple[str, ...] = ()) -> ProgramCost:
    return ProgramCost("h200", kernels, calls, unpriced, is_estimate=bool(unpriced))


def test_of_several_the_longest_is_first_and_launches_count() -> None:
    often = replace(EXAMPLE, name="often", time=2.0, time_low=1.0, time_high=3.0, launches=10)
    lines = program_text("m", program(EXAMPLE, often, unpriced=("expect", "expect", "allocate"))).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["kernel", "often", "fusion"]
    assert lines[4] == "in all: 34.0 us, between 21.0 us and 55.0 us"
    assert "every branch" in lines[5]
    assert lines[6] == "not priced: library calls expect (2), allocate"


def test_calls_are_rows_between_the_kernels() -> None:
    sort = price_call("sort", "sort.1", {}, [("f32", (10**6,))], [("f32", (10**6,))], device("h200"))
    gemm = price_call("gemm", "dot.1", GEMM, [("bf16", (4096, 4096))] * 2, [("bf16", (4096, 4096))], device("h200"))
    assert sort is not None
    assert gemm is not None
    lines = program_text("m", program(EXAMPLE, calls=(sort, gemm))).splitlines()
    assert [line.split()[:2] for line in lines[2:5]] == [["gemm", "bf16"], ["fusion", "1"], ["sort", "sort.1"]]
    assert lines[2].split()[4:6] == ["187", "us"]
    assert lines[-1] == "priced by their bytes alone, at least: sort"


def test_a_program_without_kernels_says_so() -> None:
    assert program_text("m", program()).splitlines()[-1] == "no kernels"
