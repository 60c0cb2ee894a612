"""What `reduce` leaves of programs with unknown sizes, for given commands and for planted faults:
verified StableHLO that still answers them.
"""

import pytest
from long_lists import but_long
from runtime.planted_faults import Fault, planted
from runtime.stablehlo_programs import CASES, CORPUS
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dynamic.loops.disc_flatten_memref import DiscFlattenMemrefPass
from xla_emitters.explore.reduce.hlo_lines import ModuleLines
from xla_emitters.explore.reduce.reduce import reduce
from xla_emitters.explore.reduce.symptoms import MOST_CHOICES, Crash, choices_of, crash_of, wrong_in
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

OPTIONS = CompileOptions(target="t4")
NAMES = sorted(path.stem for path in CORPUS.glob("*.mlir"))

DENSE = """
module @dense {
  func.func public @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %same = stablehlo.compare EQ, %n, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%same, %n) {error_message = "{0} \\22rows\\22"} : (tensor<i1>, tensor<i32>) -> ()
    %a = stablehlo.subtract %x, %y : tensor<?x4xf32>
    %b = stablehlo.abs %a : tensor<?x4xf32>
    return %b : tensor<?x4xf32>
  }
}
""".lstrip()


def opcodes(text: str) -> list[str]:
    return [line.opcode for one in ModuleLines.of(text).computations for line in one.lines if not line.is_parameter]


LONG = ("random", "double", "special_functions", "composites")
SHORT = [name for name in NAMES if name not in LONG][::4]


@pytest.mark.parametrize("name", but_long(NAMES, [name for name in NAMES if name not in SHORT]))
def test_lines_of_a_program_are_the_program(name: str) -> None:
    """What is printed for `parse_hlo` reads back as itself, and as StableHLO that reads back as the same HLO."""
    module = parse_stablehlo((CORPUS / f"{name}.mlir").read_text())
    text = print_hlo(module, of_program=True)
    assert print_hlo(parse_hlo(text, of_program=True), of_program=True) == text
    found = ModuleLines.of((CORPUS / f"{name}.mlir").read_text())
    assert opcodes(found.text()) == opcodes(ModuleLines.of(found.text()).text())


def test_without_being_asked_hlo_text_has_no_ops_of_programs() -> None:
    text = print_hlo(parse_stablehlo(DENSE), of_program=True)
    with pytest.raises(Exception, match="no HLO op 'shape-assertion'"):
        parse_hlo(text)
    with pytest.raises(Exception, match="no HLO text"):
        print_hlo(parse_stablehlo(DENSE))


@pytest.mark.parametrize(("word", "wanted"), [("stablehlo.abs", ["abs"]), ("stablehlo.subtract", ["subtract"])])
def test_only_what_is_asked_for_is_left(word: str, wanted: list[str]) -> None:
    asked = list[str]()

    def keep(text: str) -> bool:
        asked.append(text)
        return word in text and "?" in text

    found = reduce(DENSE, keep)
    assert opcodes(found.text) == wanted
    assert "tensor<?x" in found.text
    assert found.instructions == (6, 1)
    for text in asked:
        parse_stablehlo(text)


def test_a_check_of_sizes_stays_where_it_is_asked_for() -> None:
    """It has no result that anything needs."""
    found = reduce(DENSE, lambda text: "shape_assertion" in text)
    assert "shape-assertion" in opcodes(found.text)
    assert "abs" not in opcodes(found.text)


def test_unknown_sizes_become_known_where_that_does_not_matter() -> None:
    found = reduce(DENSE, lambda text: "stablehlo.subtract" in text)
    assert "?" not in found.text


def test_what_a_loop_runs_becomes_the_program() -> None:
    text = (CORPUS / "scan.mlir").read_text()
    found = reduce(text, lambda text: "stablehlo.dynamic_update_slice" in text and "?" in text)
    assert opcodes(found.text) == ["dynamic-update-slice"]


PLANTED = [
    ("dense", Fault("disc-input-inline-fusion", "arith.subf", "f32"), "loops", ["subtract"]),
    ("dense", Fault("xla-convert-scf-to-cf", "arith.subf", "f32"), "llvm-dialect", ["subtract"]),
    ("scan", Fault("xla-convert-scf-to-cf", "arith.mulf", "f32"), "llvm-dialect", ["multiply"]),
    ("loop", Fault("xla-convert-scf-to-cf", "arith.addf", "f32"), "llvm-dialect", ["add"]),
    ("gradient", Fault("disc-input-inline-fusion", "arith.subf", "f32"), "loops", None),
]


@pytest.mark.parametrize(("name", "fault", "stage", "left"), but_long(PLANTED, PLANTED[2:]))
def test_planted_faults(name: str, fault: Fault, stage: str, left: list[str] | None) -> None:
    """The result is wrong with the fault, at given sizes, and right without it."""
    is_own = name == "dense"
    text = DENSE if is_own else (CORPUS / f"{name}.mlir").read_text()
    sizes = {"d0": 3} if is_own else CASES[name].sizes[-1]
    with planted(fault):
        wrong = wrong_in(text, OPTIONS, sizes)
        assert wrong.stage == stage
        found = reduce(text, wrong, near=wrong.near)
        assert wrong.sizes_in(found.text) is not None
    assert found.is_finished
    assert found.instructions[1] <= 5
    assert left is None or opcodes(found.text) == left
    assert wrong.sizes_in(found.text) is None


def test_a_right_program_is_not_wrong() -> None:
    assert wrong_in(DENSE, OPTIONS, {"d0": 3}) is None


def test_sizes_of_a_smaller_program() -> None:
    """Those that were given have their values; the others one of these, equal ones first."""
    assert list(choices_of(["b"], {"b": 2, "s": 8})) == [{"b": 2}]
    assert list(choices_of(["d0", "b"], {"b": 2, "s": 8})) == [{"b": 2, "d0": 2}, {"b": 2, "d0": 8}]
    assert list(choices_of([], {"b": 2})) == [{}]
    many = list(choices_of(["d0", "d1", "d2", "d3"], {"b": 2, "s": 8}))
    assert len(many) == MOST_CHOICES
    assert many[0] == dict.fromkeys(["d0", "d1", "d2", "d3"], 2)


def test_the_same_crash_of_a_program_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    right = DiscFlattenMemrefPass.apply

    def fails_on_subtractions(self: DiscFlattenMemrefPass, ctx: Context, op: ModuleOp) -> None:
        if any(inner.name == "arith.subf" for inner in op.walk()):
            raise KeyError("no subtraction")
        right(self, ctx, op)

    monkeypatch.setattr(DiscFlattenMemrefPass, "apply", fails_on_subtractions)
    signature = crash_of(DENSE, OPTIONS)
    assert signature.startswith("KeyError")
    found = reduce(DENSE, Crash(OPTIONS, signature))
    assert opcodes(found.text) == ["subtract"]
