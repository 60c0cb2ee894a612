"""The sentences about ops: one for each that is met."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from xla_emitters.dialects.hlo import ALL_OPS
from xla_emitters.explore.opcodes import sentences
from xla_emitters.pipelines.compiler import compile

CORPUS = Path(__file__).parents[2] / "corpus"


def test_every_opcode_of_hlo_has_one() -> None:
    found = sentences()["hlo"]
    assert {*ALL_OPS} <= found.keys()
    assert not [name for name, said in found.items() if not said or "see ROWS" in said or "the rows of" in said]


def test_no_name_is_twice_and_none_is_unknown() -> None:
    """A name that the table gives to an op that is not there would never be shown."""
    text = files("xla_emitters.explore").joinpath("opcodes.txt").read_text()
    for part in re.split(r"^\[\w+\]\n", text, flags=re.MULTILINE)[1:]:
        names = [name for line in part.splitlines() if line for name in line.partition(": ")[0].split(", ")]
        assert len({*names}) == len(names)
    assert {name for name in sentences()["hlo"]} == {*ALL_OPS}


@pytest.mark.parametrize("room", ["loop", "reduction", "scatter", "transpose", "concatenate", "dynamic_update_slice"])
def test_the_ops_of_kernels_have_one(room: str) -> None:
    """At every pass: their ops are counted after each."""
    table = sentences()
    for path in sorted((CORPUS / room).glob("*.hlo"))[::24]:
        program = compile(path, target="h100", stage="llvm-dialect", record="stages")
        counts = {name for trace in program.traces for step in trace.steps for name in step.op_counts}
        missing = {
            name
            for name in counts
            if name not in table["mlir"] and name.removeprefix("hlo.").replace("_", "-") not in table["hlo"]
        }
        assert not missing - {"builtin.module", "hlo.computation", "hlo.module"}, path
