"""The console script: its verbs, its help, and that it is installed."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from in_process import called, messages, printed

import xla_emitters
from xla_emitters.errors import ToolError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.settings import DEBUG, VARIABLES, EnvironmentVariable, Settings, Toolchain, read_settings
from xla_emitters.tools.main import VERBS, build_parser, main

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]
NEGATE = ROOT / "examples" / "negate_20.hlo"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.tiny
def test_help_names_every_verb_and_exit_code() -> None:
    text = printed("--help")
    for verb in (*VERBS, "opt"):
        assert f"\n    {verb} " in text
    for code in ("0 ok", "1 the input", "2 usage", "3 numbers differ", "4 a tool", "70 a bug"):
        assert code in text


SERVERS = ("serve", "lsp")
"""Verbs that go on until they are ended: their tests start them."""


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in SERVERS])
@pytest.mark.usefixtures("cache_of_its_own")
def test_help_of_a_verb_has_an_example_that_works(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a page says the same line: `test_docs.py` types those."""
    line = printed(verb, "--help").split("example:\n")[1].split("\n\n")[0].strip()
    example = shlex.split(line)
    assert example[:2] == ["xla-emitters", verb]
    (tmp_path / "examples").symlink_to(NEGATE.parent)
    monkeypatch.chdir(tmp_path)
    if verb in ("compare", "optimize") and find_spec("jaxlib") is None:
        assert main(example[1:]) == ToolError.exit_code
        return
    if any(re.search(rf"^{re.escape(line)}(  +#.*)?$", page.read_text(), re.MULTILINE) for page in PAGES):
        return
    code, out, _ = called(*example[1:])
    assert (code, bool(out)) == (0, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    """The script names the verbs and their options, and bash and fish take it."""
    script = printed("--print-completion", shell)
    assert all(verb in script for verb in VERBS)
    assert "print-ir-tree-dir" in script
    if shell in ("bash", "fish") and which(shell):
        (tmp_path / "script").write_text(script)
        assert subprocess.run([shell, "-n", str(tmp_path / "script")], check=False).returncode == 0


@pytest.mark.skipif(which("fish") is None, reason="fish is not installed")
def test_fish_completes_verbs_options_and_their_values(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(printed("--print-completion", "fish"))

    def completed(words: str) -> list[str]:
        line = f"source {tmp_path}/script; complete -C '{words}'"
        done = subprocess.run(["fish", "--no-config", "-c", line], capture_output=True, text=True, check=True)
        return [found.partition("\t")[0] for found in done.stdout.splitlines()]

    assert set(completed("xla-emitters b")) == {"bisect", "bundle"}
    assert "--stage" in completed("xla-emitters compile --sta")
    assert set(completed("xla-emitters run --platform c")) == {"cpu", "cuda"}


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["compile"], ["compile", "a.hlo", "--nonsense"], ["run", "a", "--platform", "tpu"]]
)
def test_usage(words: list[str]) -> None:
    lines = messages(2, *words).splitlines()
    assert lines[0].startswith("error: [usage] ")
    assert len(lines) == 2, "what is wrong and where help is, not the whole usage"
    assert lines[1].endswith(" --help")


def test_an_option_that_is_nearly_one_of_ours_is_named() -> None:
    said = messages(2, "compile", "a.hlo", "--stagee", "scf")
    assert said.splitlines()[1] == "    help: --stage? see xla-emitters compile --help"
    assert (
        messages(2, "--no-plugins", "compile", NEGATE).splitlines()[1]
        == "    help: write it after the verb; see xla-emitters compile --help"
    )


def test_variables_are_listed_once() -> None:
    """By `doctor --help`; the help of other verbs says so in one line."""
    for verb, lines in (("doctor", len(VARIABLES)), ("compile", 0), ("check", 0)):
        out = printed(verb, "--help")
        assert out.count("[XLA_EMITTERS_") == lines
        assert ("xla-emitters doctor --help" in out) == (lines == 0)


def test_version() -> None:
    assert printed("--version").startswith("xla-emitters 0.")


def test_opt_is_the_opt_tool(capsys: pytest.CaptureFixture[str]) -> None:
    from xla_emitters.tools import opt

    by_verb = printed("opt", NEGATE)
    assert opt.main([str(NEGATE)]) == 0
    assert capsys.readouterr().out == by_verb
    assert "hlo.negate" in by_verb


def test_the_installed_scripts() -> None:
    """As processes: exit codes reach the shell, results are on stdout and messages on stderr."""
    done = subprocess.run(
        [BIN / "xla-emitters", "compile", NEGATE, "--stage", "hlo"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "negate(%x)" in done.stdout
    done = subprocess.run([BIN / "xla-emitters", "compile", "nowhere.hlo"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: [file] nowhere.hlo: No such file or directory\n"
    done = subprocess.run(
        [BIN / "xla-emitters-opt", "-p", "nonsense", NEGATE], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: [opt] there is no pass 'nonsense'")


def test_a_reader_that_goes_away_is_no_failure() -> None:
    """`xla-emitters ... | head`: no traceback, no complaint."""
    command = f"{BIN / 'xla-emitters'} compile {NEGATE} --stage scf --print-ir-after-all 2>/dev/null | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_is_a_command_and_has_a_version() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "xla_emitters", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"xla-emitters {metadata.version('xla-emitters')}\n"
    code = "import sys, xla_emitters as xe; print(xe.__version__, 'numpy' in sys.modules, 'xdsl' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == f"{metadata.version('xla-emitters')} False False\n"
    assert (
        f"\nversion: {metadata.version('xla-emitters')}\n" in (Path(__file__).parents[3] / "CITATION.cff").read_text()
    )


PACKAGE = Path(xla_emitters.__file__).parent


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
def test_a_flag_sets_what_its_variable_sets(variable: EnvironmentVariable, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_tool_named_by_its_flag_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "")
    assert "XLA_EMITTERS_MLIR_OPT=/nowhere/mlir-opt" in messages(
        4, "compile", NEGATE, "--mlir-opt", "/nowhere/mlir-opt"
    )


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (["--host"], "bundle --abi c"),
        (["--heat", "4"], "compiled once, for all sizes"),
        (["--libllvm", "/usr/lib/libLLVM.so.22.1"], "llvmlite makes PTX"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_flag_of_an_earlier_version_says_what_there_is_instead(words: list[str], way: str) -> None:
    said = messages(2, "compile", NEGATE, *words)
    assert f"{words[0]} was removed" in said
    assert way in said


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text here")
def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    """A byte of Latin-1 in its name: commands that keep the name in their cache, page or bundle write it as an escape."""
    file = tmp_path / "neg\udcfc.hlo"
    file.write_bytes(NEGATE.read_bytes())
    for words in (
        ["compile", "--stage", "flat"],
        ["show", "-o", tmp_path / "a.html"],
        ["bundle", "-o", tmp_path / "a.zip"],
    ):
        printed(words[0], file, *words[1:])
    assert json.loads(printed("list", file, "--json"))["kernels"][0]["place"].endswith("neg\\udcfc.hlo:11:8")
