"""Rows that threads share are called once each, in every run, by any number of callers; a loop of them is one call, as in NumPy."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.lowering.cpu.cpu_code import CpuCode
from xla_emitters.lowering.cpu.cpu_target import NATIVE, cpu_target
from xla_emitters.lowering.cpu.team_code import CHOSEN, FIRST_WAIT, LEFT, TIMED_RUNS, TOGETHER
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.runtime import block_threads
from xla_emitters.runtime.cpu import thread_team
from xla_emitters.runtime.cpu.interpreted_loop import InterpretedLoop
from xla_emitters.runtime.cpu.thread_team import Job, job_of

ROWS = """
declare i32 @usleep(i32)

define void @mark(ptr %words) {
  %seen = load i64, ptr %words
  %more = add i64 %seen, 1
  store i64 %more, ptr %words
  ret void
}

define void @nap(ptr %words) {
  call void @mark(ptr %words)
  call i32 @usleep(i32 4000)
  ret void
}
"""


@cache
def code() -> CpuCode:
    return CpuCode(ROWS, cpu_target(NATIVE))


@dataclass
class Marks:
    """A job whose rows count how often each is called."""

    job: Job
    words: ctypes.Array[ctypes.c_int64]
    table: ctypes.Array[ctypes.c_int64]
    run: Callable[[], None]


def marks(name: str, rows: int, parts: int, *, timed: bool = False) -> Marks:
    words, start = (ctypes.c_int64 * rows)(), code().address(name)
    values = chain.from_iterable((start, ctypes.addressof(words) + 8 * row, 0, 0) for row in range(rows))
    table = (ctypes.c_int64 * (4 * rows))(*values)
    job = job_of(ctypes.addressof(table), rows, parts, timed=timed)
    call = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(job.code)
    return Marks(job, words, table, lambda: call(job.address))


@pytest.mark.parametrize(("rows", "parts"), [(2, 2), (8, 2), (37, 4), (1000, 3)])
def test_each_run_calls_each_row_once(rows: int, parts: int) -> None:
    """A row is no atomic update: two threads that took one at the same time would show as a lost call, one that took it twice as two."""
    made = marks("mark", rows, parts)
    for _ in range(2_000):
        made.run()
    assert [*made.words] == [2_000] * rows


def test_callers_at_the_same_time() -> None:
    """The team has one job at a time; the others are called by their own threads."""
    all_made = [marks("mark", 16, 3) for _ in range(6)]

    def run(made: Marks) -> None:
        for _ in range(3_000):
            made.run()

    with ThreadPoolExecutor(len(all_made)) as pool:
        list(pool.map(run, all_made))
    assert [[*made.words] for made in all_made] == [[3_000] * 16] * len(all_made)


@pytest.mark.parametrize(("name", "stays"), [("nap", 4), ("mark", 1)])
def test_the_faster_way_stays(name: str, stays: int) -> None:
    """Four threads sleep four times 4 ms in 4 ms, on one core too; what takes a nanosecond is called sooner than shared."""
    made = marks(name, 4, 4, timed=True)
    for run in range(TIMED_RUNS):
        assert made.job.parts == 4, run
        made.run()
    assert made.job.parts == stays
    made.run()
    assert [*made.words] == [TIMED_RUNS + 1] * 4


def test_a_trial_that_met_a_busy_core_is_made_again() -> None:
    """A job that is judged to be faster alone, since its shared runs took years, is tried again."""
    made = marks("nap", 4, 4, timed=True)
    for _ in range(TIMED_RUNS):
        made.run()
    assert made.job.words[LEFT] == -FIRST_WAIT
    made.job.words[CHOSEN], made.job.words[LEFT], made.job.words[TOGETHER] = 1, -1, 1 << 62
    for _ in range(1 + TIMED_RUNS):
        made.run()
    assert (made.job.parts, made.job.words[LEFT]) == (4, -4 * FIRST_WAIT)
    assert [*made.words] == [2 * TIMED_RUNS + 1] * 4


FORKED = """
import os, numpy as np, xla_emitters as xe
from xla_emitters.runtime import block_threads
from xla_emitters.runtime.cpu import thread_team
block_threads.thread_count = lambda: 3
p = xe.compile("func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {"
               "%y = stablehlo.add %x, %x : tensor<?xf32> return %y : tensor<?xf32> }")
x = np.ones(1 << 20, np.float32)
def right():
    return all((p(x) == 2).all() for _ in range(20))
assert right()
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    assert right()
else:
    again = xe.compile("func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {"
                       "%y = stablehlo.multiply %x, %x : tensor<?xf32> return %y : tensor<?xf32> }")
    assert right() and all((again(x) == 1).all() for _ in range(20))
