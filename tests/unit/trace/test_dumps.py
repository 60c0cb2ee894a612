"""Dumps and tables of a trace."""

from pathlib import Path

import pytest

from xla_emitters.errors import UsageError
from xla_emitters.trace import Step, Trace
from xla_emitters.trace.dumps import dumps, stage_table, write_tree

TRACE = Trace(
    "negate",
    [
        Step("hlo", "hlo", "HloModule m", 0.0, {"hlo.negate": 1}),
        Step("emit", "xla_gpu", "module {}", 0.0141, {"arith.negf": 1, "func.func": 2}),
        Step("xla-cse", None, "module {}", 0.001, {"arith.negf": 1}),
        Step("xla-canonicalize", "inlined", "module { }", 0.002, {"arith.negf": 1}),
        Step("ptx", "ptx", ".version 8.6", 0.03),
    ],
)


def test_dumps() -> None:
    every, changed = list(dumps(TRACE)), list(dumps(TRACE, changed_only=True))
    assert every[2] == "// -----// IR after xla-cse //----- //\nmodule {}"
    assert changed == [*every[:2], *every[3:]]


def test_a_tree_of_numbered_files(tmp_path: Path) -> None:
    (tmp_path / "17-stale.mlir").write_text("of an earlier run")
    (tmp_path / "mine.txt").write_text("kept")
    write_tree(TRACE, tmp_path)
    files = "00-hlo.hlo 01-emit.mlir 02-xla-cse.mlir 03-xla-canonicalize.mlir 04-ptx.ptx mine.txt"
    assert sorted(path.name for path in tmp_path.iterdir()) == files.split()
    assert (tmp_path / "02-xla-cse.mlir").read_text() == "// unchanged by xla-cse\nmodule {}\n"
    assert (tmp_path / "03-xla-canonicalize.mlir").read_text() == "module { }\n"


def test_the_stage_hlo_of_a_program_is_mlir(tmp_path: Path) -> None:
    write_tree(Trace("program", [Step("disc-unused-function-removal", "hlo", "module {}", 0.0)]), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["00-disc-unused-function-removal.mlir"]


def test_a_place_that_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write to"):
        write_tree(TRACE, tmp_path / "file")


def test_a_row_a_stage_takes_the_time_of_all_its_passes() -> None:
    assert stage_table(TRACE).splitlines() == [
        "stage    ops    ms",
        "hlo        1   0.0",
        "xla_gpu    3  14.1",
        "inlined    1   3.0",
        "ptx           30.0",
        "total         47.1",
    ]
    assert stage_table(TRACE, every_pass=True).splitlines()[3].split() == ["xla-cse", "1", "1.0"]
