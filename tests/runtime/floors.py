"""Do the lowest and the newest versions of the dependencies work? Fresh environments, a few commands, one fast check of every part.

    make floors                                   this Python: the floors of pyproject.toml, then what pip resolves today, also beside numba
    make floors FLOORS="python3.12 python3.13"
    make floors FLOORS="--again"                  the environments of the last run, which only get the package anew

numba shares llvmlite with us and limits its version. The package is installed as a user has it: as a wheel, with `[jax,ptxas]`, into
`build/floors/`. A cell is `ok` with its seconds, or the exit code; messages go to standard error. Ends with 1 where something failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.table import header, print_table

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "floors"
EXTRAS = ("jax", "ptxas")
FOR_TESTS = ("filecheck", "hypothesis", "pytest", "pytest-xdist")
SHOWN = (
    "xdsl",
    "numpy",
    "ml_dtypes",
    "platformdirs",
    "pygments",
    "shtab",
    "llvmlite",
    "scipy-openblas32",
    "jax",
    "jax-cuda13-pjrt",
)
"""The dependencies whose versions the table gives."""
PYTHON = "import platform; print(platform.python_version())"
LONGEST_SECONDS = 900


def floors() -> list[str]:
    """`name==version` for each lower bound in pyproject.toml that holds for users: the core and `EXTRAS`, not what developers use."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in (*EXTRAS, "xla") for line in extras[name])]
    bounds = list[str]()
    for requirement in map(Requirement, lines):
        lowest = [s.version for s in requirement.specifier if s.operator in (">=", "~=", "==")]
        marker = f"; {requirement.marker}" if requirement.marker else ""
        bounds += [f"{requirement.name}=={version}{marker}" for version in lowest]
    return bounds


def first_snippet() -> str:
    """The first Python of README.md."""
    found = re.search(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return found[1]


@dataclass(frozen=True)
class Environment:
    """A virtual environment, whose programs see nothing of this one."""

    directory: Path

    def bin(self, name: str) -> str:
        return str(self.directory / ("Scripts" if os.name == "nt" else "bin") / name)

    def run(self, *command: str, where: Path = ROOT) -> tuple[int, str, float]:
        """The exit code, the output, and seconds; `command[0]` is a program of the environment."""
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "XLA_EMITTERS_TOOLCHAIN")
        variables = {name: value for name, value in os.environ.items() if name not in hidden}
        variables |= {"XLA_EMITTERS_CACHE_DIR": str(self.directory / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [self.bin(command[0]), *command[1:]],
                cwd=where,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LONGEST_SECONDS,
            )
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            code, output = 124, f"not done after {LONGEST_SECONDS} s"
        return code, output, time.perf_counter() - start

    def version(self, package: str) -> str:
        asks = f"from importlib.metadata import version; print(version({package!r}))"
        code, output, _ = self.run("python", "-c", asks)
        return output.strip() if code == 0 else "-"


def trials() -> dict[str, tuple[str, ...]]:
    """The commands that are tried, by the title of their column."""
    examples = ROOT / "examples"
    tiny = [str(file) for file in (ROOT / "tests").rglob("test_*.py") if "mark.tiny" in file.read_text("utf-8")]
    return {
        "pip check": ("python", "-m", "pip", "check"),
        "doctor": ("xla-emitters", "doctor"),
        "PTX": ("xla-emitters", "compile", f"{examples}/gelu.hlo", "-o", os.devnull),
        "check": ("xla-emitters", "check", f"{examples}/negate_20.hlo"),
        "program": ("xla-emitters", "run", f"{examples}/causal_attention.mlir", "--sizes", "b=2,s=5"),
        "opt": ("xla-emitters-opt", f"{examples}/gelu.hlo"),
        "xdsl-opt": ("xdsl-opt", "--help"),
        "README": ("python", "-c", first_snippet()),
        "tiny": ("pytest", "-m", "tiny", "-q", "-p", "no:cacheprovider", *tiny),
    }


def try_out(python: str, name: str, wheel: Path, constraints: list[str], beside: tuple[str, ...] = ()) -> list[str]:
    """One row of the table; failures go to standard error.

    beside  packages that are installed in the same step
    """
    directory = PLACE / f"{Path(python).resolve().name}-{name.replace(' ', '-')}"
    if not directory.exists():
        subprocess.run([python, "-m", "venv", str(directory)], check=True)
    environment = Environment(directory)
    limits = directory / "constraints.txt"
    limits.write_text("\n".join(constraints), encoding="utf-8")
    install = ("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(limits))
    code, output, _ = environment.run(*install, f"{wheel}[{','.join(EXTRAS)}]", *FOR_TESTS, *beside)
    if not code:  # in an environment of the last run the package has the same version, and is another one
        code, output, _ = environment.run(*install, "--no-deps", "--force-reinstall", str(wheel))
    row = [f"{environment.run('python', '-c', PYTHON)[1].strip()} {name}"]
    if code:
        print(f"{directory.name}: pip install:\n{output}", file=sys.stderr)
        return [*row, *("-" for _ in SHOWN), *("not installed" for _ in trials())]
    row += [environment.version(package) for package in SHOWN]
    for title, command in trials().items():
        code, output, seconds = environment.run(*command, where=ROOT if title == "tiny" else directory)
        if code:
            print(f"{directory.name}: {title}: exit {code}\n{output}", file=sys.stderr)
        row.append(f"exit {code}" if code else f"ok {seconds:.0f} s")
    return row


def main() -> int:
    parser = argparse.ArgumentParser(prog="make floors", description=__doc__)
    parser.add_argument("python", nargs="*", default=[sys.executable], help="interpreters; default this one")
    parser.add_argument("--again", action="store_true", help="in the environments of the last run")
    options = parser.parse_args()
    if not options.again:
        shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True, exist_ok=True)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", str(PLACE)]
    subprocess.run([*build, str(ROOT)], check=True)
    (wheel,) = PLACE.glob("*.whl")
    rows = list[list[str]]()
    for python in options.python:
        rows.append(try_out(python, "lowest", wheel, floors()))
        rows.append(try_out(python, "newest", wheel, []))
        rows.append(try_out(python, "with numba", wheel, [], ("numba",)))
    print(header("make floors: the lowest versions that pyproject.toml allows, and the newest that pip resolves"))
    print()
    print_table(("Python and versions", *SHOWN), [row[: len(SHOWN) + 1] for row in rows])
    print()
    print_table(("Python and versions", *trials()), [[row[0], *row[len(SHOWN) + 1 :]] for row in rows])
    return int(any(not cell.startswith("ok") for row in rows for cell in row[len(SHOWN) + 1 :]))


if __name__ == "__main__":
    sys.exit(main())
