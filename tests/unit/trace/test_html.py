"""The page of a trace: every line is there, with its source."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

import xla_emitters as xe
from xla_emitters.trace import Step, Trace
from xla_emitters.trace.html import trace_html

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return xe.compile(ROOT / "examples" / "gelu.hlo", stage="llvm-dialect").trace


class Balance(HTMLParser):
    """Whether tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def lines_of(page: str) -> list[tuple[set[str], str]]:
    """(classes, text) of every line."""
    found = re.findall(r'<span class="(xe-l[^"]*)"[^>]*>(.*?)</span>(?=<span class="xe-l|</pre>)', page)
    return [(set(classes.split()), unescape(re.sub(r"<[^>]*>", "", inner))) for classes, inner in found]


def test_the_text_of_every_stage_is_there(trace: Trace) -> None:
    page = trace_html(trace.name, trace.steps)
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    shown = [text for _, text in lines_of(page)]
    wanted = [line or " " for step in trace if step.ir and step.stage for line in step.ir.rstrip("\n").split("\n")]
    assert shown == wanted


def test_each_instruction_of_gelu_lights_its_ops(trace: Trace) -> None:
    """The line that defines tanh_0 shares a class with the op of each stage that computes it, and with no other kind of op."""
    lines = lines_of(trace_html(trace.name, trace.steps))
    for name, ops in (
        ("tanh_0", ("math.tanh", "llvm.call @__nv_tanhf", " tanh(")),
        ("cube", ("mulf", "fmul", "multiply(")),
    ):
        (defined,) = [classes for classes, text in lines if text.strip().startswith(f"%{name} =")][:1]
        (own,) = defined - {"xe-l"}
        lit = [text for classes, text in lines if own in classes]
        assert len(lit) >= 8
        for op in ops:
            assert any(op in text for text in lit), (name, op)
        assert not any("math.tanh" in text for text in lit) or name == "tanh_0"


def test_without_ir_it_says_so() -> None:
    assert "recorded without IR" in trace_html("k", [Step("emit", "xla_gpu", None, 0.1)])


def test_what_a_module_is_called_is_text() -> None:
    page = trace_html("k", [Step("emit", "xla_gpu", 'a<b> & "c"', 0.1, sources=(('<x"y>',),))])
    assert "<b>" not in page
    assert '<x"' not in page
    assert lines_of(page)[0][1] == 'a<b> & "c"'


def test_a_trace_shows_its_stages_when_asked(trace: Trace) -> None:
    """All of them, or those that are named beside the HLO; a name that it lacks is an error with those that it has."""
    assert trace.show().text == trace_html(trace.name, trace.steps)
    assert trace.show("flat").text == trace_html(trace.name, [trace["hlo"], trace["flat"]])
    with pytest.raises(KeyError, match="no stage 'nothing' in this trace; there are: hlo"):
        trace.show("nothing")


def test_notebooks_show_a_row_for_each_stage(trace: Trace) -> None:
    card = trace._repr_html_()
    assert len(card) < 200_000
    assert all(f">  {stage} " in card for stage in trace.stages)
    assert "trace.show(" in card
