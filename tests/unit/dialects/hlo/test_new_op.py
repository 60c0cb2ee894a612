"""The recipe of docs/extending.md for an op that is not elementwise: a file for its meaning, one for its emission; what names an op."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import xla_emitters

PACKAGE, ROOT = Path(xla_emitters.__file__).parent, Path(__file__).parents[4]
MEANING, EMISSION = "dialects/hlo/dynamic_shape_ops.py", "dynamic/loops/operand_indices.py"
TEXT = """
func.func @main(%x: tensor<?x?xf32>, %n: tensor<2xi32>) -> tensor<?x?xf32> {
  %e = stablehlo.exponential %x : tensor<?x?xf32>
  %y = "stablehlo.dynamic_tile"(%e, %n) : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %r = stablehlo.add %y, %y : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""
RUN = """
import numpy as np
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.text.stablehlo.stablehlo_printer import print_stablehlo

module = parse_stablehlo(open("tiled.mlir").read(), "tiled.mlir")
print(print_stablehlo(module))
program = compile_program(module)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
for counts in ([2, 3], [1, 0]):
    for stage in ("stablehlo", "fused", "kernels"):
        (found,) = program.run([x, np.asarray(counts, np.int32)], stage)
        np.testing.assert_allclose(found, 2 * np.tile(np.exp(x), counts), rtol=1e-6)
try:
    program.run([x, np.asarray([1, -2], np.int32)])
except Exception as error:
    print(error)
"""


def block_of(path: Path, blocks: list[str]) -> str:
    """The recipe's block with a line of the file."""
    (found,) = (block for block in blocks if re.search(r"^ (.*)$", block, re.MULTILINE)[1] + "\n" in path.read_text())  # pyright: ignore
    return found


def applied(text: str, block: str) -> str:
    """The file with the lines that the block adds before and after its line of context."""
    before, context, after = re.fullmatch(r"((?:\+.*\n)*) (.*\n)((?:\+.*\n)*)", block).groups()  # pyright: ignore
    head, tail = text.split(context)
    return head + re.sub(r"^\+", "", before, flags=re.M) + context + re.sub(r"^\+", "", after, flags=re.M) + tail


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package to which the recipe's lines are added."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(PACKAGE, folder / PACKAGE.name)  # with the bytecode, which stays valid: files keep their times
    section = (
        (ROOT / "docs/extending.md")
        .read_text()
        .partition("An op of programs with unknown sizes")[2]
        .partition("\n## ")[0]
    )
    blocks = re.findall(r"^```diff\n(.*?)```", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for file in (MEANING, EMISSION):
        path = folder / PACKAGE.name / file
        path.write_text(applied(path.read_text(), block_of(path, blocks)))
    (folder / "tiled.mlir").write_text(TEXT)
    return folder


def test_a_new_op_touches_one_file_with_its_meaning_and_one_with_its_emission(extended: Path) -> None:
    """Parsed, verified, printed, inferred, allocated, fused, computed and checked, with nothing said about it elsewhere."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=extended,
        env=os.environ | {"PYTHONPATH": str(extended), "XLA_EMITTERS_CACHE_DIR": str(extended / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"stablehlo.dynamic_tile"(' in done.stdout
    assert "%y = dynamic-tile: axis 1 is repeated -2 times" in done.stdout


# ---- where ops are named ----------------------------------------------------------------------------------------------------------------


def naming(opcode: str) -> set[str]:
    """The files of the package in which an op's class, its opcode or its name in IR or in StableHLO occurs."""
    name, title = opcode.replace("-", "_"), "".join(map(str.capitalize, opcode.split("-")))
    said = re.compile(rf"\b{title}Op\b|[\"']{opcode}[\"']|[\"']{name}[\"']|hlo\.{name}\b")
    return {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if said.search(path.read_text())}


SPELLINGS = {"dialects/other_spelling.py", "text/stablehlo/spellings.py"}


def test_besides_its_meaning_and_emission_only_passes_that_make_an_op_name_it() -> None:
    passes = {"dynamic/passes/disc_base_gemm.py", "dynamic/passes/disc_gpu_conv_padding.py"}
    assert naming("dynamic-pad") == {MEANING, EMISSION} | SPELLINGS | passes


@pytest.mark.parametrize(("opcode", "files"), [("pad", 23), ("dot", 27), ("gather", 14)])
def test_no_more_files_name_an_op(opcode: str, files: int) -> None:
    """A file that asks the op for its meaning need not name it. (`pad` is also a word of windows.)"""
    assert len(naming(opcode)) <= files
