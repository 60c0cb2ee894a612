"""XLA's log of passes is cut into the states that each pass left."""

import re
from pathlib import Path

import pytest

from xla_emitters.errors import ParseError
from xla_emitters.explore.compare.xla_log import parse_log

REFERENCE = Path(__file__).parents[3] / "corpus" / "reference"


def log(pipeline: str, *runs: str) -> str:
    """A log of passes; "a@f" is pass a on function f, "a" is a on the module. The dumps are "// 0", "// 1" ..."""
    lines = [f"any({pipeline})"]
    for number, run in enumerate(runs):
        name, at, function = run.partition("@")
        op = f"'func.func' operation: @{function}" if at else "'builtin.module' operation: @m"
        lines += ["", f"// -----// IR Dump Before SomePass: {name}{{x=1 y=a,b}} ({op}) //----- //", f"// {number}"]
    return "\n".join(lines)


def test_a_state_is_the_dump_before_the_next_pass() -> None:
    found = parse_log(log("canonicalize{x=1 y=a,b},cse", "canonicalize", "cse"))
    assert found.dumps == ("// 0", "// 1")
    assert [(state.name, state.dump) for state in found.states] == [("emit", 0), ("canonicalize", 1), ("cse", None)]


def test_neighbouring_passes_on_functions_run_function_by_function() -> None:
    """What `a` left of f is before b@f, what it left of g is before b@g, and no dump has both."""
    found = parse_log(log("func.func(a),func.func(b),cse", "a@f", "b@f", "a@g", "b@g", "cse"))
    states = {state.name: (state.dump, dict(state.functions)) for state in found.states}
    assert states == {"emit": (0, {}), "a": (4, {"f": 1, "g": 3}), "b": (4, {}), "cse": (None, {})}


def test_passes_that_the_inliner_runs_are_part_of_it() -> None:
    found = parse_log(log("inline{default-pipeline=cse},cse", "inline", "cse@f", "cse@g", "cse"))
    assert [(state.name, state.dump) for state in found.states] == [("emit", 0), ("inline", 3), ("cse", None)]


def test_a_pass_that_is_there_twice_is_two_states() -> None:
    found = parse_log(log("cse,a,cse", "cse", "a", "cse"))
    assert [state.name for state in found.states] == ["emit", "cse", "a", "cse"]


@pytest.mark.parametrize("fusion", ["gelu", "transpose", "row_reduction"])
def test_every_pass_of_a_recorded_pipeline_has_its_state(fusion: str) -> None:
    text = (REFERENCE / fusion / "passes.mlir.log").read_text()
    pipeline = re.findall(
        r"(?:^|[,(])(?:func\.func\()?([a-z][\w-]*)(?=[{,)])", text.splitlines()[0].removeprefix("any")
    )
    found = parse_log(text)
    assert [state.name for state in found.states[1:]] == pipeline
    assert found.states[-1].dump is None
    assert all(state.dump is not None for state in found.states[:-1])


def test_another_text_is_refused() -> None:
    with pytest.raises(ParseError, match=r"x\.log is not a log of XLA's emitter passes"):
        parse_log("module {}\n", "x.log")
