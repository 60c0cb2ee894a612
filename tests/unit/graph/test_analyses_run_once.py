"""Each pass on HLO, and the plan, makes one view of a fusion; results of analyses are cached on the view."""

import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import pytest
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.graph.buffers import aliases_of
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.heroes import find_transposes
from xla_emitters.graph.in_place_updates import find_in_place_updates
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.reduction_kinds import find_reductions
from xla_emitters.graph.scatters import arrays_in_place, scatter_of
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import GRAPH
from xla_emitters.text.hlo import parse_hlo

ANALYSES: tuple[Callable[..., object], ...] = (
    aliases_of,
    arrays_in_place,
    find_in_place_updates,
    find_reductions,
    find_transposes,
    scatter_of,
)
COUNTED = {found.__code__: found.__name__ for found in (entry_of, plan_program, view_of)} | {
    vars(found)["__wrapped__"].__code__: found.__name__ for found in ANALYSES
}
"""The code of a function, for an analysis that which runs where nothing is kept yet -> its name."""

HEADS = {
    "reduction": """
      add { a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT s = f32[] add(a, b) }
      f { p = f32[64,2048] parameter(0)
          z = f32[] constant(0)
          ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add }
      ENTRY main { x = f32[64,2048] parameter(0)
                   ROOT it = f32[64] fusion(x), kind=kInput, calls=f }""",
    "transpose": """
      f { p = f32[64,96] parameter(0)
          ROOT t = f32[96,64] transpose(p), dimensions={1,0} }
      ENTRY main { x = f32[64,96] parameter(0)
                   ROOT it = f32[96,64] fusion(x), kind=kInput, calls=f }""",
    "scatter": """
      add { a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT s = f32[] add(a, b) }
      f { p = f32[100,8] parameter(0)
          i = s32[16,1] parameter(1)
          u = f32[16,1,8] parameter(2)
          ROOT s = f32[100,8] scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={},
            scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }
      ENTRY main { x = f32[100,8] parameter(0)
                   y = s32[16,1] parameter(1)
                   w = f32[16,1,8] parameter(2)
                   ROOT it = f32[100,8] fusion(x, y, w), kind=kInput, calls=f }""",
}


@contextmanager
def counting() -> Generator[Counter[str]]:
    """How often the functions of COUNTED run, wherever they are called from and under whatever name they were imported."""
    found = Counter[str]()

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in COUNTED:
            found[COUNTED[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield found
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("record", ["none", "stages"])
def test_each_pass_on_hlo_asks_once_and_so_do_the_plan_and_all_after_it(head: str, record: str) -> None:
    """Of each fusion. With record="stages" the emitter is also asked how it cuts the fusion, which goes by the same analyses."""
    asked = list[Counter[str]]()
    fusions = [1]
    with counting() as found:

        def after_pass(name: str, stage: str | None, module: ModuleOp) -> None:
            asked.append(Counter(found))
            fusions.append(sum(isinstance(op, FusionOp) for op in module.walk()))
            found.clear()

        options = CompileOptions(stage="llvm-dialect", record=record)
        compile_module(parse_hlo(HEADS[head]), options, graph_observer=after_pass)
    assert len(asked) == len(GRAPH)
    for in_pass, before in zip(asked, fusions, strict=False):
        assert in_pass["entry_of"] <= 2  # by the map's row, whether the pass has anything to do, and by the pass
        assert all(count <= before for name, count in in_pass.items() if name != "entry_of"), in_pass
    # Where a pass made two of the one, the plan has two.
    assert found["plan_program"] == 1
    assert (
        found["entry_of"] <= 2
    )  # by the plan, and of the module as given: several fusions are compiled by other rules than one
    assert found["view_of"] == fusions[-1]
    assert all(count <= fusions[-1] for name, count in found.items() if name != "entry_of"), found
    assert {"reduction": "find_reductions", "transpose": "find_transposes", "scatter": "scatter_of"}[head] in found
