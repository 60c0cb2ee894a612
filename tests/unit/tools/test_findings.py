"""Findings for other tools: the fields that SARIF 2.1.0 requires, and GitHub's workflow commands."""

import json
from pathlib import Path
from typing import Any

import pytest
from in_process import called, printed
from tools_here import SASS, needs

from xla_emitters.errors import ParseError, Place, VerifyError
from xla_emitters.tools.findings import Finding, at_instruction, findings_of, print_findings
from xla_emitters.tools.main import main

GOOD = "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n"
BAD = GOOD.replace("f32[4] negate", "f32[5] negate")
# A sum in another order than NumPy's is not within a bound of zero.
SUM = (
    "HloModule m\nadd { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b) }\nENTRY e {\n"
    "  p = f32[5000] parameter(0)\n  z = f32[] constant(0)\n  ROOT %sum.1 = f32[] reduce(p, z), dimensions={0}, to_apply=add\n}\n"
)


def sarif(text: str) -> list[dict[str, Any]]:
    """The results of a log that has all that the schema requires."""
    log = json.loads(text)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "xla-emitters"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert rules[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"]
        assert all(number >= 1 for number in physical.get("region", {}).values())
    return run["results"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, text in (("good.hlo", GOOD), ("b d.hlo", BAD)):
        Path(name).write_text(text)
    return ["good.hlo", "b d.hlo"]


@pytest.mark.parametrize("jobs", [[], ["-j", "2"]])
def test_check_as_sarif(jobs: list[str], files: list[str]) -> None:
    code, out, err = called("check", *files, "--stages", "hlo", "--format", "sarif", *jobs)
    assert code == 1
    (result,) = sarif(out)
    assert result["ruleId"] == "hlo.verify"
    assert "f32[5]" in result["message"]["text"]
    where = result["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "b%20d.hlo"
    assert where["region"] == {"startLine": 4, "startColumn": 19, "endColumn": 25}
    assert "b d.hlo:4:19: error" in err


def test_check_for_github(files: list[str]) -> None:
    rows = printed("check", *files, "--stages", "hlo", "--format", "github", code=1).splitlines()
    assert rows[0].startswith("good.hlo  ok")
    (row,) = [row for row in rows if row.startswith("::")]
    assert row.startswith("::error file=b d.hlo,line=4,col=19,endColumn=25,title=hlo.verify::'negate' cannot have")
    assert "%0A" in row


def test_numbers_that_differ_are_at_their_instruction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sum.hlo").write_text(SUM)
    words = ["check", "sum.hlo", "--stages", "scf", "--atol", "0", "--rtol", "0", "--format", "sarif"]
    (result,) = sarif(printed(*words, code=3))
    assert result["ruleId"] == "numbers"


def test_nothing_wrong_is_an_empty_log(files: list[str]) -> None:
    assert sarif(printed("check", files[0], "--stages", "hlo", "--format", "sarif")) == []
    assert main(["check", files[0], "--json", "--format", "sarif"]) == 2


@needs(*SASS)
def test_fail_on(files: list[str]) -> None:
    (result,) = sarif(printed("cost", files[0], "--fail-on", "time > 0", "--format", "sarif", code=3))
    assert (result["ruleId"], result["message"]["text"]) == ("fail-on", "time > 0: kernel e on h200")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    assert "::error" not in printed("cost", files[0], "--fail-on", "spills > 0", "--format", "github")
    assert main(["cost", files[0], "--format", "sarif", "--json"]) == 2


def test_cost_of_a_file_that_is_wrong(files: list[str]) -> None:
    (result,) = sarif(printed("cost", files[1], "--format", "sarif", code=1))
    assert result["ruleId"] == "hlo.verify"


def test_errors_that_came_together_are_findings_each() -> None:
    first = VerifyError("a", stage="v", place=Place("x", 2, 3, 5), help="h")
    first.others = (
        VerifyError("b", place=Place("y.pb as text", 7, 1, text="  ROOT %r = f32[] add(%a)")),
        ParseError("c"),
    )
    assert list(findings_of(first, "f")) == [
        Finding("v", "a\nhelp: h", "x", 2, 3, 5),
        Finding("error", "y.pb:%r: b", "f"),
        Finding("error", "c", "f"),
    ]


def test_the_instruction_of_a_kernel() -> None:
    assert at_instruction(SUM, "sum_1", "f", "r", "m") == Finding("r", "m", "f", 8, 8, 14)
    assert at_instruction(SUM, "other", "f", "r", "m") == Finding("r", "m", "f")


def test_a_path_may_be_absolute(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([Finding("r", "m", "/a b/c.hlo")], "sarif")
    (result,) = sarif(capsys.readouterr().out)
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///a%20b/c.hlo"
