"""Counts of fusions at sizes, which kernels are requested and installed, and the limits: with kernels that only record that they ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import ExecutionError, UsageError
from xla_emitters.runtime.ral.heat import HEAT, TIMED, Heat, HeatLimits
from xla_emitters.runtime.ral.hot_spots import Gain, Spot

Array = np.ndarray[Any, Any]


@dataclass
class Kernel:
    """A kernel that counts its runs."""

    what: str = "a kernel"
    bytes: int = 10
    gain: Gain = field(default_factory=lambda: Gain((8, 4), (100, 100)))
    ran: list[int] = field(default_factory=list[int])
    fails: bool = False
    takes: bool = True
    nanoseconds: int = 100

    def __call__(self, arrays: Sequence[Any]) -> int | None:
        self.ran.append(len(arrays))
        if self.fails:
            raise ExecutionError("no", stage="test")
        return self.nanoseconds if self.takes else None


def of_size(n: int) -> list[Any]:
    return [np.zeros(n, np.float32), np.zeros(n, np.float32), n]


def asked_of(limits: HeatLimits, *, is_timed: bool = True) -> tuple[Heat, list[Spot]]:
    asked = list[Spot]()
    return Heat(limits, lambda _, spot: asked.append(spot), is_timed=is_timed), asked


def test_a_fusion_is_asked_for_once_when_it_was_called_often_enough_at_the_same_sizes() -> None:
    heat, asked = asked_of(HeatLimits(calls=3))
    for n in (4, 5, 4, 5, 6, 4, 4, 4):
        assert heat.run("f", of_size(n))[0] is False
    heat.run("g", of_size(4))
    assert [(spot.fusion, spot.shapes, spot.numbers) for spot in asked] == [("f", ((4,), (4,)), (4,))]
    assert [(spot.fusion, spot.shapes[0], spot.calls) for spot in heat.spots[:2]] == [("f", (4,), 5), ("f", (5,), 2)]


def test_a_kernel_runs_for_exactly_its_sizes_and_numbers_from_the_next_call_on() -> None:
    heat, asked = asked_of(HeatLimits(calls=1))
    heat.run("f", of_size(4))
    kernel = Kernel()
    heat.replace(asked[0], kernel)
    assert heat.run("f", of_size(4))[0]
    x, y, _ = of_size(4)
    assert not heat.run("f", [x, y, 5])[0]
    assert not heat.run("f", of_size(5))[0]
    assert not heat.run("g", of_size(4))[0]
    assert kernel.ran == [2]


def test_a_kernel_that_cannot_take_these_arrays_leaves_them_to_the_others() -> None:
    heat, asked = asked_of(HeatLimits(calls=1))
    heat.run("f", of_size(4))
    kernel = Kernel(takes=False)
    heat.replace(asked[0], kernel)
    assert heat.run("f", of_size(4)) == (False, None)
    assert (len(kernel.ran), heat.spots[0].runs, heat.spots[0].is_replaced) == (1, 0, True)


def test_a_kernel_that_fails_is_let_go_and_the_others_run() -> None:
    heat, asked = asked_of(HeatLimits(calls=1))
    heat.run("f", of_size(4))
    heat.replace(asked[0], Kernel(fails=True))
    assert not heat.run("f", of_size(4))[0]
    assert not heat.run("f", of_size(4))[0]
    assert "it failed" in heat.spots[0].state
    assert heat.spots[0].kernel is None


def test_the_coldest_goes_where_there_are_too_many_kernels() -> None:
    heat, _ = asked_of(HeatLimits(calls=1, kernels=2))
    for n, calls in ((1, 2), (2, 5), (3, 9)):
        for _ in range(calls):
            heat.run("f", of_size(n))
    cold, warm, hot = sorted(heat.spots, key=lambda spot: spot.calls)
    for spot in (hot, cold, warm):
        heat.replace(spot, Kernel())
    assert [spot.is_replaced for spot in (cold, warm, hot)] == [False, True, True]
    assert cold.state == "let go: others were hotter"
    heat.replace(cold, Kernel())
    assert [spot.is_replaced for spot in (cold, warm, hot)] == [False, True, True]
    assert cold.state == "not replaced: the limit is reached"


def test_nothing_is_compiled_that_the_limit_would_refuse() -> None:
    heat, asked = asked_of(HeatLimits(calls=2, kernels=1))
    for _ in range(4):
        heat.run("f", of_size(1))
    heat.replace(asked[0], Kernel())
    for _ in range(5):
        heat.run("f", of_size(2))
    assert len(asked) == 1  # as hot as the one that is there
    heat.run("f", of_size(2))
    assert [spot.shapes[0] for spot in asked] == [(1,), (2,)]  # `calls` ahead of it


def test_kernels_take_no_more_bytes_than_the_limit() -> None:
    heat, _ = asked_of(HeatLimits(calls=1, bytes=25))
    for n in (1, 2, 3):
        heat.run("f", of_size(n))
    for spot in heat.spots:
        heat.replace(spot, Kernel(bytes=10))
    assert sum(spot.is_replaced for spot in heat.spots) == 2
    heat.replace(heat.spots[0], Kernel(bytes=1000))
    assert heat.spots[0].state == "not replaced: the limit is reached"


def test_no_more_spots_are_counted_than_the_limit_and_the_hot_ones_stay() -> None:
    heat, asked = asked_of(HeatLimits(calls=50, spots=20))
    for n in range(1, 1000):
        heat.run("f", of_size(n))
        heat.run("f", of_size(7))
    assert len(heat.spots) <= 20
    assert heat.spots[0].shapes[0] == (7,)
    assert [spot.shapes[0] for spot in asked] == [(7,)]


def test_calls_of_threads_are_all_counted() -> None:
    heat, asked = asked_of(HeatLimits(calls=100))
    values = of_size(4)

    def call() -> None:
        for _ in range(1000):
            heat.run("f", values)

    threads = [Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heat.spots[0].calls == 8000
    assert len(asked) == 1


def test_a_kernel_that_is_not_faster_goes() -> None:
    heat, asked = asked_of(HeatLimits(calls=1))
    heat.run("f", of_size(4))
    asked[0].took(100, is_hot=False)
    heat.replace(asked[0], Kernel(nanoseconds=100))
    for _ in range(TIMED):
        assert heat.run("f", of_size(4))[0]
    assert not heat.run("f", of_size(4))[0]
    assert asked[0].state == "not replaced: not faster"


def test_a_kernel_that_is_faster_stays() -> None:
    """However long the call of it takes beside its code."""
    heat, asked = asked_of(HeatLimits(calls=1))
    heat.run("f", of_size(4))
    asked[0].took(100, is_hot=False)
    heat.replace(asked[0], Kernel(nanoseconds=99))
    for _ in range(2 * TIMED):
        assert heat.run("f", of_size(4))[0]
    assert asked[0].fastest == [100, 99]


def test_the_time_of_a_fusion_is_that_of_its_launches() -> None:
    heat, _ = asked_of(HeatLimits(calls=9))
    _, watch = heat.run("main_kLoop_add_1", of_size(4))
    assert watch is not None
    watch.launched("main_kLoop_add_10", (1, 1, 1), (1, 1, 1), 0, [], 5)
    watch.ended()
    assert heat.spots[0].fastest == [None, None]
    watch.launched("main_kLoop_add_1_vec4", (1, 1, 1), (1, 1, 1), 0, [], 7)
    watch.launched("main_kLoop_add_1_vec4", (1, 1, 1), (1, 1, 1), 0, [], 4)
    watch.ended()
    assert heat.spots[0].fastest == [11, None]


def test_launches_are_recorded_before_a_fusion_is_asked_for() -> None:
    heat, asked = asked_of(HeatLimits(calls=2), is_timed=False)
    assert heat.run("f", of_size(4)) == (False, None)
    _, watch = heat.run("f", of_size(4))
    assert watch is not None
    assert not asked
    watch.launched("f_vec4", (1, 1, 1), (256, 1, 1), 0, of_size(4), 0)
    watch.ended()
    assert asked[0].launches == [
        {
            "kernel": "f_vec4",
            "grid": (1, 1, 1),
            "block": (256, 1, 1),
            "shared_bytes": 0,
            "arguments": [("f32", (4,)), ("f32", (4,)), 4],
        }
    ]


def test_what_was_compiled_before_is_asked_for_when_it_is_met() -> None:
    asked = list[Spot]()
    heat = Heat(HeatLimits(calls=100), lambda _, spot: asked.append(spot), lambda spot: spot.shapes[0] == (4,))
    heat.run("f", of_size(5))
    heat.run("f", of_size(4))
    assert [spot.shapes[0] for spot in asked] == [(4,)]


def test_the_report_says_what_was_replaced_and_what_it_gained() -> None:
    heat, asked = asked_of(HeatLimits(calls=1))
    heat.run("f", of_size(4))
    heat.replace(asked[0], Kernel())
    heat.run("f", of_size(4))
    assert heat.report()[:2] == [
        "1 fusion at sizes, 1 replaced: 1 of 2 runs took kernels for their sizes",
        "  f  [4] [4] n=4  2 calls  replaced",
    ]
    assert "    instructions 8 -> 4 (-50 %)" in heat.report()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("off", None),
        ("0", None),
        ("on", HeatLimits()),
        ("calls=7", HeatLimits(calls=7)),
        ("calls=7, kernels=3,bytes=10,spots=4", HeatLimits(7, 3, 10, 4)),
    ],
)
def test_limits_from_text(text: str, wanted: HeatLimits | None) -> None:
    assert HeatLimits.asked(text) == wanted


def test_the_variable_says_it_where_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HEAT, raising=False)
    assert HeatLimits.asked() is None
    monkeypatch.setenv(HEAT, "calls=5")
    assert HeatLimits.asked() == HeatLimits(calls=5)
    assert HeatLimits.asked("off") is None


@pytest.mark.parametrize("text", ["calls", "calls=x", "hot=3", "calls=-1"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a limit"):
        HeatLimits.parse(text)
