"""All devices of a run: one order, results of each, and an error where they cannot meet."""

from pathlib import Path

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import DataError, ExecutionError, Unsupported, UsageError
from xla_emitters.library import call
from xla_emitters.library.devices import current_device
from xla_emitters.program.steps import Call, Release
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.device_threads import devices_wanted, run_on_devices
from xla_emitters.tools.main import main

ROWS = np.arange(24, dtype=np.float32).reshape(4, 6)


def of_all(name: str, groups: list[list[int]], count: int = 4, **config: object) -> list[np.ndarray]:
    """What each device gets of a library function, whose operand is its row of ROWS."""
    shapes = {"reduce_scatter": (3,), "all_gather": (12,)}
    settings = {"types": ["f32"], "instruction": "c", "groups": groups, **config}

    def run(device: int) -> np.ndarray:
        result = [("f32", shapes.get(name, (6,)))]
        (found,) = call(name, settings, [ROWS[device]], result, on_elements=lambda _, pair: pair[0] + pair[1])
        return found

    return run_on_devices(range(count), run)


def test_values_against_numpy() -> None:
    pairs = [[0, 2], [1, 3]]
    np.testing.assert_array_equal(of_all("all_reduce", pairs, computation="add")[2], ROWS[0] + ROWS[2])
    scattered = of_all("reduce_scatter", pairs, computation="add", dimension=0)
    np.testing.assert_array_equal(scattered[1], (ROWS[1] + ROWS[3])[:3])
    np.testing.assert_array_equal(scattered[3], (ROWS[1] + ROWS[3])[3:])
    np.testing.assert_array_equal(of_all("all_gather", [[3, 1], [2, 0]], dimension=0)[1], np.concatenate(ROWS[[3, 1]]))
    exchanged = of_all("all_to_all", pairs, dimension=0)
    np.testing.assert_array_equal(exchanged[0], np.concatenate([ROWS[0, :3], ROWS[2, :3]]))
    np.testing.assert_array_equal(exchanged[2], np.concatenate([ROWS[0, 3:], ROWS[2, 3:]]))
    np.testing.assert_array_equal(of_all("collective_broadcast", [[2, 0], [1, 3]])[0], ROWS[2])
    moved = of_all("collective_permute", [[0, 1, 2, 3]], pairs=[[0, 3], [3, 1]])
    np.testing.assert_array_equal(moved, [ROWS[0] * 0, ROWS[3], ROWS[2] * 0, ROWS[0]])


def test_a_ragged_exchange_against_a_loop() -> None:
    """Device d sends d + 1 rows to device 0 and one row to device 1."""
    rows = np.arange(12, dtype=np.float32).reshape(2, 6)
    numbers = [([0, 5], [1, 1], [0, 0], [1, 2]), ([0, 5], [2, 1], [1, 1], [1, 1])]

    def run(device: int) -> np.ndarray:
        given = [rows[device], np.full(6, -1, np.float32), *(np.array(part, np.int32) for part in numbers[device])]
        settings = {"types": ["f32"] * 2 + ["s32"] * 4, "instruction": "r", "groups": [[0, 1]]}
        return call("ragged_all_to_all", settings, given, [("f32", (6,))])[0]

    np.testing.assert_array_equal(run_on_devices(range(2), run), [[0, 6, 7, -1, -1, -1], [5, 11, -1, -1, -1, -1]])


def test_one_runs_at_a_time_in_the_order_of_numbers() -> None:
    seen = list[tuple[int, int]]()

    def run(device: int) -> None:
        for step in range(3):
            seen.append((step, device))
            current_device("m").exchange.meet(device, "m", (0, 1, 2), [], lambda shares: shares)

    run_on_devices(range(3), run)
    assert sorted(seen) == sorted((step, device) for step in range(3) for device in range(3))
    assert seen[:3] == [(0, 0), (0, 1), (0, 2)]
    again = list(seen)
    seen.clear()
    run_on_devices(range(3), run)
    assert seen == again


def test_devices_that_never_meet_are_an_error() -> None:
    def run(device: int) -> None:
        if device < 2:
            current_device("a").exchange.meet(device, f"r{device}", (0, 1), [], lambda shares: shares)

    with pytest.raises(ExecutionError, match="collectives do not meet: device 0 waits at %r0 for device 1") as raised:
        run_on_devices(range(3), run)
    assert raised.value.details == ("device 1 waits at %r1 for device 0", "device 2 has ended")


def test_an_error_of_one_device_ends_all() -> None:
    def run(device: int) -> None:
        if device == 1:
            raise DataError("no such row", stage="run")
        current_device("a").exchange.meet(device, "r", (0, 1, 2), [], lambda shares: shares)

    with pytest.raises(DataError, match="device 1: no such row"):
        run_on_devices(range(3), run)


def test_how_many() -> None:
    assert [devices_wanted(8, None, "run"), devices_wanted(512, 512, "run"), devices_wanted(1, 1, "run")] == [8, 512, 1]
    for needed, asked, said in ((8, 4, "8 devices"), (1, 2, "one device"), (512, None, "512 devices")):
        with pytest.raises(UsageError, match=f"for {said}"):
            devices_wanted(needed, asked, "run")


PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2},{2,0}}"}'
LOOP = f"""HloModule m, num_partitions=4
condition {{ s = (s32[], f32[4], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2)
  ROOT c = pred[] compare(i, n), direction=LT }}
body {{ s = (s32[], f32[4], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  r = (f32[4], u32[], token[]) recv(t), channel_id=3, {PAIRS}
  o = (f32[4], u32[], token[]) send(x, t), channel_id=3, {PAIRS}
  rd = (f32[4], token[]) recv-done(r), channel_id=3
  od = token[] send-done(o), channel_id=3
  y = f32[4] get-tuple-element(rd), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT n = (s32[], f32[4], token[]) tuple(j, y, od) }}
ENTRY main {{ x = f32[4] parameter(0), sharding={{devices=[4]<=[4]}}
  zero = s32[] constant(0)
  t = token[] after-all()
  s = (s32[], f32[4], token[]) tuple(zero, x, t)
  w = (s32[], f32[4], token[]) while(s), condition=condition, body=body
  ROOT y = f32[4] get-tuple-element(w), index=1, sharding={{devices=[4]<=[4]}} }}
"""


def test_sends_around_a_ring_in_a_loop() -> None:
    """Receives start before the sends do. Device 3 takes no part: it receives nothing, which is zeros."""
    x = np.arange(16, dtype=np.float32)
    program = xe.compile(LOOP, stage="llvm-dialect", record="stages", cache=False)
    rows = x.reshape(4, 4)
    wanted = [rows[1], rows[2], rows[0], 0 * rows[3]]
    for stage in ("hlo", "graph", "llvm-dialect"):
        np.testing.assert_array_equal(program.run_cpu(x, stage=stage).reshape(4, 4), wanted, stage)
    assert xe.check(LOOP).ok


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (f", {PAIRS}", "", "which devices send to which"),
        (
            f"send(x, t), channel_id=3, {PAIRS}",
            f"send(x, t), channel_id=3, is_host_transfer=true, {PAIRS}",
            "with the host",
        ),
    ],
)
def test_transfers_that_are_not_between_devices(before: str, after: str, message: str) -> None:
    with pytest.raises(Unsupported) as raised:
        xe.compile(LOOP.replace(before, after), stage="llvm-dialect", cache=False)
    assert message in raised.value.help


def test_a_receive_that_nothing_is_sent_for() -> None:
    def run(device: int) -> None:
        if device == 1:
            current_device("r").exchange.receive(device, 0, "channel 1")

    with pytest.raises(ExecutionError, match="device 1 waits at %channel 1 for device 0"):
        run_on_devices(range(2), run)


STARTED = """HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
double { a = f32[1024] parameter(0)
  ROOT s = f32[1024] add(a, a) }
ENTRY main { p = f32[1024] parameter(0)
  x = f32[1024] fusion(p), kind=kLoop, calls=double
  s = f32[1024] all-reduce-start(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  y = f32[1024] fusion(p), kind=kLoop, calls=double
  d = f32[1024] all-reduce-done(s)
  ROOT z = f32[1024] add(d, y) }
"""


def test_a_start_and_a_done_are_where_the_text_has_them() -> None:
    """Until the done the operand's memory is in use."""
    program = xe.compile(STARTED, stage="llvm-dialect", record="stages", cache=False)
    names = [step.name for step in program.steps if isinstance(step, Call)]
    assert names == ["s", "d"]
    at = {type(step).__name__ + str(number): step for number, step in enumerate(program.steps)}
    kinds = [type(step).__name__ for step in at.values()]
    first, second = kinds.index("Call"), len(kinds) - 1 - kinds[::-1].index("Call")
    operand = program.steps[first].reads[0].slot
    assert "Launch" in kinds[first:second]
    assert operand in {place.slot for place in program.steps[second].reads}
    assert not any(isinstance(step, Release) and step.slot == operand for step in program.steps[:second])
    ones = np.ones(1024, np.float32)
    for found in run_on_devices(range(2), lambda device: run_program(program, [ones * (device + 1)])[0][:1].tolist()):
        assert found in ([6.0 + 2.0], [6.0 + 4.0])


DIVERGING = """HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
first { x = f32[4] parameter(0)
  ROOT a = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
second { x = f32[4] parameter(0)
  ROOT p = f32[4] collective-permute(x), channel_id=2, source_target_pairs={{0,1},{1,0}} }
ENTRY main { x = f32[4] parameter(0)
  i = u32[] partition-id()
  n = s32[] convert(i)
  ROOT c = f32[4] conditional(n, x, x), branch_computations={first, second} }
"""


def test_a_branch_that_only_one_device_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.hlo").write_text(DIVERGING)
    assert main(["run", str(tmp_path / "m.hlo"), "--platform", "cpu"]) == 1
    err = capsys.readouterr().err
    assert "collectives do not meet: device 0 waits at %a for device 1" in err
    assert "device 1 waits at %p for device 0" in err


def test_one_device_alone_is_told_what_to_do() -> None:
    program = xe.compile(DIVERGING, stage="llvm-dialect", record="stages", cache=False)
    with pytest.raises(Unsupported, match="needs the other devices") as raised:
        run_program(program, [np.ones(4, np.float32)])
    assert "--devices" in raised.value.help
    with pytest.raises(ExecutionError, match="do not meet"):
        program(np.ones(4, np.float32))
