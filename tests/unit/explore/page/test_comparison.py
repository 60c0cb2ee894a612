"""XLA's column of the page, from XLA's recorded log of GELU: rows, texts, and what a browser shows of them."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools_here import PTX, needs

from xla_emitters.explore.compare.compare import Comparison, KernelComparison, KernelFigures, compiled
from xla_emitters.explore.compare.compare_report import report_text
from xla_emitters.explore.compare.pass_rows import compare_passes
from xla_emitters.explore.compare.xla_log import parse_log
from xla_emitters.explore.page.comparison import with_comparison
from xla_emitters.explore.page.data import Chunks, program_data
from xla_emitters.explore.page.write import page_html
from xla_emitters.pipelines.compiler import compile, read_module
from xla_emitters.pipelines.options import CompileOptions

GELU = Path(__file__).parents[3] / "corpus" / "reference" / "gelu"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)

pytestmark = needs(*PTX)


@pytest.fixture(scope="module")
def found() -> Comparison:
    ((kernel, passes),) = compiled(read_module(GELU / "input.hlo"), CompileOptions())
    rows = compare_passes(passes, parse_log((GELU / "passes.mlir.log").read_text()))
    ours = KernelFigures(
        kernel.launch.grid, kernel.launch.block, 23, 101, 0, 0, 0, 0, {8: 1}, {8: 1}, {}, 125, "both;\nours;"
    )
    return Comparison(
        "gelu",
        "h200",
        (KernelComparison(kernel.name, rows, ours, replace(ours, registers=29, ptx="both;\nxlas;")),),
        (),
        (),
    )


@pytest.fixture(scope="module")
def page(found: Comparison) -> tuple[dict[str, Any], list[str]]:
    program = compile(GELU / "input.hlo", cache=False, stage="llvm-dialect", record="passes")
    chunks = Chunks()
    return with_comparison(program_data(program, chunks), found, chunks), chunks.texts


def test_rows_are_those_of_the_report(found: Comparison, page: tuple[dict[str, Any], list[str]]) -> None:
    """The same passes with the same words as `compare` prints, and both texts of each that XLA's log has."""
    (unit,), texts = page[0]["units"], page[1]
    printed, kernel = report_text(found).splitlines(), found.kernels[0]
    for row in unit["xla"]["rows"]:
        number: int = row["number"]
        (line,) = [line for line in printed if line.split()[:1] == [str(number)]]
        assert line.endswith(row["verdict"])
        state = kernel.passes[number]
        numbers: list[int] | None = row["texts"]
        if numbers:
            assert [texts[n].split("\n") for n in numbers] == [state.lines()[1], state.lines()[0]]
        else:
            assert state.found is None
    assert ["registers", "23", "29"] in unit["xla"]["numbers"]
    assert [texts[n] for n in unit["xla"]["ptx"]] == ["both;\nxlas;", "both;\nours;"]


def test_a_page_opens_on_what_differs(found: Comparison, page: tuple[dict[str, Any], list[str]]) -> None:
    """On the column of XLA, and on the kernel with most differences: one whose code is the same is not it."""
    assert page[0]["view"] == "xla"
    (kernel,) = found.kernels
    same = replace(kernel, name="same", xla=kernel.ours, passes=())
    (unit,) = page[0]["units"]
    index = {**page[0], "units": [{**unit, "name": "alone"}, {**unit, "name": "same"}, unit]}
    both = replace(found, kernels=(same, kernel))
    assert with_comparison(index, both, Chunks())["first"] == 2


def test_a_kernel_that_xla_lacks_has_no_column(page: tuple[dict[str, Any], list[str]]) -> None:
    alone = Comparison("gelu", "h200", (), ("fusion",), ("sorted",))
    index = with_comparison(page[0], alone, Chunks())
    assert [unit["xla"] for unit in index["units"]] == [None]
    assert index["xla"] == {"only_ours": ("fusion",), "only_xla": ("sorted",)}


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_both_sides(page: tuple[dict[str, Any], list[str]], tmp_path: Path) -> None:
    """Numbers, passes, and both PTX texts, what is different marked; a page without XLA has no such tab.

    Without an address the page opens on the first of XLA's states that differs.
    """
    file, plain = tmp_path / "page.html", tmp_path / "plain.html"
    file.write_text(page_html(*page), "utf-8")
    plain.write_text(page_html({**page[0], "xla": None}, page[1]), "utf-8")
    command = [CHROMIUM or "", "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000"]
    shown, first, without = (
        subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, timeout=60)
        for address in (f"{file.as_uri()}#view=xla&point=ptx", file.as_uri(), f"{plain.as_uri()}#view=xla")
    )
    differs = next(row for row in page[0]["units"][0]["xla"]["rows"] if row["kind"] == "differs")
    assert re.search(rf'<tr class="on differs" tabindex="0"><td>{differs["number"]}</td>', first.stdout)
    assert "<td>registers</td><td>29</td><td>23</td>" in shown.stdout
    assert "<td>xla-gpu-convert-index-type</td>" in shown.stdout
    assert 'class="l gone"' in shown.stdout
    assert "xlas;" in shown.stdout
    assert 'class="l come"' in shown.stdout
    assert "ours;" in shown.stdout
    assert 'data-ready="yes"' in without.stdout
    assert 'data-view="xla"' not in without.stdout
