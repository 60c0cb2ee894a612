"""The background process: a request returns at once, and gets an answer whatever happens to the process.
Tested with processes of a few lines.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xla_emitters.runtime.entry_cache import EntryCache
from xla_emitters.runtime.program_cache import DIRECTORY
from xla_emitters.runtime.ral.hot_compiler import MOST_FAULTS, HotCompiler

ECHO = "import sys\nfor line in sys.stdin:\n    print('{\"echo\": ' + line.strip() + '}', flush=True)"
SLOW = f"import time\ntime.sleep(0.5)\n{ECHO}"
NEVER = "import time\ntime.sleep(60)"
DIES = "import sys\nsys.stdin.readline()\nraise SystemExit(3)"
BABBLES = "import sys\nfor line in sys.stdin:\n    print('no JSON', flush=True)"
ONCE = """
import os, sys
from pathlib import Path
flag = Path(sys.argv[1])
line = sys.stdin.readline()
if not flag.exists():
    flag.write_text("died")
    os.kill(os.getpid(), 9)
print('{"echo": ' + line.strip() + '}', flush=True)
"""


@dataclass
class Job:
    """A job that keeps its answer."""

    number: int = 1
    in_cache: str | None = None
    answers: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    raises: bool = False

    def key(self) -> str | None:
        return self.in_cache

    def request(self) -> Mapping[str, Any]:
        if self.raises:
            raise RuntimeError("a fault of ours")
        return {"number": self.number}

    def answered(self, answer: Mapping[str, Any]) -> None:
        self.answers.append(answer)


def compiler_of(code: str, *arguments: str, timeout: float = 20.0) -> HotCompiler:
    return HotCompiler((sys.executable, "-S", "-c", code, *arguments), timeout)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EntryCache:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    return EntryCache(tmp_path / "hot", 1 << 20)


def answer_of(compiler: HotCompiler, job: Job) -> Mapping[str, Any]:
    compiler.ask(job)
    assert compiler.wait(30)
    (answer,) = job.answers
    return answer


def test_asking_does_not_wait_for_the_answer() -> None:
    compiler, jobs = compiler_of(SLOW), [Job(number) for number in range(20)]
    start = time.perf_counter()
    for job in jobs:
        compiler.ask(job)
    assert time.perf_counter() - start < 0.3
    assert compiler.wait(30)
    assert [job.answers for job in jobs] == [[{"echo": {"number": number}}] for number in range(20)]
    compiler.close()


def test_an_answer_is_kept_and_found_without_a_process(cache: EntryCache) -> None:
    first, key = compiler_of(ECHO), "ab" * 32
    assert answer_of(first, Job(5, key)) == {"echo": {"number": 5}}
    first.close()
    second = compiler_of(DIES)
    assert answer_of(second, Job(5, key)) == {"echo": {"number": 5}}
    assert (second.found, second.compiled, second.pid) == (1, 0, None)


def test_an_entry_that_was_damaged_is_compiled_again(cache: EntryCache) -> None:
    key = "cd" * 32
    compiler = compiler_of(ECHO)
    answer_of(compiler, Job(5, key))
    path = cache.path(key)
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    assert answer_of(compiler, Job(5, key)) == {"echo": {"number": 5}}
    assert compiler.compiled == 2
    compiler.close()


def test_a_full_disk_keeps_nothing_and_disturbs_nothing(cache: EntryCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    compiler = compiler_of(ECHO)
    assert answer_of(compiler, Job(5, "ef" * 32)) == {"echo": {"number": 5}}
    assert not list(cache.entries())
    compiler.close()


def test_a_job_is_done_again_where_its_process_was_killed(tmp_path: Path) -> None:
    compiler = compiler_of(ONCE, str(tmp_path / "flag"))
    assert answer_of(compiler, Job(7)) == {"echo": {"number": 7}}
    compiler.close()


def test_a_process_that_is_killed_between_two_jobs_is_started_again() -> None:
    compiler = compiler_of(ECHO)
    answer_of(compiler, Job(1))
    before = compiler.pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    assert answer_of(compiler, Job(2)) == {"echo": {"number": 2}}
    assert compiler.pid != before
    compiler.close()


def test_a_process_that_always_dies_is_given_up() -> None:
    compiler, jobs = compiler_of(DIES), [Job(number) for number in range(3)]
    for job in jobs:
        assert "fails: it ended with status 3" in answer_of(compiler, job)["declined"]
    assert compiler._faults == MOST_FAULTS


def test_a_process_that_does_not_answer_is_ended() -> None:
    compiler = compiler_of(NEVER, timeout=0.3)
    assert "no answer in 0.3 s" in answer_of(compiler, Job())["declined"]
    assert compiler.pid is None


def test_what_is_no_answer_is_declined() -> None:
    compiler = compiler_of(BABBLES)
    assert "JSONDecodeError" in answer_of(compiler, Job())["declined"]
    compiler.close()


def test_a_command_that_is_not_there_is_declined() -> None:
    compiler = HotCompiler(("/nowhere/python",))
    assert "No such file" in answer_of(compiler, Job())["declined"]


def test_a_job_that_raises_is_answered_and_the_next_is_done() -> None:
    compiler = compiler_of(ECHO)
    assert answer_of(compiler, Job(raises=True)) == {"declined": "RuntimeError: a fault of ours"}
    assert answer_of(compiler, Job(4)) == {"echo": {"number": 4}}
    compiler.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_starts_its_own() -> None:
    parent = HotCompiler.of_process()
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writer, b"other" if HotCompiler.of_process() is not parent else b"same")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 10) == b"other"
