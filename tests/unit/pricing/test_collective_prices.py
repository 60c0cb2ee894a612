"""Collectives: bytes on the wire by hand, bounds from the stated figures, and when they run."""

from typing import Any

import pytest
from tools_here import SASS, needs

from xla_emitters.device import device
from xla_emitters.explore.compile import compile
from xla_emitters.explore.cost.cost import cost
from xla_emitters.pricing.collective_prices import price_collective
from xla_emitters.pricing.timeline import Timeline, WorkSpan
from xla_emitters.program.communication import communications, sent_bytes

EIGHT, ACROSS, PAIR = (
    {"groups": [list(range(8))]},
    {"groups": [list(range(16))]},
    {"groups": [[0, 1]], "pairs": [[0, 1]]},
)


@pytest.mark.parametrize(
    ("name", "config", "operands", "results", "sent"),
    [
        ("all_reduce", EIGHT, 800, 800, 1400),  # 7 of 8 parts, twice around
        ("all_gather", EIGHT, 100, 800, 700),
        ("reduce_scatter", EIGHT, 800, 100, 700),
        ("all_to_all", EIGHT, 800, 800, 700),
        ("ragged_all_to_all", EIGHT, 1600, 800, 700),
        ("collective_permute", PAIR, 800, 800, 800),
        ("collective_broadcast", EIGHT, 800, 800, 800),
        ("all_reduce", {"groups": [[0], [1]]}, 800, 800, 0),
    ],
)
def test_bytes_on_the_wire(name: str, config: dict[str, Any], operands: int, results: int, sent: int) -> None:
    assert sent_bytes(name, config, operands, results) == sent


def test_a_large_sum_is_bound_by_its_link() -> None:
    """256 MiB among 8 h200: 7/4 of it at 450 GB/s, of which 0.8 is reached; among 16, by 8 adapters of 50 GB/s in each node."""
    shape = [("f32", (64 * 2**20,))]
    inside, across = (
        price_collective("all_reduce", "s", config, shape, shape, device("h200")) for config in (EIGHT, ACROSS)
    )
    assert across is not None
    assert inside.wire_bytes == 2**28 * 7 // 4
    assert inside.bounds == {"link": pytest.approx(2**28 * 1.75 / 450e9 / 0.8 * 1e6)}
    assert inside.bound == "link"
    assert inside.time_low < inside.time < inside.time_high < inside.network_time
    assert across.bounds["network"] == pytest.approx(2**28 * 2 * 15 / 16 / 50e9 / 8 / 0.8 * 1e6)
    assert across.bound == "network"
    small = price_collective("all_reduce", "s", EIGHT, [("f32", (8,))], [("f32", (8,))], device("h200"))
    assert small.bound == "latency"
    assert small.time == pytest.approx(6.6 + 14 * 0.6, rel=1e-3)
    assert price_collective("gemm", "d", {}, shape, shape, device("h200")) is None


STARTED = """HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
double { a = f32[1024] parameter(0)
  ROOT s = f32[1024] add(a, a) }
ENTRY main { p = f32[1024] parameter(0)
  s = f32[1024] all-reduce-start(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  y = f32[1024] fusion(p), kind=kLoop, calls=double
  d = f32[1024] all-reduce-done(s)
  z = f32[1024] add(d, y)
  ROOT r = f32[1024] all-reduce(z), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
"""


def test_what_runs_beside_a_collective() -> None:
    program = compile(STARTED, stage="llvm-dialect", cache=False)
    first, second = communications(program.steps, program.calls, {number: (4096, 4096) for number in range(9)})
    assert (first.sent, first.members, first.beside) == (4096, 2, ("y",))
    assert second.beside == ()
    assert "each of 2 sends 4.1 kB; beside y" in program.explain()
    assert program.explained()["collectives"][0]["beside"] == ["y"]


@needs(*SASS)
def test_a_timeline() -> None:
    (found,) = cost(STARTED).costs
    timeline = found.timeline
    names = {span.name: span for span in timeline.spans}
    assert names["y"].start == names["s"].start == 0.0
    assert names["z"].start == pytest.approx(max(names["y"].end, names["s"].end))
    assert names["r"].start == pytest.approx(names["z"].end)
    assert timeline.time == pytest.approx(names["r"].end)
    assert timeline.overlap == pytest.approx(min(names["y"].end, names["s"].end))
    assert "both at a time" in str(found.timeline)


def test_overlap_by_hand() -> None:
    spans = [WorkSpan("a", "compute", 0, 4), WorkSpan("m", "communication", 3, 8), WorkSpan("b", "compute", 4, 6)]
    found = Timeline(spans)
    assert (found.compute, found.communication, found.overlap, found.time) == (6, 5, 3, 8)
