"""What is recorded of a compilation, and where the lines of its IR come from."""

from functools import partial

import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr, i64
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir, print_ir_with_lines
from xla_emitters.errors import InternalError
from xla_emitters.pipelines.recorder import IrListing, Recorder, sources_of_lines
from xla_emitters.rewrite.notes import decide
from xla_emitters.transforms.cse import CsePass

TEXT = """#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 3]">
module {
  func.func @f(%i: index) -> index {
    %0 = xla_gpu.apply_indexing #map(%i) loc("twice"("a.hlo":3:1))
    %1 = xla_gpu.apply_indexing #map(%i) loc("again"("a.hlo":4:1))
    %2 = arith.addi %0, %1 : index loc("sum"("a.hlo":5:1))
    return %2 : index
  }
}
"""


def recorded(record: str, *, apart: bool = False) -> Recorder:
    recorder = Recorder("k", record, verify=True, observe=None, apart=apart)

    def emit() -> ModuleOp:
        decide("emitter", "none")
        return parse_ir(TEXT)

    module = recorder.emission(emit)
    recorder.run(CsePass(), "inlined", make_context(), module)
    return recorder


def test_every_line_says_its_instructions() -> None:
    """The two equal ops become one, which does the work of both."""
    trace = recorded("passes").trace
    before, after = trace
    assert before.sources == ((), (), (), ("twice",), ("again",), ("sum",), (), (), ())
    assert after.sources == ((), (), (), ("twice", "again"), ("sum",), (), (), ())
    assert [len(step.sources) for step in trace] == [step.ir.count("\n") + 1 for step in trace]
    assert before.decisions[0].topic == "emitter"
    assert before.op_counts == {"func.func": 1, "xla_gpu.apply_indexing": 2, "arith.addi": 1, "func.return": 1}


def test_texts_that_are_printed_apart() -> None:
    """The pass that follows changes the module before its text is asked for."""
    here, apart = recorded("stages"), recorded("stages", apart=True)
    assert [step.ir for step in apart.trace] == [None, None]
    apart.settle()
    assert [(step.ir, step.sources) for step in apart.trace] == [(step.ir, step.sources) for step in here.trace]


def test_what_is_kept() -> None:
    assert [step.ir is not None for step in recorded("none").trace] == [False, False]
    assert [step.op_counts != {} for step in recorded("none").trace] == [False, False]


def test_what_no_pass_changed_is_not_verified_again() -> None:
    """The operand of the wrong sum has another type; a pass that runs would find it."""
    recorder, module = Recorder("k", "none", verify=True, observe=None), parse_ir(TEXT)
    recorder.read("xla_gpu", module)
    (total,) = (op for op in module.walk() if op.name == "arith.addi")
    Rewriter.replace_value_with_new_type(total.results[0], i64)
    recorder.pass_over("xla-peel-loops", None, module, 0.0)
    other = module.clone()
    for ask in (partial(recorder.pass_over, "b", None, other, 0.0), partial(recorder.read, "a", module)):
        with pytest.raises(InternalError, match="does not verify"):
            ask()


def test_lines_of_ops_are_those_of_the_text() -> None:
    module = parse_ir(TEXT)
    text, starts = print_ir_with_lines(module)
    assert text == print_ir(module)
    lines = text.split("\n")
    assert len(starts) == sum(1 for _ in module.walk())
    for line, op in starts:
        name = op.name.removeprefix("builtin.").replace("func.return", "return")
        assert name in lines[line]
    assert sources_of_lines(text, [])[3] == ()


def test_a_function_that_did_not_change_is_listed_as_before() -> None:
    """Each listing is that of the whole module, printed anew: which parts are taken from the one before makes no difference."""
    module = parse_ir(
        "module { func.func @f(%i: index) -> index { %0 = arith.addi %i, %i : index\n %1 = arith.addi %i, %i : index\n"
        '%2 = arith.muli %0, %1 : index loc("product"("a.hlo":5:1))\n return %2 : index }\n'
        'func.func @g(%i: index) -> index { %0 = arith.addi %i, %i : index loc("sum"("a.hlo":6:1))\n return %0 : index } }'
    )
    first, second = [*module.ops]
    recorder, context = Recorder("k", "passes", verify=True, observe=None), make_context()
    recorder.read("first", module)
    wanted = [(print_ir(module), IrListing()(module)[1])]
    for number in range(4):
        match number:
            case 0:
                CsePass().apply(context, module)  # changes @f alone
            case 1:
                second.attributes["changed"] = UnitAttr()
            case 2:
                Rewriter.erase_op(first)  # @g moves up
            case _:
                module.attributes["changed"] = UnitAttr()
        recorder.read("next", module)
        wanted.append((print_ir(module), IrListing()(module)[1]))
    assert [(step.ir, step.sources) for step in recorder.trace] == wanted
    assert len({text for text, _ in wanted}) == len(wanted)
    assert ("product",) in wanted[0][1]
    assert ("sum",) in wanted[-1][1]


def test_parts_are_not_kept_where_maps_have_aliases() -> None:
    """An alias is numbered by its first use in the whole text."""
    module = parse_ir(
        '#a = #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 3]">\n'
        '#b = #xla_gpu.indexing_map<"(d0) -> (d0 * 3), domain: d0 in [0, 3]">\n'
        "module { func.func @f(%i: index) -> index { %0 = xla_gpu.apply_indexing #a(%i)\n return %0 : index }\n"
        "func.func @g(%i: index) -> index { %0 = xla_gpu.apply_indexing #b(%i)\n return %0 : index } }"
    )
    recorder = Recorder("k", "passes", verify=True, observe=None)
    recorder.read("first", module)
    Rewriter.erase_op(next(iter(module.ops)))
    recorder.read("next", module)
    assert recorder.trace.steps[-1].ir == print_ir(module)
