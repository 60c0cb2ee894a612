"""`xla-emitters compare`: files, directories, exit codes."""

import json
from pathlib import Path

import pytest
from in_process import called, messages, printed

from xla_emitters.errors import DataError, ToolError
from xla_emitters.explore import optimize as optimizer
from xla_emitters.explore.compare import compare as comparing
from xla_emitters.explore.compare.compare import Comparison
from xla_emitters.tools.main import main

NEGATE = "HloModule m\nENTRY e {\n  p = f32[64] parameter(0)\n  ROOT n = f32[64] negate(p)\n}\n"


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison without kernels; of a file whose name begins with "bad", XLA's error."""

    def compare(source: Path, options: object) -> Comparison:
        if source.name.startswith("bad"):
            raise DataError("XLA aborted: rank", stage="xla")
        return Comparison(source.stem, "h200", (), (), ("sorted",))

    monkeypatch.setattr(comparing, "compare", compare)


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "_CHILD", f"import sys; sys.modules['jaxlib'] = None; {optimizer._CHILD}")
    (tmp_path / "m.hlo").write_text(NEGATE)
    for file in (tmp_path / "m.hlo", tmp_path):
        code, out, err = called("compare", file)
        assert (code, out) == (ToolError.exit_code, "")
        assert "[xla,ptxas]" in err or "ptxas was not found" in err


@pytest.mark.usefixtures("answered")
def test_a_directory_is_compared_to_its_end(tmp_path: Path) -> None:
    for name in ("bad.hlo", "inner/good.hlo"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(NEGATE)
    rows = printed("compare", tmp_path, code=DataError.exit_code).splitlines()
    assert rows == ["bad.hlo: XLA aborted: rank", "inner/good.hlo: only XLA's: sorted"]
    files = json.loads(printed("compare", tmp_path, "--json", code=1))["files"]
    assert [(each["file"], each["error"]) for each in files] == [
        ("bad.hlo", "XLA aborted: rank"),
        ("inner/good.hlo", None),
    ]
    assert files[1]["only_xla"] == ["sorted"]


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize(
    ("words", "code"), [(("--diff", "ptx"), 2), (("--run",), 2), (("-o", "page.html"), 2), ((), 1)]
)
def test_a_directory_without_files_or_with_diff_is_refused(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    assert main(["compare", str(tmp_path), *words]) == code


@pytest.mark.parametrize(
    "words", [("--diff", "ptx", "--json"), ("-o", "page.html", "--json"), ("-o", "p", "--diff", "3")]
)
def test_two_outputs_are_a_usage_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "m.hlo").write_text(NEGATE)
    assert "not allowed with argument" in messages(2, "compare", tmp_path / "m.hlo", *words)


@pytest.mark.usefixtures("answered")
def test_a_page_is_written(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(NEGATE)
    assert "page.html: " in printed("compare", tmp_path / "m.hlo", "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_program_is_refused_with_the_way_out() -> None:
    example = Path(__file__).parents[3] / "examples" / "softmax.mlir"
    assert "xla-emitters optimize" in messages(1, "compare", example)
