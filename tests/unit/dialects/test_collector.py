"""The garbage collector's threshold is raised during a compilation, and restored afterwards."""

import gc
from collections.abc import Iterator
from threading import Barrier, Thread
from typing import Any

import pytest

from xla_emitters.dialects.collector import OBJECTS, collector_at_rest
from xla_emitters.pipelines import recorder
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.text.hlo import hlo_parser, parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

PROGRAM = """func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.negate %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
OWN = (611, 7, 5)
FUSION = """HloModule m
%f { %p = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p) }
ENTRY %e { %p = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} fusion(%p), kind=kLoop, calls=%f }
"""


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*OWN)
    yield
    gc.set_threshold(*before)


def test_a_nested_compilation_leaves_the_outer_one_at_rest() -> None:
    with collector_at_rest():
        with collector_at_rest():
            pass
        assert gc.get_threshold() == (OBJECTS, *OWN[1:])
    assert gc.get_threshold() == OWN


def test_an_error_restores_the_threshold() -> None:
    with pytest.raises(KeyError), collector_at_rest():
        raise KeyError
    assert gc.get_threshold() == OWN


@pytest.mark.parametrize("own", [0, OBJECTS + 1])
def test_never_and_less_often_stay(own: int) -> None:
    gc.set_threshold(own)
    with collector_at_rest():
        assert gc.get_threshold()[0] == own


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads_that_overlap_restore_it_once() -> None:
    """The first to begin is the first to end."""
    first_began, second_began, first_ended = Barrier(2), Barrier(2), Barrier(2)
    seen: list[int] = []

    def first() -> None:
        with collector_at_rest():
            first_began.wait()
            second_began.wait()
        first_ended.wait()

    def second() -> None:
        first_began.wait()
        with collector_at_rest():
            second_began.wait()
            first_ended.wait()
            seen.append(gc.get_threshold()[0])

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert seen == [OBJECTS]
    assert gc.get_threshold() == OWN


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compilation_is_at_rest(monkeypatch: pytest.MonkeyPatch, dynamic: bool) -> None:
    seen: list[int] = []
    own = recorder.run_pass

    def watched(*args: object, **given: object) -> None:
        seen.append(gc.get_threshold()[0])
        own(*args, **given)

    monkeypatch.setattr(recorder, "run_pass", watched)
    if dynamic:
        program = compile_program(parse_stablehlo(PROGRAM), CompileOptions(stage="llvm-dialect"))
        assert program.compilation.lowering.kernels
    else:
        compile(FUSION, stage="llvm-dialect", cache=False)
    assert set(seen) == {OBJECTS}
    assert gc.get_threshold() == OWN


def test_hlo_text_is_read_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    own = hlo_parser.verify_header

    def watched(*args: Any) -> None:
        seen.append(gc.get_threshold()[0])
        own(*args)

    monkeypatch.setattr(hlo_parser, "verify_header", watched)
    parse_hlo(FUSION)
    assert seen == [OBJECTS]
    assert gc.get_threshold() == OWN
