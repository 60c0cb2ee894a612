"""The page's data: every step, text and line is there; accesses are those of the launch.
In a browser: a click highlights the related lines.
"""

import base64
import gzip
import json
import math
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chromium import MISSING, browser
from in_process import messages
from long_lists import but_long
from tools_here import SASS, needs

from xla_emitters.explore.page.data import Chunks, by_time, program_data
from xla_emitters.explore.page.write import page_html
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.program.outline import Work
from xla_emitters.tools import page_index
from xla_emitters.tools.main import main

EXAMPLES = Path(__file__).parents[4] / "examples"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)


@pytest.fixture(scope="module")
def gelu() -> tuple[Program, dict[str, Any], list[str]]:
    program, chunks = compile(EXAMPLES / "gelu.hlo", cache=False, stage="llvm-dialect", record="passes"), Chunks()
    return program, program_data(program, chunks), chunks.texts


def unpacked(page: str, name: str) -> str:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    return gzip.decompress(base64.b64decode(found[1])).decode()


@pytest.mark.tiny
def test_a_page_has_every_text_once(tmp_path: Path) -> None:
    """Packed: nothing of it is read before it is looked at."""
    index = {"title": "<a>", "units": []}
    page = page_html(index, ["</script> & é", "two"])
    assert "<title>&lt;a&gt;</title>" in page
    assert [unpacked(page, name) for name in ("c0", "c1")] == ["</script> & é", "two"]
    assert json.loads(unpacked(page, "index")) == index
    assert not re.search(r"(?:src|href)=(?!\"data:)|https?://", page.replace("http://www.w3.org", ""))


def test_every_step_is_there_with_its_lines(gelu: tuple[Program, dict[str, Any], list[str]]) -> None:
    program, data, texts = gelu
    (unit,) = data["units"]
    for step, shown in zip(program.trace, unit["steps"], strict=True):
        if step.stage == "sass":
            continue  # without the directives before the first instruction: test_own_code
        assert texts[shown["text"]] == step.ir
        sources = json.loads(texts[shown["lines"]])["s"]
        assert [tuple(unit["names"][n] for n in line) for line in sources] == list(step.sources)
    changed = [step["changed"] for step in unit["steps"]]
    assert changed == list(program.trace.changed())
    assert len(texts) < 2 * len(changed)


def test_accesses_are_those_of_the_launch(gelu: tuple[Program, dict[str, Any], list[str]]) -> None:
    """GELU: thread t of block b reads and writes four bf16 at element b * 512 + t * 4."""
    program, data, texts = gelu
    found = json.loads(texts[data["units"][0]["threads"]])
    assert (found["blocks"], found["threads"]) == ([0, 12288, 24575], 128)
    read, written = found["accesses"]
    assert ([read["store"], written["store"]], read["bytes"], written["bytes"]) == ([False, True], 8, 8)
    lines = program.trace.lines("llvm-dialect")
    assert "llvm.load" in lines[read["line"] - 1].text
    assert "llvm.store" in lines[written["line"] - 1].text
    for row in (read, written):
        assert [run[2] for run in row["runs"]] == [
            [(block * 512 + thread * 4) * 2 for thread in range(128)] for block in found["blocks"]
        ]


