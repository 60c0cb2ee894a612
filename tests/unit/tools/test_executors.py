"""`--executor` and `--resume` of check, list and compile: files on an engine's workers, and rows that are kept."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from in_process import called, messages, printed

from xla_emitters.tools import check_verb
from xla_emitters.tools.executors import Kept, run_on
from xla_emitters.tools.main import main
from xla_emitters.tools.workers import NamedWork

TEXT = "HloModule m\nENTRY main { x = f32[SIZE] parameter(0)\n  ROOT n = f32[SIZE] negate(x) }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dir").mkdir()
    for size in range(3, 9):
        (tmp_path / "dir" / f"n{size}.hlo").write_text(TEXT.replace("SIZE", str(size)))
    return tmp_path / "dir"


def test_what_is_kept_is_not_done_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "r.jsonl"
    words = ["check", str(folder), "--stages", "scf", "--resume", str(results)]
    first = printed(*words)
    lines = results.read_text().splitlines()
    assert len(lines) == 6
    results.write_text("\n".join(lines[:3]) + '\n{"key": "cut o')
    (folder / "n3.hlo").write_text(TEXT.replace("SIZE", "30"))
    asked = list[str]()
    real = check_verb.check_file

    def noted(options: argparse.Namespace, name: str, row: check_verb.CheckedFile) -> int:
        asked.append(Path(name).name)
        return real(options, name, row)

    monkeypatch.setattr(check_verb, "check_file", noted)
    again = printed(*words)
    assert sorted(asked) == ["n3.hlo", "n6.hlo", "n7.hlo", "n8.hlo"]
    assert again == first.replace("3 of 3 elements", "30 of 30 elements")


def test_a_file_of_something_else(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("what?\n{}\n")
    assert "r.jsonl:1 is no result of an earlier run" in messages(2, "check", folder, "--resume", tmp_path / "r.jsonl")


def test_what_had_no_end_is_not_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> int:
        while True:
            pass

    words = ["check", str(folder), "--stages", "scf", "--resume", str(tmp_path / "r.jsonl")]
    with monkeypatch.context() as patched:
        patched.setattr(check_verb, "check_file", endless)
        assert "0 of 6 files ok, 6 failed" in printed(*words, "--timeout", "0.02", code=1)
    assert not (tmp_path / "r.jsonl").exists()
    assert main(words) == 0


def test_a_directory_is_compiled_to_a_folder_a_file(folder: Path, tmp_path: Path) -> None:
    (folder / "wrong.hlo").write_text("HloModule m\nENTRY main { ROOT x = f32[3] negate(y) }\n")
    words = ["compile", str(folder), "-o", f"{tmp_path}/out/", "--stage", "llvm-dialect", "-j", "2"]
    words += ["--resume", str(tmp_path / "r.jsonl")]
    code, out, err = called(*words)
    assert code == 1
    assert "n3.hlo     ok  1 kernel, 0 library calls\n" in out
    assert "wrong.hlo  not compiled\n6 of 7 files compiled, 1 failed\n" in out
    assert "wrong.hlo:2:" in err
    made = tmp_path / "out" / "n3.hlo" / "main.mlir"
    text = made.read_text()
    made.unlink()
    made.parent.rmdir()
    assert main(words) == 1  # written anew: what is kept is not enough
    assert made.read_text() == text
    files = json.loads(printed("compile", folder, "--stage", "llvm-dialect", "--json", code=1))["files"]
    assert [each["error"] is None for each in files] == [True] * 6 + [False]
    assert files[0]["kernels"][0]["name"] == "main"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.ptx"], "6 files are compiled, each to a folder"),
        (["--diff", "scf", "flat"], "--diff is for one file, not for 6"),
        (["-j", "0"], "-j takes a number above 0"),
    ],
)
def test_a_directory_is_not_compiled(words: list[str], message: str, folder: Path) -> None:
    assert message in messages(2, "compile", folder, *words)


def test_one_file_has_no_executor(folder: Path) -> None:
    assert "for directories with several modules" in messages(2, "compile", folder / "n3.hlo", "--executor", "mpi")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor", "ray://a:1"], "no executor 'ray://a:1'"),
        (["--executor", "dask://"], "no executor 'dask://'"),
        (["--executor", "mpi", "-j", "2"], "--executor has workers of its own"),
    ],
)
def test_executors_that_are_none(words: list[str], message: str, folder: Path) -> None:
    assert message in messages(2, "check", folder, *words)


def _dies() -> None:
    raise OSError("the worker was lost")


def test_a_job_that_is_lost_loses_nothing_else() -> None:
    jobs = [NamedWork("a", partial(int, "1")), NamedWork("b", _dies), NamedWork("c", partial(int, "3"))]
    early = list[str]()
    found = list(run_on(ThreadPoolExecutor(2), jobs, lambda name, left: name, lambda done: early.append(done.name)))
    assert [(done.name, done.result) for done in found] == [("a", 1), ("b", None), ("c", 3)]
    assert found[1].failure == "OSError: the worker was lost"
    assert sorted(early) == ["a", "b", "c"]


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is missing: the extra [cluster]")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        yield made


@pytest.mark.parametrize("words", [["check"], ["compile", "-o", "OUT"], ["list"]], ids=lambda words: words[0])
def test_a_worker_of_dask_is_killed_in_the_middle(
    words: list[str], folder: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = next(iter(cluster.workers.values())).process.pid
    killed, put = list[int](), Kept.put

    def put_and_kill(kept: Kept, key: str, result: Any) -> None:
        put(kept, key, result)
        if not killed:
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    monkeypatch.setattr(Kept, "put", put_and_kill)
    address = cluster.scheduler_address.removeprefix("tcp://")
    results, out = tmp_path / "r.jsonl", tmp_path / "out"
    verb, *options = [word.replace("OUT", f"{out}/") for word in words]
    ask = [verb, str(folder), *options, "--resume", str(results)]
    code, rows, _ = called(*ask, "--executor", f"dask://{address}")
    assert (code, bool(killed)) == (0, True)
    assert len({json.loads(line)["key"] for line in results.read_text().splitlines()}) == 6
    assert [path.name for path in sorted(out.glob("*/*.ptx"))] == ["main.ptx"] * (6 if verb == "compile" else 0)
    assert printed(*ask) == rows
    assert len(results.read_text().splitlines()) == 6
    assert all(name in rows for name in (f"n{size}.hlo" for size in range(3, 9)))


@pytest.mark.skipif(find_spec("distributed") is not None, reason="dask.distributed is here")
def test_without_dask(folder: Path) -> None:
    assert "[cluster]" in messages(4, "check", folder, "--executor", "dask://127.0.0.1:1")


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is missing: the extra [mpi]")
def test_ranks_of_mpi(folder: Path) -> None:
    words = ["mpirun", "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures", "-m", "xla_emitters"]
    allowed = {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
    ran = subprocess.run(
        [*words, "check", str(folder), "--executor", "mpi"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **allowed},
    )
    assert ran.returncode == 0, ran.stderr
    assert "6 of 6 files ok" in ran.stdout
