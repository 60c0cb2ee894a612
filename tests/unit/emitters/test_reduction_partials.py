"""Partial results of a reduction: how many numbers each has, and how two of them are combined."""

import pytest
from long_lists import but_long
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import device
from xla_emitters.dialects.mlir import func
from xla_emitters.emitters.emit import emitter_for
from xla_emitters.emitters.reduction import ReductionEmitter
from xla_emitters.explore.check.check import check
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import view_of
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.text.hlo import parse_hlo

TEXT = """
both {{ a = s32[] parameter(0)
       c = s32[] parameter(1)
       b = s32[] parameter(2)
       d = s32[] parameter(3)
       s = s32[] add(a, b)
       seven = s32[] constant(7)
       t = s32[] {sum}
       m = s32[] maximum(c, d)
       ROOT r = (s32[], s32[]) tuple(t, m) }}
ENTRY f {{ p = s32[{shape}] parameter(0)
       start = s32[] constant(5)
       ROOT r = (s32[{kept}], s32[{kept}]) reduce(p, p, start, start), dimensions={{{gone}}}, to_apply=both }}
"""
EVERY_PLAN = {
    "row": ("3,700", "3", "1"),
    "row of one warp": ("5,40", "5", "1"),
    "multi-row": ("40,4", "40", "1"),
    "column": ("33,34", "34", "0"),
    "small column": ("128,4", "4", "0"),
}


@pytest.mark.parametrize("sum", but_long(["subtract(s, seven)", "add(s, seven)"], ["add(s, seven)"]))
@pytest.mark.parametrize("plan", EVERY_PLAN)
def test_an_initial_value_counts_once_whatever_the_body(plan: str, sum: str):
    """a + b + 7 from 5: as many sevens as elements, one five. Exact in any order, so any mistake shows."""
    shape, kept, gone = EVERY_PLAN[plan]
    check(TEXT.format(sum=sum, shape=shape, kept=kept, gone=gone), verify=False).raise_if_different()


def emitted(sum: str) -> tuple[ModuleOp, list[str]]:
    view = view_of(entry_of(parse_hlo(TEXT.format(sum=sum, shape="3,700", kept="3", gone="1"), "x.hlo")))
    with take_notes() as notes:
        emitter = emitter_for(view, device("h200"))
        assert isinstance(emitter, ReductionEmitter)
        return emitter.emit(view, device("h200")), [made.text for made in notes.decisions if made.topic == "start"]


def test_only_bodies_without_known_identity_have_a_function_of_their_own():
    for sum, wanted in (("add(a, b)", []), ("add(s, seven)", ["both_r__if_both"])):
        module, told = emitted(sum)
        functions = [op.sym_name.data for op in module.walk() if isinstance(op, func.FuncOp)]
        assert [name for name in functions if name.endswith("__if_both")] == wanted
        assert len(told) == len(wanted)
        assert all("no known identity" in text for text in told)