def test_the_graph_is_the_fusion(gelu: tuple[Program, dict[str, Any], list[str]]) -> None:
    nodes = gelu[1]["units"][0]["graph"]
    by_name = {node["name"]: node for node in nodes}
    assert [nodes[n]["name"] for n in by_name["cube"]["reads"]] == ["square", "param"]
    assert [node["name"] for node in nodes if node["root"]] == ["multiply_0"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of an example, made once."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def page_of(name: str) -> Path:
        path = folder / f"{Path(name).stem}.html"
        assert main(["show", str(EXAMPLES / name), "-o", str(path)]) == 0
        return path

    return page_of


@pytest.mark.parametrize("name", but_long(["modules/loop.hlo", "softmax.mlir"], ["softmax.mlir"]))
def test_modules_and_programs_have_pages(name: str, shown: Callable[[str], Path]) -> None:
    index = json.loads(unpacked(shown(name).read_text("utf-8"), "index"))
    assert index["units"]
    assert all(unit["steps"] for unit in index["units"])


def test_a_program_has_a_unit_for_itself_and_for_each_kernel(tmp_path: Path) -> None:
    """Of a kernel the passes from buffers on; ops of the LLVM dialect name the instructions of StableHLO."""
    path = tmp_path / "page.html"
    assert "--sizes d0=2\n" in messages(1, "show", EXAMPLES / "dense.mlir", "--check", "-o", path)
    assert main(["show", str(EXAMPLES / "dense.mlir"), "--sizes", "d0=5", "--check", "-o", str(path)]) == 0
    page = path.read_text("utf-8")
    index = json.loads(unpacked(page, "index"))
    program, *kernels = index["units"]
    assert index["verdict"]["ok"]
    judged = {step["stage"]: step["verdict"] for step in program["steps"] if step["stage"]}
    assert judged.pop("stablehlo") is None
    assert set(judged.values()) == {"ok"}
    assert {node["op"] for node in program["graph"] if not node["hidden"]} >= {"dot", "tanh", "add", "parameter"}
    hidden = {node["op"] for node in program["graph"] if node["hidden"]}
    assert "get-dimension-size" in hidden
    assert not hidden & {"dot", "tanh", "parameter", "dynamic-broadcast-in-dim"}
    assert {node["type"] for node in program["graph"] if node["op"] == "dot"} == {"f32[d0,8]"}
    assert kernels
    for unit in kernels:
        stages = {step["stage"]: step for step in unit["steps"] if step["stage"]}
        assert "kernels" in stages
        # As `cost` prints them, with units.
        assert ["target", "h200"] in unit["cost"]
        assert dict(unit["cost"])["expected time"].endswith(" us")
        sources = json.loads(unpacked(page, f"c{stages['llvm-dialect']['lines']}"))["s"]
        assert {"result", "sum"} <= {unit["names"][number] for line in sources for number in line}


def texts_of(unit: dict[str, Any]) -> list[str]:
    """The names of the steps whose IR is in the page, with their stages."""
    return [f"{step['name']} {step['stage'] or ''}".strip() for step in unit["steps"] if step["text"] is not None]


def test_only_the_dearest_kernels_have_every_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel has the first and the last IR and its code; that of the passes between is in the page for as many as were asked for.

    All in this process: another one would start an LLVM of its own.
    """
    monkeypatch.setattr(page_index, "thread_count", lambda: 1)
    path, two = tmp_path / "page.html", tmp_path / "two.mlir"
    two.write_text("""
      func.func public @main(%x: tensor<?xf32>, %y: tensor<?x4xf32>) -> (tensor<?xf32>, tensor<?x4xf32>) {
        %a = stablehlo.abs %x : tensor<?xf32>
        %b = stablehlo.negate %y : tensor<?x4xf32>
        return %a, %b : tensor<?xf32>, tensor<?x4xf32>
      }""")

    def units(kernels: str) -> list[dict[str, Any]]:
        assert main(["show", str(two), "-o", str(path), "--kernels", kernels]) == 0
        return json.loads(unpacked(path.read_text("utf-8"), "index"))["units"]

    everything = units("all")
    assert len(everything) > 2
    assert not any(unit["short"] for unit in everything)
    assert all(len(texts_of(unit)) == len(unit["steps"]) for unit in everything)
    program = units("0")[0]
    assert program["short"]
    assert {"hlo", "fused", "loops", "kernels"} <= {row.split()[-1] for row in texts_of(program)}
    assert len(texts_of(program)) < len(program["steps"])
    _, *kernels = units("1")
    (shown,) = (unit for unit in kernels if not unit["short"])
    assert kernels[json.loads(unpacked(path.read_text("utf-8"), "index"))["first"] - 1] == shown
    for unit, whole in zip(kernels, everything[1:], strict=True):
        assert [step["name"] for step in unit["steps"]] == [step["name"] for step in whole["steps"]]
        ends = [row for row in texts_of(whole) if row.split()[-1] in ("kernels", "llvm-dialect", "llvm", "ptx", "sass")]
        assert texts_of(unit) == (ends if unit["short"] else texts_of(whole))
    with pytest.raises(SystemExit, match="2"):
        main(["show", str(EXAMPLES / "softmax.mlir"), "-o", str(path), "--kernels", "some"])
    assert "'some' is neither a number nor 'all'" in capsys.readouterr().err
    assert "--kernels is for programs" in messages(2, "show", EXAMPLES / "negate_20.hlo", "-o", path, "--kernels", "2")


def test_kernels_that_run_come_first_then_one_of_each_fusion() -> None:
    names = ["a_vec4", "a", "b", "c"]
    works = [Work("a", "", "", 1, 2.0), Work("b", "", "", 4, 1.0), Work("c", "", "", 1, None)]
    assert by_time(names, works, None) == ["b", "a_vec4", "c", "a"]
    assert by_time(names, works, {"c": [], "a": []}) == ["c", "a", "b", "a_vec4"]


def test_a_page_opens_on_the_dearest_kernel(shown: Callable[[str], Path]) -> None:
    """loop.hlo runs %negated five times, in a loop; the page's other units are the module and kernels that run once."""
    index = json.loads(unpacked(shown("modules/loop.hlo").read_text("utf-8"), "index"))
    assert index["units"][index["first"]]["name"] == "negated"


@needs(*SASS)
def test_ptx_and_sass_of_a_kernel_are_its_own(shown: Callable[[str], Path]) -> None:
    """No entry of another kernel, no directive before the first instruction; origins are lines of the PTX that is shown."""
    page = shown("modules/loop.hlo").read_text("utf-8")
    index = json.loads(unpacked(page, "index"))
    kernels = [unit for unit in index["units"] if unit.get("launch")]
    names = {unit["name"].replace(".", "_") for unit in kernels}
    assert len(names) > 2
    for unit in kernels:
        own = unit["name"].replace(".", "_")
        stages = {step["stage"]: step for step in unit["steps"] if step["stage"]}
        ptx, sass = (unpacked(page, f"c{stages[stage]['text']}").split("\n") for stage in ("ptx", "sass"))
        assert [line.split()[2].rstrip("(") for line in ptx if ".entry" in line] == [own]
        assert sass[0] == f"{own}:"
        assert sass[1].split()[0] == "/*0000*/"
        assert not [line for line in sass if line.strip().startswith((".section", ".align", "//"))]
        lines = json.loads(unpacked(page, f"c{stages['sass']['lines']}"))
        assert len(lines["o"]) == len(lines["s"]) == len(sass)
        stores = [ptx[origin - 1] for line, origin in zip(sass, lines["o"], strict=True) if " STG" in line and origin]
        assert stores
        assert all("st.global" in line for line in stores)


def test_accesses_of_a_program_are_those_of_its_launch(tmp_path: Path) -> None:
    """Of the kernel that runs at 5 rows of 8: each of the 40 results is written by one thread; kernels that do not run have no accesses."""
    path = tmp_path / "page.html"
    assert main(["show", str(EXAMPLES / "dense.mlir"), "--sizes", "d0=5", "-o", str(path)]) == 0
    page = path.read_text("utf-8")
    index = json.loads(unpacked(page, "index"))
    assert "at d0 = 5\n" in index["explain"]
    (unit,) = (unit for unit in index["units"] if unit.get("launch"))
    assert (unit["launch"]["launches"], [len(each["shape"]) for each in unit["arguments"]][-1]) == (1, 0)
    found = json.loads(unpacked(page, f"c{unit['threads']}"))
    stores = [row for row in found["accesses"] if row["store"]]
    (result,) = {row["buffer"] for row in stores}
    assert next(each["type"] for each in unit["arguments"] if each["name"] == result) == "f32[40]"
    written = [
        byte
        for row in stores
        for _, _, offsets in row["runs"]
        for offset in offsets
        if offset >= 0
        for byte in range(offset, offset + row["bytes"])
    ]
    assert sorted(written) == list(range(40 * 4))


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.long  # a browser opens a page of 20 MB
def test_twenty_megabytes_open_in_two_seconds(tmp_path: Path) -> None:
    """From the start of the navigation to the lines of all panes, the best of three tries: the machine may be busy."""
    lines = [f"    %{number} = llvm.fmul %{number - 1}, %arg{number % 7} : f32" for number in range(1, 3001)]
    chunks, steps = Chunks(), list[dict[str, Any]]()
    for number, stage in enumerate(("hlo", *(None,) * 196, "llvm-dialect", "ptx", "sass")):
        text = "\n".join((f"// pass {number}", *lines))
        steps.append({"name": f"pass{number}", "stage": stage, "changed": True, "ms": 1, "ops": 3000, "remarks": []})
        known = {"s": [[] for _ in range(3001)], "o": []}
        steps[-1] |= {"text": chunks.add(text), "lines": chunks.add_json(known), "decisions": [], "verdict": None}
    assert sum(map(len, chunks.texts)) > 20_000_000
    unit = {"name": "k", "names": [], "steps": steps, "verdict": None}
    page = tmp_path / "large.html"
    index = {"title": "large", "target": "h200", "explain": "", "verdict": None, "units": [unit]}
    watch = """<script>
      const timer = setInterval(() => {
        const rows = [...document.querySelectorAll(".pane")].map((pane) => pane.querySelectorAll(".l").length);
        if (rows.length < 4 || rows.some((count) => count < 20)) return;
        console.log(`opened after ${Math.round(performance.now())} ms`);
        clearInterval(timer);
      }, 5);
    </script></body>"""
    page.write_text(page_html(index, chunks.texts).replace("</body>", watch), "utf-8")
    assert any(milliseconds_until_opened(page, tmp_path / f"profile{number}") < 2000 for number in range(3))


def milliseconds_until_opened(page: Path, profile: Path) -> float:
    """What the page's own clock said when it wrote "opened after"; inf where it did not within 20 seconds."""
    command = [CHROMIUM or "", "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}", page.as_uri()], stderr=subprocess.PIPE, text=True
    )
    timer = threading.Timer(20, process.kill)
    timer.start()
    try:
        assert process.stderr is not None
        found = (re.search(r"opened after (\d+) ms", line) for line in process.stderr)
        return next((float(match[1]) for match in found if match), math.inf)
    finally:
        timer.cancel()
        process.terminate()
        process.wait()


