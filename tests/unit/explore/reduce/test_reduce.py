"""What `reduce` leaves: only what the question needs, always HLO, never more than it was given; and what it refuses."""

from pathlib import Path

import pytest
from runtime.planted_faults import Fault, planted
from runtime.small_programs import EVERY_PASS_ON_HLO, PROGRAMS, TARGET

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dynamic.passes.disc_inliner import DiscInlinerPass
from xla_emitters.errors import UsageError
from xla_emitters.explore.reduce.hlo_lines import ModuleLines
from xla_emitters.explore.reduce.reduce import cut, reduce
from xla_emitters.explore.reduce.symptoms import Crash, Wrong, crash_of, wrong_in
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass

OPTIONS = CompileOptions(target=TARGET)
LOOP = Path(__file__).parents[4] / "examples" / "modules" / "loop.hlo"


def opcodes(text: str) -> list[str]:
    return [line.opcode for one in ModuleLines.of(text).computations for line in one.lines]


@pytest.mark.tiny
def test_only_what_is_asked_for_is_left() -> None:
    found = reduce(PROGRAMS["gelu"], lambda text: "tanh(" in text)
    assert opcodes(found.text) == ["parameter", "tanh"]
    assert "[" in found.text
    assert "bf16[]" in found.text
    assert found.instructions == (17, 1)
    assert found.is_finished


def test_every_question_is_about_hlo() -> None:
    asked = list[str]()

    def keep(text: str) -> bool:
        asked.append(text)
        return "scatter(" in text

    found = reduce(EVERY_PASS_ON_HLO, keep)
    for text in asked:
        parse_hlo(text)
    assert opcodes(found.text).count("scatter") == 1
    assert found.instructions[1] <= 2
    assert len(set(asked[1:])) == len(asked[1:])


def test_inside_a_loop() -> None:
    """What a loop runs is reached too: its own tuple and condition go where they are not asked for."""
    text = LOOP.read_text()
    found = reduce(text, lambda text: "while(" in text)
    assert "while" in opcodes(found.text)
    assert found.instructions[1] < found.instructions[0]
    parse_hlo(found.text)


def test_a_question_that_the_file_does_not_answer_is_refused() -> None:
    with pytest.raises(UsageError, match="not true of the file"):
        reduce(PROGRAMS["gelu"], lambda text: False)


def test_the_time_ends_the_search_with_the_best_so_far() -> None:
    found = reduce(PROGRAMS["gelu"], lambda text: "tanh(" in text, seconds=1e-9 + 0.05)
    parse_hlo(found.text)
    assert "tanh(" in found.text


CALLED_TWICE = """
module @m {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %b : tensor<4xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = stablehlo.tanh %x : tensor<4xf32>
    %b = stablehlo.negate %a : tensor<4xf32>
    %c = stablehlo.exponential %b : tensor<4xf32>
    %d = stablehlo.sine %c : tensor<4xf32>
    return %d : tensor<4xf32>
  }
}
""".lstrip()


@pytest.mark.parametrize("answers", [2, 3, 4, 1000])
def test_the_result_is_never_larger_than_the_file(answers: int) -> None:
    """Eight instructions when both calls are inlined, six before. After so many answers everything is refused, as if the time were over."""
    asked, better = list[str](), list[int]()

    def keep(text: str) -> bool:
        """Whether two sines are computed."""
        asked.append(text)
        module = parse_stablehlo(text)
        DiscInlinerPass().apply(make_context(), module)
        return len(asked) <= answers and sum(isinstance(op, HloOp) and op.opcode == "sine" for op in module.walk()) == 2

    found = reduce(CALLED_TWICE, keep, on_better=lambda text, instructions: better.append(instructions))
    assert found.instructions[0] == 6
    assert found.instructions[1] <= 6
    assert all(instructions <= 6 for instructions in better)
    assert found.instructions[1] < 6 or answers < 1000


def test_cut_values_become_parameters_of_the_fusion_and_of_entry() -> None:
    module = ModuleLines.of(PROGRAMS["ragged"])
    smaller = cut(module, "scale", ["s"])
    cleaned = smaller.cleaned()
    assert [line.opcode for line in cleaned.by_name["scale"].lines] == ["parameter", "parameter", "subtract"]
    assert len(cleaned.entry.parameters) == 2
    parse_hlo(str(cleaned))


def test_wrong_numbers_are_kept() -> None:
    """After flattening, every f32 multiplication is an addition: one multiplication is enough to see it."""
    with planted(Fault("xla-flatten-tensors", "arith.mulf", "f32")):
        wrong = wrong_in(PROGRAMS["ragged"], OPTIONS, blocks=16)
        assert (wrong.stage, wrong.near) == ("flat", ("p",))
        found = reduce(PROGRAMS["ragged"], wrong, near=wrong.near)
    assert [one for one in opcodes(found.text) if one not in ("parameter", "fusion")] == ["multiply"]
    assert wrong_in(found.text, OPTIONS, blocks=16) is None


def test_the_same_crash_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FlattenTensorsPass.apply

    def fails_on_selects(self: FlattenTensorsPass, ctx: object, op: object) -> None:
        if any(inner.name == "arith.select" for inner in op.walk()):
            raise KeyError("no select")
        right(self, ctx, op)

    monkeypatch.setattr(FlattenTensorsPass, "apply", fails_on_selects)
    signature = crash_of(PROGRAMS["ragged"], OPTIONS)
    assert signature.startswith("KeyError")
    assert crash_of(PROGRAMS["bytes"], OPTIONS) is None
    found = reduce(PROGRAMS["ragged"], Crash(OPTIONS, signature))
    assert "select" in opcodes(found.text)
    assert found.instructions[1] == 1


def test_another_fault_is_not_the_one_that_is_kept() -> None:
    """What cannot be compiled does not count as a wrong number."""
    assert not Wrong(OPTIONS, "flat")("HloModule m\nENTRY e { ROOT %x = f32[2] nonsense() }")
