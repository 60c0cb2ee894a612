"""Files of torch.export.save are known by what is in them, not by their names; without PyTorch a verb says which extra reads them."""

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from in_process import messages

import xla_emitters as xe
from xla_emitters.errors import ParseError, ToolError
from xla_emitters.explore.compile import is_torch_archive


def archive(path: Path, **members: str) -> Path:
    with ZipFile(path, "w") as made:
        for name, text in members.items():
            made.writestr(f"layer/{name}", text)
    return path


def test_what_is_inside_decides(tmp_path: Path) -> None:
    assert is_torch_archive(archive(tmp_path / "layer", archive_format="pt2", byteorder="little"))
    assert not is_torch_archive(archive(tmp_path / "layer.pt2", byteorder="little"))
    assert not is_torch_archive(archive(tmp_path / "other.pt2", archive_format="pt3"))
    cut = tmp_path / "cut.pt2"
    cut.write_bytes((tmp_path / "layer").read_bytes()[:40])
    assert not is_torch_archive(cut)
    assert not is_torch_archive("module @m {\n}")
    assert not is_torch_archive(tmp_path / "none.pt2")


def test_without_pytorch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    file = archive(tmp_path / "layer.pt2", archive_format="pt2")
    said = messages(ToolError.exit_code, "list", file)
    assert "PyTorch is not installed" in said
    assert "[torch]" in said


def test_an_empty_text_is_no_path() -> None:
    with pytest.raises(ParseError, match="expected a computation"):
        xe.compile("")
