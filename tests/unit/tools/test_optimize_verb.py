"""`xla-emitters optimize`: files, standard input, flags, and exit codes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from in_process import called, messages, written

from xla_emitters.settings import Toolchain

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


def test_file_target_and_flags_go_to_xla(asked: list[tuple[object, ...]], tmp_path: Path) -> None:
    path = written(tmp_path / "m.hlo", TEXT)
    found = called("optimize", path, "--target", "a100", "--flag", "a=true", "--flag=--b=c")
    assert found == (0, "optimized\n", "asked again\n")
    assert asked == [(TEXT, "a100", {"a": True, "b": "c"}, None, str(path))]


def test_standard_input_to_a_file(asked: list[tuple[object, ...]], tmp_path: Path) -> None:
    assert called("optimize", "-", "-o", tmp_path / "out.hlo", stdin=TEXT.encode())[0] == 0
    assert asked[0][0] == TEXT
    assert (tmp_path / "out.hlo").read_text() == "optimized\n"


def test_a_flag_without_a_value_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    assert "'xla_gpu_autotune_level' is not NAME=VALUE" in messages(
        2, "optimize", tmp_path / "m.hlo", "--flag", "xla_gpu_autotune_level"
    )


def test_a_missing_file_is_an_error_of_the_input(tmp_path: Path) -> None:
    assert "No such file" in messages(1, "optimize", tmp_path / "nowhere.hlo")
