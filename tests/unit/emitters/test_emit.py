"""The entry point of emission: which emitter takes a fusion, and the error if none does."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from xla_emitters import plugins
from xla_emitters.device import device
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.emitters import emit
from xla_emitters.emitters.emit import (
    EMITTERS,
    HERO_RULES,
    Emitter,
    emit_fusion,
    emitter_for,
    register_emitter,
)
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.pipelines.compiler import compile
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.text.hlo import parse_hlo


def computation(body: str) -> ComputationOp:
    return entry_of(parse_hlo(f"ENTRY f {{\n{body}\n}}", "x.hlo"))


def view(body: str) -> FusionView:
    return view_of(computation(body))


def test_the_loop_emitter_is_the_last_resort():
    assert EMITTERS[-1].name == "loop"
    assert emitter_for(view("p = f32[8] parameter(0)\nROOT n = f32[8] negate(p)"), device("h200")).name == "loop"


def test_the_seeds_rules_have_one_emitter_more():
    """It is tried after the heroes of reductions and transposes, before the rule for several results."""
    assert [e.name for e in HERO_RULES["current"]] == [e.name for e in HERO_RULES["seed"] if e.name != "input_slices"]
    assert [e.name for e in HERO_RULES["seed"]][:3] == ["reduction", "transpose", "input_slices"]
    with pytest.raises(UsageError, match="unknown hero rules 'old'"):
        emitter_for(view("p = f32[8] parameter(0)\nROOT n = f32[8] negate(p)"), device("h200"), "old")


OUTSIDER = """
from xla_emitters.emitters.loop import LoopEmitter

class OutsideEmitter(LoopEmitter):
    name = "outside"
"""


def outsider(path: Path, monkeypatch: pytest.MonkeyPatch) -> Emitter:
    """An emitter as a user writes it, imported from a file, or from none as at a Python prompt."""
    module = ModuleType("outside_emitter")
    exec(OUTSIDER, module.__dict__)
    if path.suffix:
        path.write_text(OUTSIDER)
        module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "outside_emitter", module)
    monkeypatch.setattr("xla_emitters.emitters.emit.HERO_RULES", dict(HERO_RULES))
    monkeypatch.setattr(plugins, "_registered", list(plugins.registered()))
    return module.OutsideEmitter()


def test_an_outside_emitter_takes_fusions_and_the_cache_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path / "cache"))
    text = "ENTRY f { p = f32[8] parameter(0)\n ROOT n = f32[8] negate(p) }"

    def chosen() -> str:
        decisions = compile(text, stage="xla_gpu").trace.decisions
        return next(found.data["name"] for found in decisions if found.topic == "emitter")

    assert chosen() == "loop"
    register_emitter(outsider(tmp_path / "outside.py", monkeypatch))
    assert chosen() == "outside", "the program that was kept before is another one"
    with pytest.raises(UsageError, match="'outside' is registered already"):
        register_emitter(emit.HERO_RULES["current"][-2])
    with pytest.raises(UsageError, match="no emitter 'last'") as caught:
        register_emitter(outsider(tmp_path / "outside.py", monkeypatch), before="last")
    assert "loop" in caught.value.help


def test_every_emitters_reason_is_in_the_refusal():
    body = """
      p = f32[8] parameter(0)
      q = f32[9] parameter(1)
      a = f32[8] negate(p)
      b = f32[9] negate(q)
      ROOT t = (f32[8], f32[9]) tuple(a, b)
    """
    with pytest.raises(Unsupported) as caught:
        emit_fusion(view(body), device("h200"))
    assert caught.value.message == "no emitter takes fusion %f"
    assert str(caught.value.place) == "x.hlo:1:7"
    emitters = [reason.split(" emitter: ")[0] for reason in caught.value.details]
    assert emitters == [emitter.name for emitter in EMITTERS]
    assert caught.value.details[-1] == "loop emitter: result 0 has 8 elements, result 1 has 9"


def test_ops_without_code_are_refused_together_by_name_and_place():
    text = """
      ENTRY f { p = c64[8] parameter(0)
                n = c64[8] negate(p)
                once = c64[8] fft(n), fft_type=FFT, fft_length={8}
                ROOT again = c64[8] fft(once), fft_type=IFFT, fft_length={8} }"""
    entry = entry_of(parse_hlo(text, "x.hlo"))
    with pytest.raises(Unsupported) as caught:
        emit_fusion(view_of(entry), device("h200"))
    error = caught.value
    assert error.message == "no code for HLO op 'fft' (instruction %once)"
    assert str(error.place).startswith("x.hlo:4:")
    ((place, note),) = error.notes
    assert note == "nor for 'fft' (instruction %again)"
    assert str(place).startswith("x.hlo:5:")
    assert error.help.startswith("there is code for: abs, acos, ")
    assert " broadcast, " in error.help
    assert " fft, " not in error.help


def test_a_called_computation_is_refused_for_what_has_no_code_in_it():
    text = """
      odd { a = f32[] parameter(0)
            b = u32[] parameter(1)
            ROOT s = f32[] stochastic-convert(a, b) }
      ENTRY f { p = f32[8] parameter(0)
                q = u32[8] parameter(1)
                ROOT m = f32[8] map(p, q), to_apply=odd }"""
    entry = entry_of(parse_hlo(text, "x.hlo"))
    with pytest.raises(Unsupported) as caught:
        emit_fusion(view_of(entry), device("h200"))
    assert caught.value.message == "no code for HLO op 'stochastic-convert' (instruction %s)"
    assert str(caught.value.place).startswith("x.hlo:4:")


def test_a_remark_says_what_of_a_device_is_assumed_and_nothing_of_a_known_one():
    fusion = computation("p = f32[8] parameter(0)\nROOT n = f32[8] negate(p)")
    for chip, remarks in (
        (device("h200"), []),
        (replace(device("h200"), assumed="cores as in h200"), ["cores as in h200"]),
    ):
        with take_notes() as notes:
            emit_fusion(view_of(fusion), chip)
        assert [remark.text for remark in notes.remarks if remark.pass_name == "target"] == remarks
