"""The table of real functions: every name in it exists, no other file repeats it, and two rows add a function."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest

import xla_emitters
from xla_emitters.dialects.context import op_named
from xla_emitters.functions import BY_LIBDEVICE, BY_OP, BY_OPCODE, FUNCTIONS, Gpu, RealFunction, Ulps

ROOT = Path(__file__).parents[2]
PACKAGE = Path(xla_emitters.__file__).parent
TABLE, HLO_ROWS = "functions.py", "dialects/hlo/elementwise.py"

BOUNDS = ("complex_bounds", "elementwise_bounds", "relations", "sensitivity", "slopes")
ERRORS = tuple(f"runtime/reference/bounds/{stem}.py" for stem in BOUNDS)
NAMED_ELSEWHERE = {
    # Kinds of atomic updates.
    "runtime/simt/llvm_atomic_rules.py": {"fmax", "fmin"},
    "runtime/simt/nvvm_bulk_copies.py": {"fmax", "fmin"},
    # Reductions of a warp, and LLVM's of vectors.
    "runtime/simt/nvvm_rules.py": {"fmax", "fmin"},
    "runtime/simt/vector_rules.py": {"fmax", "fmin"},
    # PyTorch's ways to round a quotient.
    "explore/from_torch/torch_array_rows.py": {"floor", "trunc"},
    # Renamed with the rest of arith; vector.fma becomes LLVM's too.
    "lowering/lower_to_llvm_gpu.py": {"arith.divf", "llvm.intr.fma"},
    # Spellings that other tools print: which of their names are ours is what these files say.
    "dialects/other_spelling.py": {
        *("divide", "exp", "exponential", "rsqrt", "sqrt", "tanh"),
        *("math.exp", "math.rsqrt", "math.sqrt", "math.tanh"),
    },
    "text/stablehlo/spellings.py": {
        *("acos", "acosh", "asin", "asinh", "atan2", "atanh", "cosh", "divide", "erf", "power", "remainder", "sinh"),
    },
    # Arithmetic on numbers of the host.
    "dynamic/host/steps_of_buffers.py": {"remainder"},
    "lowering/cpu/loop_interpreter.py": {"remainder"},
    "pipelines/program_steps.py": {"remainder"},
    "program/steps.py": {"remainder"},
    "graph/loop_recurrences.py": {"ceil", "divide", "floor", "remainder", "round-nearest-even", "sqrt"},
    "program/integer_forms.py": {"abs", "divide", "remainder"},
    # Passes and sizes speak of HLO's ops.
    "dynamic/passes/disc_algebraic_simplifier.py": {"divide", "power"},
    "dynamic/passes/disc_check_numbers.py": {"divide"},
    "dynamic/passes/disc_base_gemm.py": {"remainder"},
    "dynamic/passes/disc_element_type_converter.py": {"rsqrt", "tanh"},
    "dynamic/passes/disc_loop_invariant.py": {"divide", "remainder"},
    "dynamic/loops/stitch_graph.py": {"abs"},
    "dynamic/sizes/numbers.py": {"abs", "divide", "remainder"},
    # What a CPU has an instruction for, and what is written out for it.
    "lowering/cpu/cpu_functions.py": set(
        "ceil copysign exp expm1 fabs floor fma log log1p nearbyint pow powi rint round rsqrt sqrt trunc".split()
    ),
    # LLVM's and PTX's own words for their instructions, and their values.
    "text/llvm_ir/call_reader.py": {"abs"},
    "text/llvm_ir/llvm_constants.py": {"trunc"},
    "text/llvm_ir/ptx_bodies.py": {"ceil", "floor", "round", "trunc"},
    "text/ptx/arithmetic.py": {"abs", "copysign", "fabs", "fma", "rsqrt", "sqrt", "tanh"},
    "text/ptx/conversions.py": {"ceil", "floor", "trunc"},
    "text/ptx/memory_rows.py": {"fmax", "fmin"},
    "text/ptx/rows.py": {"abs", "fma"},
    "text/ptx/threads.py": {"abs"},
    "runtime/simt/nvvm_values.py": set("abs cos fma rsqrt sin sqrt tanh".split()),
    # A machine instruction.
    "lowering/toolchain/sass_lines.py": {"fma"},
    # LLVM's own names of conversions and of an intrinsic on integers.
    "lowering/llvm_ir/instruction_printer.py": {"abs", "trunc"},
    # Formulas of the executor, and kernels that round in a way of their own.
    "runtime/simt/math_rules.py": {
        *("erf", "erfc", "exp10", "powi", "round", "rsqrt"),
        *("copysign", "fabs", "fma"),
        *("sin", "cos"),  # math.sincos
        "abs",  # llvm.intr.abs, of integers
    },
    # Intrinsics that are not functions of floats alone: abs of integers, sincos, lrint and lround, powi, vector reductions.
    "runtime/simt/llvm_rules.py": {"abs"},
    "runtime/simt/llvm_intrinsic_rules.py": {"cos", "fmax", "fmin", "powi", "rint", "round", "sin"},
    # The names of ops of StableHLO, CHLO, MHLO and MLIR's dialects, and formulas in HLO's ops of functions that HLO has not.
    "rewrite/effects.py": {"llvm.intr.fabs"},  # an op of MLIR, by its name
    "text/stablehlo/op_table.py": set(BY_OPCODE),
    "text/stablehlo/chlo.py": {*BY_OPCODE, "atan"},
    "text/stablehlo/formulas.py": {*BY_OPCODE, "erfc"},
    "text/stablehlo/mlir_rules.py": {*BY_OPCODE, "arith.divf"},
    "text/stablehlo/syntax_tables.py": set(BY_OPCODE),
    # How an error of its operand grows through each function: a rule an opcode.
    **{file: set(BY_OPCODE) for file in ERRORS},
}
"""File of the package -> names of the table that it may repeat, beside the table and HLO's rows.

