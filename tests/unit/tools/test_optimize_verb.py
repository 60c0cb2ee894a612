"""`xla-emitters optimize`: files, standard input, flags, and exit codes."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xla_emitters.settings import Toolchain
from xla_emitters.tools.main import main

TEXT = "HloModule m\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What XLA is asked for; it answers "optimized"."""
    calls: list[tuple[object, ...]] = []

    def optimize(
        text: str,
        target: str,
        flags: dict[str, object],
        *,
        devices: int | None,
        name: str,
        remark: Callable[[str], object],
        toolchain: Toolchain,
    ) -> str:
        calls.append((text, target, flags, devices, name))
        remark("asked again")
        return "optimized\n"

    monkeypatch.setattr("xla_emitters.explore.optimize.optimize", optimize)
    return calls


def test_file_target_and_flags_go_to_xla(
    asked: list[tuple[object, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    assert main(["optimize", str(path), "--target", "a100", "--flag", "a=true", "--flag=--b=c"]) == 0
    assert asked == [(TEXT, "a100", {"a": True, "b": "c"}, None, str(path))]
    out, err = capsys.readouterr()
    assert (out, err) == ("optimized\n", "asked again\n")


def test_standard_input_to_a_file(
    asked: list[tuple[object, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert main(["optimize", "-", "-o", str(tmp_path / "out.hlo")]) == 0
    assert asked[0][0] == TEXT
    assert (tmp_path / "out.hlo").read_text() == "optimized\n"


def test_a_flag_without_a_value_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    assert main(["optimize", str(tmp_path / "m.hlo"), "--flag", "xla_gpu_autotune_level"]) == 2
    assert "'xla_gpu_autotune_level' is not NAME=VALUE" in capsys.readouterr().err


def test_a_missing_file_is_an_error_of_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(tmp_path / "nowhere.hlo")]) == 1
    assert "No such file" in capsys.readouterr().err
