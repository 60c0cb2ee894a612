"""Runs text through `mlir-opt` 22, to compare how MLIR reads it."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir

SEPARATOR = "// -----"


def mlir_opt() -> str:
    """The tool's path; skips the test, saying so, where there is none."""
    tool = os.environ.get("XLA_EMITTERS_MLIR_OPT") or shutil.which("mlir-opt-22")
    if tool is None:
        pytest.skip("mlir-opt-22 is not installed (apt-get install mlir-22-tools)")
    return tool


def generic_text(modules: Sequence[str]) -> list[str]:
    """Each module as `mlir-opt` reads it, in its generic form."""
    return mlir_opt_says(modules, "--mlir-print-op-generic", "--allow-unregistered-dialect")


def mlir_opt_says(modules: Sequence[str], *flags: str) -> list[str]:
    """What `mlir-opt` makes of each module. One process for all."""
    done = subprocess.run(
        [mlir_opt(), "--split-input-file", *flags],
        input=f"\n{SEPARATOR}\n".join(modules),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answers = [answer.strip() for answer in done.stdout.split(SEPARATOR)]
    assert len(answers) == len(modules)
    return answers


def is_read_by_mlir(module: str) -> bool:
    """Whether `mlir-opt` knows all ops in the text."""
    return not re.search(
        r"\bxla(_gpu)?\.(?!range|entry|invariant|slice_index|backend_kind|is_reduction|not_invariant)", module
    )


def assert_means_the_same(modules: Sequence[str]) -> set[str]:
    """MLIR takes our custom and our generic text of each module to mean what the module's own text means; and so do we.

    modules  text as `mlir-opt` prints it
    returns  the names of the ops in them
    """
    names: set[str] = set()
    forms: list[str] = []
    for text in modules:
        module = parse_ir(text)
        names |= {op.name for op in module.walk()}
        ours = [print_ir(module), print_ir(module, generic=True), print_ir(module, locations=True)]
        assert [print_ir(parse_ir(form)) for form in ours] == [ours[0]] * len(ours)
        forms += [text, *ours]
    answers = generic_text(forms)
    for start in range(0, len(forms), 4):
        wanted, *got = answers[start : start + 4]
        assert got == [wanted] * 3, forms[start]
    return names


def assert_generic_form_is_read(modules: Sequence[str]) -> None:
    """What MLIR prints of each module in its generic form means to us what it means to MLIR."""
    wanted = generic_text(modules)
    assert generic_text([print_ir(parse_ir(text)) for text in wanted]) == wanted


def mlir_reads(text: str) -> bool:
    """Whether `mlir-opt` takes the text."""
    done = subprocess.run([mlir_opt()], input=text, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0
