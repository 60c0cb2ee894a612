"""Which emitter a root would have alone: XLA's choice for real fusions, and the order in which emitters are asked."""

from pathlib import Path

import pytest

from xla_emitters.emitters.emit import EMITTERS
from xla_emitters.graph.buffers import aliases_of
from xla_emitters.graph.control_computations import kernel_sources
from xla_emitters.graph.kinds import WHY_NOT, kind_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = [path for kind in sorted((*WHY_NOT, "loop")) for path in sorted((CORPUS / kind).glob("*.hlo"))[::6]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_kind_of_a_single_root_is_the_emitter_that_xla_took(path: Path) -> None:
    """The folders of the corpus are these. Where XLA takes several roots together, one of them at least is of that kind.

    An update whose result lies elsewhere (ENTRY has the array unpacked, say) goes to the loop: the buffers say so, not the root.
    """
    (source,) = kernel_sources(parse_hlo(path.read_text(), path.name))
    view = view_of(source)
    kinds = {kind_of(view, root) for root in view.roots}
    if "dynamic_update_slice" in kinds and not aliases_of(view):
        kinds = {"loop"}
    assert path.parent.name in kinds


def test_kinds_are_emitters_in_their_order() -> None:
    names = [emitter.name for emitter in EMITTERS]
    assert [name for name in names if name in WHY_NOT] == list(WHY_NOT)
    assert set(names) - set(WHY_NOT) == {"memcpy", "loop"}


def kind(body: str, called: str = "") -> str:
    (source,) = kernel_sources(parse_hlo(f"{called}\nENTRY f {{\n{body}\n}}"))
    view: FusionView = view_of(source)
    (root,) = view.roots
    return kind_of(view, root)


def test_what_the_emitters_decline_goes_to_the_loop() -> None:
    """A transpose of small tiles, a concatenate of too many operands, an update of what is computed."""
    parameter = "p = f32[4,4] parameter(0)"
    assert kind(f"{parameter}\nROOT t = f32[4,4] transpose(p), dimensions={{1,0}}") == "loop"
    assert kind(f"{parameter}\nROOT c = f32[16,4] concatenate(p, p, p, p), dimensions={{0}}") == "concatenate"
    assert kind(f"{parameter}\nROOT c = f32[20,4] concatenate(p, p, p, p, p), dimensions={{0}}") == "loop"
    update = "u = f32[2,4] parameter(1)\ni = s32[] parameter(2)\nROOT d = f32[4,4] dynamic-update-slice({}, u, i, i)"
    assert kind(f"{parameter}\n{update.format('p')}") == "dynamic_update_slice"
    assert kind(f"{parameter}\nn = f32[4,4] negate(p)\n{update.format('n')}") == "loop"


def test_an_update_in_place_may_be_a_map_of_what_it_replaces() -> None:
    """As for XLA, which calls `map` elementwise; and not a transpose, which reads other elements."""
    double = "double {\na = f32[] parameter(0)\nROOT r = f32[] add(a, a)\n}"
    body = """p = f32[4,4] parameter(0)
        i = s32[] parameter(1)
        u = f32[4,4] {}
        ROOT d = f32[4,4] dynamic-update-slice(p, u, i, i)"""
    assert kind(body.format("map(p), dimensions={0,1}, to_apply=double"), double) == "dynamic_update_slice"
    assert kind(body.format("transpose(p), dimensions={1,0}")) == "loop"
