"""The line that installs an extra is accepted by pip, and is for the running interpreter."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from xla_emitters.errors import ToolError
from xla_emitters.support import extras


def test_an_extra_of_a_source_tree_is_installed_from_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "__file__", str(Path(__file__).parents[3] / "xla_emitters" / "support" / "extras.py"))
    command = shlex.split(extras.install_command(extras="ptxas"))
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    tree, _, extra = command[-1].partition("[")
    assert (Path(tree) / "pyproject.toml").is_file()
    assert extra == "ptxas]"


def test_an_extra_of_an_installed_package_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "xla_emitters" / "support" / "extras.py"))
    assert extras.install_command(extras="xla,ptxas").endswith("pip install 'xla-emitters[xla,ptxas]'")


@pytest.mark.parametrize("error", [ImportError("no module named frob"), RuntimeError("frob 2 needs frobnicate 3")])
def test_what_is_missing_is_said_with_the_way_to_install_it(error: Exception):
    """A package that does not fit another one fails with a RuntimeError."""
    with (
        pytest.raises(ToolError, match="frob is not installed") as caught,
        extras.installed("frob", "here", extras="x"),
    ):
        raise error
    assert str(error) in caught.value.message
    assert caught.value.help == extras.install_command(extras="x")
    assert caught.value.stage == "here"


@pytest.mark.long
def test_pip_understands_the_line():
    command = shlex.split(extras.install_command(extras="dev"))
    options = ["--dry-run", "--no-deps", "--no-build-isolation", "--quiet", "--no-index"]
    done = subprocess.run([*command[:4], *options, *command[4:]], capture_output=True, text=True)
    assert "Invalid requirement" not in done.stderr
    assert "no such option" not in done.stderr