"""


def test_a_forked_process_and_the_end() -> None:
    """Neither hangs: the child has no threads until it makes a job of its own, and all threads end before their code is freed."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_posix_threads_one_thread_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_team, "TEAM_IR", thread_team.TEAM_IR.replace("@pthread_cond_wait", "@no_cond_wait"))
    monkeypatch.setattr(thread_team, "process_team", thread_team.process_team.__wrapped__)
    monkeypatch.setattr(block_threads, "thread_count", lambda: 2)
    loaded = lowerings_of(xe.compile(SCAN, record="none")).loaded
    frame = loaded.frame(loaded.bind([each.shape for each in drawn(0)]))
    assert not any(isinstance(kept, Job) for kept in frame.kept)
    np.testing.assert_allclose(frame.run(drawn(0))[0], scanned(*drawn(0))[0], rtol=1e-6, atol=1e-6)


# ---- loops ------------------------------------------------------------------------------------------------------------------------------

TRIPS, WIDTH = 12, 50_000

# ys[i] = s = 0.5 s + x[i]: an iteration touches one row of two large arrays.
SCAN = """
func.func public @main(%x: tensor<?x50000xf32>, %s0: tensor<50000xf32>, %ys: tensor<?x50000xf32>
  ) -> (tensor<50000xf32>, tensor<?x50000xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<5.000000e-01> : tensor<50000xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x50000xf32>) -> tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %s = %s0, %y = %ys) : tensor<i32>, tensor<50000xf32>, tensor<?x50000xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 50000]
        : (tensor<?x50000xf32>, tensor<i32>, tensor<i32>) -> tensor<1x50000xf32>
      %flat = stablehlo.reshape %row : (tensor<1x50000xf32>) -> tensor<50000xf32>
      %less = stablehlo.multiply %s, %half : tensor<50000xf32>
      %new = stablehlo.add %less, %flat : tensor<50000xf32>
      %wide = stablehlo.reshape %new : (tensor<50000xf32>) -> tensor<1x50000xf32>
      %set = "stablehlo.dynamic_update_slice"(%y, %wide, %i, %zero)
        : (tensor<?x50000xf32>, tensor<1x50000xf32>, tensor<i32>, tensor<i32>) -> tensor<?x50000xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %new, %set : tensor<i32>, tensor<50000xf32>, tensor<?x50000xf32>
    }
  return %r#1, %r#2 : tensor<50000xf32>, tensor<?x50000xf32>
}
"""

# s = 0.5 s + x until all of it is small.
UNTIL = """
func.func public @main(%x: tensor<?xf32>, %least: tensor<f32>) -> (tensor<i32>, tensor<?xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<?xf32>
    cond {
      %size = stablehlo.abs %s : tensor<?xf32>
      %most = stablehlo.reduce(%size init: %none) applies stablehlo.maximum across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      %more = stablehlo.compare GT, %most, %least, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %twice = stablehlo.add %s, %s : tensor<?xf32>
      %four = stablehlo.add %twice, %twice : tensor<?xf32>
      %less = stablehlo.divide %twice, %four : tensor<?xf32>
      %new = stablehlo.multiply %less, %s : tensor<?xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<?xf32>
    }
  return %r#0, %r#1 : tensor<i32>, tensor<?xf32>
}
"""


def scanned(x: Any, state: Any, _: Any) -> tuple[Any, Any]:
    rows = list[Any]()
    for row in x:
        state = np.float32(0.5) * state + row
        rows.append(state)
    return state, np.array(rows, np.float32)


def drawn(seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape, np.float32) for shape in ((TRIPS, WIDTH), (WIDTH,), (TRIPS, WIDTH))]


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_threads, "thread_count", lambda: 3)


@pytest.mark.usefixtures("three_threads")
def test_a_scan_whose_launches_threads_share() -> None:
    loaded = lowerings_of(xe.compile(SCAN, record="none")).loaded
    frame = loaded.frame(loaded.bind([each.shape for each in drawn(0)]))
    assert sum(isinstance(run, InterpretedLoop) for run in frame.code) == 1
    assert any(isinstance(kept, Job) for kept in frame.kept)
    for seed in range(3):
        for found, wanted in zip(frame.run(drawn(seed)), scanned(*drawn(seed)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("three_threads")
def test_a_loop_that_data_end() -> None:
    x, least = np.full(1 << 20, 1, np.float32), np.array(0.001, np.float32)
    x[7] = 1000
    loaded = lowerings_of(xe.compile(UNTIL, record="none")).loaded
    frame = loaded.frame(loaded.bind([x.shape, ()]))
    assert sum(isinstance(run, InterpretedLoop) for run in frame.code) == 1
    assert any(isinstance(kept, Job) for kept in frame.kept)
    for _ in range(3):
        trips, state = frame.run([x, least])
        assert trips == 20
        np.testing.assert_array_equal(state, x * np.float32(2.0**-20))
