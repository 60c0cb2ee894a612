"""Everything up to the LLVM dialect runs on Linux, macOS and Windows: nothing imports a module that one of them lacks."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import xla_emitters

PACKAGE, ROOT = Path(xla_emitters.__file__).parent, Path(__file__).parents[2]
FILES = sorted(PACKAGE.rglob("*.py"))
# What Windows' Python lacks.
POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "fork",
        "forkpty",
        "geteuid",
        "getpgid",
        "getuid",
        "killpg",
        "mkfifo",
        "setsid",
        "sched_getaffinity",
        "uname",
        "wait",
    },
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "alarm", "setitimer"},
}
READS_TEXT = {"open", "read_text", "write_text"}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


# A file without any of these need not be parsed: parsing all of the package takes 8 s.
FORMS = (
    *sorted(POSIX_MODULES),
    *(rf"{module}\.(?:{'|'.join(sorted(names))})" for module, names in POSIX_NAMES.items()),
    rf"(?:{'|'.join(sorted(READS_TEXT))})\(",
)
SUSPECT = re.compile(rf"\b(?:{'|'.join(FORMS)})")


def posix_only(tree: ast.AST) -> list[str]:
    """Modules and names that only POSIX systems have."""
    found = [name for name in imported(tree) if name.split(".")[0] in POSIX_MODULES]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in POSIX_NAMES.get(node.value.id, ()):
                found.append(f"{node.value.id}.{node.attr}")
    return found


def text_of_unknown_encoding(tree: ast.AST) -> list[int]:
    """Lines that read or write text in whatever encoding the system prefers: on Windows that is not UTF-8."""
    lines: list[int] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        says = any(isinstance(one, ast.Constant) and one.value in ("utf-8", "rb", "wb") for one in given)
        is_method = isinstance(node.func, ast.Attribute)
        if name in READS_TEXT and not says and is_method == (name != "open"):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    ("code", "names", "lines"),
    [
        ("import fcntl", ["fcntl"], []),
        ("from resource import getrlimit", ["resource"], []),
        ("os.fork()", ["os.fork"], []),
        ("signal.signal(signal.SIGKILL, f)", ["signal.SIGKILL"], []),
        ("path.write_text(text)", [], [1]),
        ("path.read_text('utf-8') + path.read_text(encoding='utf-8')", [], []),
        ("open(path).read()", [], [1]),
        ("open(path, 'rb').read(); os.open(path, flags)", [], []),
    ],
)
def test_what_is_not_portable_is_found(code: str, names: list[str], lines: list[int]) -> None:
    assert SUSPECT.search(code) is not None
    assert posix_only(ast.parse(code)) == names
    assert text_of_unknown_encoding(ast.parse(code)) == lines


def test_the_package_uses_what_all_systems_have() -> None:
    suspects = [(path, text) for path in FILES if SUSPECT.search(text := path.read_text("utf-8"))]
    assert len(suspects) > 20
    for path, text in suspects:
        tree = ast.parse(text)
        assert not posix_only(tree), path
        assert not text_of_unknown_encoding(tree), path


def test_compiles_and_runs_where_posix_modules_are_missing() -> None:
    """A Python without them, without tools and without their wheels: a fusion goes to the LLVM dialect, runs and is right."""
    code = f"""
import sys
for name in {sorted(POSIX_MODULES - {"posix"} | {"llvmlite", "nvidia"})!r}:
    sys.modules[name] = None
from xla_emitters.tools.main import main
sys.exit(main(["run", "examples/row_sum.hlo", "--show-stages"]))
"""
    where = {**os.environ, "PATH": "", "XLA_EMITTERS_MLIR_OPT": "/nowhere", "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT, env=where
    )
    assert done.returncode == 0, done.stderr
    assert "llvm-dialect" in done.stdout
    assert "ptx" not in done.stdout
    (note,) = done.stderr.splitlines()
    assert note.startswith("note: PTX is left out: mlir-opt was not found (")


def test_requirements_are_for_systems_that_have_them() -> None:
    """NVIDIA has no wheels for macOS, llvmlite none for Macs with Intel processors: pip must not look for them there."""
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    core = [line for line in project["dependencies"] if line.startswith("llvmlite")]
    systems = {
        ("linux", "x86_64"): {"llvmlite", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvdisasm"},
        ("linux", "aarch64"): {"llvmlite", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvdisasm"},
        ("win32", "AMD64"): {"llvmlite", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvdisasm"},
        ("darwin", "arm64"): {"llvmlite"},
        ("darwin", "x86_64"): set[str](),
        ("linux", "riscv64"): {"nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvdisasm"},
    }
    for (system, machine), wanted in systems.items():
        there = {"sys_platform": system, "platform_machine": machine}
        found = {
            requirement.name
            for requirement in map(Requirement, (*project["optional-dependencies"]["ptxas"], *core))
            if requirement.marker is None or requirement.marker.evaluate(there)
        }
        assert found == wanted, (system, machine)
