"""Every variable that the package reads has a flag, and the flag does what the variable does."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import xla_emitters
from xla_emitters.tools.environment import VARIABLES
from xla_emitters.tools.main import build_parser, main

PACKAGE = Path(xla_emitters.__file__).parent
NEGATE = Path(__file__).parents[3] / "examples" / "negate_20.hlo"


def test_no_variable_is_read_that_the_table_lacks() -> None:
    named = {
        name for path in PACKAGE.rglob("*.py") for name in re.findall(r'"(XLA_EMITTERS_[A-Z_]+)"', path.read_text())
    }
    assert named - {"XLA_EMITTERS_UNIVERSE"} == {variable.name for variable in VARIABLES}


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.flag)
def test_a_flag_sets_its_variable(variable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable.name, "")
    words = [variable.flag, "value"] if variable.metavar else [variable.flag]
    build_parser("compile").parse_args(["compile", "a.hlo", *words])
    assert os.environ[variable.name] == ("value" if variable.metavar else "1")


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
    assert main(["compile", str(NEGATE), *words]) == 2
    said = capsys.readouterr().err
    assert f"{words[0]} was removed" in said
    assert way in said