MLIR's dialects, in `dialects/mlir`, list the ops that they have; `math.py` there takes those that xDSL lacks from the table.
"""


def names_of(row: RealFunction) -> set[str]:
    names = {row.libdevice, row.op, row.opcode, row.numpy, row.complex_op, *row.intrinsics}
    return {name for name in names if name} | ({f"__nv_{row.libdevice}"} if row.libdevice else set())


def literals(path: Path, names: Collection[str]) -> Iterator[str]:
    """The texts of a file that has one of the names in quotes; of another none: to take a file apart takes longer than to look."""
    text = path.read_text()
    if not set(re.findall(r"(?<=[\"'])[\w.-]+(?=[\"'])", text)) & set(names):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_name_is_in_one_row() -> None:
    for table, field in ((BY_OPCODE, "opcode"), (BY_OP, "op"), (BY_LIBDEVICE, "libdevice")):
        assert len(table) == sum(getattr(row, field) is not None for row in FUNCTIONS), field
    intrinsics = [name for row in FUNCTIONS for name in row.intrinsics]
    assert len(intrinsics) == len(set(intrinsics))


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.libdevice or row.opcode)
def test_every_name_exists(row: RealFunction) -> None:
    for name in (row.op, row.complex_op, *row.intrinsics):
        assert name is None or op_named(name).name == name
    if row.numpy:
        function = getattr(np, row.numpy)
        assert isinstance(function, np.ufunc)
        assert function.nin == row.operands
    assert row.takes_complex or row.complex_op is None
    assert row.op is None or row.gpu is Gpu.INSTRUCTIONS or row.libdevice


def test_no_file_repeats_a_name_of_the_table() -> None:
    """HLO's rows have the opcodes alone."""
    names = {name for row in FUNCTIONS for name in names_of(row)}
    repeated = dict[str, set[str]]()
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        allowed = set(BY_OPCODE) if file == HLO_ROWS else NAMED_ELSEWHERE.get(file, set())
        if file.startswith("dialects/mlir/") and file != "dialects/mlir/math.py":
            continue
        if file != TABLE and (found := {text for text in literals(path, names) if text in names} - allowed):
            repeated[file] = found
    assert repeated == {}


def test_the_table_imports_no_room_that_reads_it() -> None:
    imported = re.findall(r"^from (xla_emitters\S+)", (PACKAGE / TABLE).read_text(), re.MULTILINE)
    assert {name.rpartition(".")[2] for name in imported} == {"errors", "late_dataclass", "plugins"}


@pytest.mark.parametrize(("bits", "wanted"), [(64, 4), (32, 6), (16, 1), (8, 1), (4, 1)])
def test_ulps_by_width(bits: int, wanted: int) -> None:
    assert Ulps(4, 6, 1).of(bits) == wanted


# ---- the recipe of docs/extending.md ----------------------------------------------------------------------------------------------------

HYPOTENUSE = """HloModule m

fused {
  x = TYPE[100] parameter(0)
  y = TYPE[100] parameter(1)
  s = TYPE[100] add(x, y)
  ROOT h = TYPE[100] hypot(s, y)
}

ENTRY main {
  a = TYPE[100] parameter(0)
  b = TYPE[100] parameter(1)
  ROOT f = TYPE[100] fusion(a, b), kind=kLoop, calls=fused
}
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, each line of the recipe in its table."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(PACKAGE, folder / PACKAGE.name)  # with the bytecode, which stays valid: files keep their times
    recipe = re.findall(r"^```diff\n (.*\n)\+(.*\n)```", (ROOT / "docs/extending.md").read_text(), re.MULTILINE)
    for file, (head, line) in zip((TABLE, HLO_ROWS), recipe[:2], strict=True):
        path = folder / PACKAGE.name / file
        before, after = path.read_text().split(head)
        path.write_text(before + head + line + after)
    for type in ("bf16", "f64"):  # bf16 calls the function of f32
        (folder / f"{type}.hlo").write_text(HYPOTENUSE.replace("TYPE", type))
    return folder


def xla_emitters_in(folder: Path, *commands: str) -> str:
    """Output of the command lines of the package in `folder`, which must succeed."""
    code = "import sys; from xla_emitters.tools.main import main; sys.exit(any(main(c.split()) for c in sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *commands],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "XLA_EMITTERS_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_rows_add_a_function(extended: Path) -> None:
    """Parsed, emitted, lowered to a call of libdevice, and equal to NumPy's at every stage, PTX among them."""
    said = xla_emitters_in(extended, "check bf16.hlo f64.hlo", "compile bf16.hlo --stage llvm-dialect")
    assert said.count("ok") >= 2
    assert "@__nv_hypotf" in said
