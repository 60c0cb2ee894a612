"""Every variable that the package reads has a flag, and the flag does what the variable does."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import xla_emitters
from xla_emitters.errors import ToolError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.settings import DEBUG, VARIABLES, Settings, Toolchain, Variable, read_settings
from xla_emitters.tools.main import build_parser, main

PACKAGE = Path(xla_emitters.__file__).parent
NEGATE = Path(__file__).parents[3] / "examples" / "negate_20.hlo"


def test_no_variable_is_read_that_the_table_lacks() -> None:
    named = {
        name for path in PACKAGE.rglob("*.py") for name in re.findall(r'"(XLA_EMITTERS_[A-Z_]+)"', path.read_text())
    }
    assert named - {"XLA_EMITTERS_UNIVERSE"} == {variable.name for variable in VARIABLES}


def test_one_file_reads_the_environment() -> None:
    words = re.compile(r"\benviron\b|\bgetenv\b|\bputenv\b")
    prose = re.compile(r'""".*?"""|#[^\n]*', re.DOTALL)
    found = {path for path in PACKAGE.rglob("*.py") if words.search(prose.sub("", path.read_text()))}
    assert found == {PACKAGE / "settings.py"}


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.flag)
def test_a_flag_sets_what_its_variable_sets(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of the process: another compilation in it may have other settings."""
    for other in VARIABLES:
        monkeypatch.delenv(other.name, raising=False)
    value = "value" if variable.metavar else "1"
    words = ["compile", "a.hlo", variable.flag, *(["value"] if variable.metavar else [])]
    by_flag = build_parser("compile").parse_args(words).settings
    assert by_flag != read_settings()
    assert variable.name not in os.environ
    monkeypatch.setenv(variable.name, value)
    assert read_settings() == by_flag
    assert CompileOptions().settings == by_flag
    monkeypatch.setenv(variable.name, "elsewhere")
    assert build_parser("compile").parse_args(words).settings == by_flag


def test_settings_are_of_a_compilation() -> None:
    """Two compilations of one process by different tools."""
    wrong = Settings(Toolchain(files=(("mlir-opt", "/nowhere/mlir-opt"),)))
    with pytest.raises(ToolError, match="mlir-opt was not found"):
        xla_emitters.compile(NEGATE, settings=wrong, cache=False)
    assert xla_emitters.compile(NEGATE, stage="xla_gpu", settings=wrong, cache=False).kernels


@pytest.mark.parametrize(("value", "is_on"), [("", False), ("0", False), ("1", True), ("yes", True)])
def test_a_switch_is_on_for_any_value_but_zero(value: str, is_on: bool) -> None:
    assert read_settings({DEBUG: value}).debug is is_on


def test_a_tool_named_by_its_flag_is_the_one_that_is_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "")
    assert main(["compile", str(NEGATE), "--mlir-opt", "/nowhere/mlir-opt"]) == 4
    assert "XLA_EMITTERS_MLIR_OPT=/nowhere/mlir-opt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (["--host"], "bundle --abi c"),
        (["--heat", "4"], "compiled once, for all sizes"),
        (["--libllvm", "/usr/lib/libLLVM.so.22.1"], "llvmlite makes PTX"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_flag_of_an_earlier_version_says_what_there_is_instead(
    words: list[str], way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["compile", str(NEGATE), *words])
    assert raised.value.code == 2
    said = capsys.readouterr().err
    assert f"{words[0]} was removed" in said
    assert way in said
