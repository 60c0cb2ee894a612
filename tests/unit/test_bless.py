"""`make bless` writes the printed listings in a form that FileCheck accepts, and does not change handwritten ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from bless import bless, listing, prefix_of
from in_process import call_main

BY_HAND = "// RUN: tool %s | filecheck %s\n// CHECK: a line of {{.*}}\nfunc.func private @f()\n"


def test_a_blessed_listing_is_replaced_and_matches(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(
        BY_HAND + "// BLESSED P\n// P: old\n// P-NEXT: older\n\n// P: kept, after a line that is not of it\n"
    )
    output = "one {\n\n  [[two]] {{three}} ...\n}\n"
    assert bless(path, "P", output)
    text = path.read_text()
    assert text.startswith(BY_HAND)
    assert "old" not in text
    assert "kept, after" in text
    path.write_text("\n".join(listing("P", output)))
    assert call_main(["filecheck", str(path), "--check-prefix", "P"], output.encode())[0] == 0
    assert call_main(["filecheck", str(path), "--check-prefix", "P"], output.replace("two", "2").encode())[0] != 0


def test_without_the_mark_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(BY_HAND)
    assert not bless(path, "CHECK", "something else\n")
    assert path.read_text() == BY_HAND


@pytest.mark.parametrize(
    ("command", "prefix"), [("filecheck a.mlir", "CHECK"), ("filecheck a.mlir --check-prefix FLAT", "FLAT")]
)
def test_the_prefix_of_a_command(command: str, prefix: str) -> None:
    assert prefix_of(command.split()) == prefix