def test_verdicts_of_stages(tmp_path: Path) -> None:
    assert main(["show", str(EXAMPLES / "negate_20.hlo"), "--check", "-o", str(tmp_path / "page.html")]) == 0
    index = json.loads(unpacked((tmp_path / "page.html").read_text("utf-8"), "index"))
    verdicts = {step["stage"]: step["verdict"] for step in index["units"][0]["steps"] if step["stage"]}
    assert verdicts["llvm-dialect"] == verdicts["scf"] == "ok"
    assert verdicts["partition"] is None


@needs(*SASS)
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_line_lights_its_kin_in_a_browser(shown: Callable[[str], Path]) -> None:
    """Of the line of PTX that multiplies for %cube: that instruction in HLO, ops, PTX and SASS, and no other."""
    command = [CHROMIUM or "", "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000"]
    address = f"{shown('gelu.hlo').as_uri()}#view=code&line=ptx:37"
    done = subprocess.run(
        [*command, "--window-size=1800,1000", "--dump-dom", address], capture_output=True, text=True, timeout=60
    )
    assert 'data-ready="yes"' in done.stdout
    lit = re.findall(r'class="l kin[12][^"]*" data-n="\d+"(?: title="([^"]*)")?', done.stdout)
    assert len(lit) > 10
    assert all("%cube" in title for title in lit)
    assert done.stdout.count("kin2") >= 3  # the line itself, its op, and at least one of SASS


@pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed")
def test_a_kernel_of_a_program_has_the_verdict_and_a_readable_difference(tmp_path: Path) -> None:
    """The page opens on a kernel: `check` judges the program; its passes end at the LLVM dialect. Nothing to hide: no box for it."""
    page = tmp_path / "page.html"
    assert main(["show", str(EXAMPLES / "dense.mlir"), "--sizes", "d0=5", "--check", "-o", str(page)]) == 0
    with browser() as chromium:
        chromium.open(f"{page.as_uri()}#view=diff")
        chromium.wait("document.querySelector('.tools select')")
        assert chromium.run("return document.querySelector('.bar .verdict').textContent") == "numbers ok"
        after = "return [...document.querySelectorAll('.tools select')][1].selectedOptions[0].textContent"
        assert chromium.run(after).startswith("llvm-dialect")
        chromium.run("document.querySelector('[data-view=threads]').click()")
        chromium.wait("document.querySelector('.launch p')")
        assert "(1 block)" in chromium.run("return document.querySelector('.launch p').textContent")
    (tmp_path / "negate.hlo").write_text("ENTRY f { p = f32[8] parameter(0)\n ROOT n = f32[8] negate(p) }")
    assert main(["show", str(tmp_path / "negate.hlo"), "-o", str(page)]) == 0
    with browser() as chromium:
        chromium.open(f"{page.as_uri()}#view=graph")
        chromium.wait("document.querySelectorAll('.node').length === 2")
        assert chromium.run("return getComputedStyle(document.querySelector('.tools label')).display") == "none"


@pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed")
def test_the_graph_after_a_pass_marks_what_it_made(shown: Callable[[str], Path]) -> None:
    with browser() as chromium:
        chromium.open(f"{shown('gelu.hlo').as_uri()}#view=graph")
        chromium.wait("document.querySelectorAll('.node').length > 10")
        assert not chromium.run("return document.querySelector('.node.changed')")
        chromium.run(
            "[...document.querySelectorAll('.chip')].find((chip) => chip.querySelector('em')?.textContent === 'scf').click()"
        )
        chromium.wait("document.querySelector('.node.changed')")
        made = "return [...document.querySelectorAll('.node.changed title')].map((node) => node.textContent)"
        assert any("scf.for" in op for op in chromium.run(made))
        assert not any("math.tanh" in op for op in chromium.run(made))
        keys = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '[', bubbles: true}))"
        chromium.run(keys)  # the pass before changed nothing
        chromium.wait("!document.querySelector('.node.changed')")
        chromium.run("document.querySelector('[data-view=code]').click()")
        chromium.wait("document.querySelector('.l i[title]')")
        titles = "return Object.fromEntries([...document.querySelectorAll('.l i[title]')].map((op) => [op.textContent, op.title]))"
        assert chromium.run(titles)["arith.mulf"] == "The product; integers wrap."


PLAIN = re.compile(r"[%^][\w.$-]+")


@pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed")
def test_a_pass_is_stepped_through_rewrite_by_rewrite(tmp_path: Path) -> None:
    """Of xla-unswitch-loops: each step shows the lines that this rewrite took and made, marks the op, and follows the one before it."""
    page = tmp_path / "gelu.html"
    assert main(["show", str(EXAMPLES / "gelu.hlo"), "--rewrites", "-o", str(page)]) == 0
    trace = compile(EXAMPLES / "gelu.hlo", cache=False, stage="llvm-dialect", record="rewrites").trace
    number = next(n for n, step in enumerate(trace) if step.name == "xla-unswitch-loops")
    rewrites, text = trace[number].rewrites, trace[number - 1].ir or ""
    patterns = [each.pattern for each in rewrites]
    assert "FoldConstantIf" in patterns
    rows = "return [...document.querySelectorAll('.pane .l')].map((row) => [row.className, row.textContent])"
    with browser() as chromium:
        chromium.open(f"{page.as_uri()}#view=rewrites")
        chromium.wait("document.querySelector('.tables tr.on')")
        chromium.run(f"document.querySelector('.chip[data-step=\"{number}\"]').click()")
        for place, each in enumerate(rewrites, 1):
            chromium.wait(f"document.querySelector('.place')?.textContent === 'rewrite {place} of {len(rewrites)}'")
            chromium.wait("document.querySelector('.l.gone, .l.come')")
            assert each.pattern in chromium.run("return document.querySelector('.tables tr.on').textContent")
            shown = chromium.run(rows)
            before, after = (Counter(PLAIN.sub("%", line) for line in ir.split("\n")) for ir in (text, each.ir))
            gone, come = (
                Counter(PLAIN.sub("%", row.split(sign, 1)[1][1:]) for classes, row in shown if kind in classes.split())
                for sign, kind in (("−", "gone"), ("+", "come"))
            )
            assert (gone - come, come - gone) == (before - after, after - before)  # a line that moved is both
            (marked,) = (row for classes, row in shown if "own" in classes.split())
            assert marked.split("−")[-1].strip() == text.split("\n")[each.line - 1].strip()
            text = each.ir
            if place < len(rewrites):
                chromium.run("document.querySelector('#on').click()")
        assert text == trace[number].ir
        # Back by the key: the step before; and from the first one of a pass to the last one of the pass before it.
        up = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}))"
        for place in range(len(rewrites) - 1, 0, -1):
            chromium.run(up)
            chromium.wait(f"document.querySelector('.place').textContent === 'rewrite {place} of {len(rewrites)}'")
        chromium.run(up)
        chromium.wait(
            "document.querySelector('.tools select').selectedOptions[0].text === 'xla-loop-invariant-code-motion'"
        )
