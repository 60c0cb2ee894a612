"""`xla-emitters-gui`: what its two text areas and its tree of passes contain at the start; without a terminal."""

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from in_process import messages

from xla_emitters.errors import ParseError, ToolError, UsageError
from xla_emitters.tools.gui import make_app, text_of

EXAMPLES = Path(__file__).parents[3] / "examples"
KERNEL = """
func.func @f(%t: tensor<2x3xf32>, %i: index, %j: index) -> f32 {
  %0 = tensor.extract %t[%i, %j] : tensor<2x3xf32>
  return %0 : f32
}
"""
HAS_EXTRA = find_spec("textual") is not None and find_spec("pyclip") is not None
needs_extra = pytest.mark.skipif(not HAS_EXTRA, reason="the extra [notebook] is not installed")


def shown(file: Path, passes: str = "") -> tuple[str, str, set[str]]:
    """(input, output, names in the tree)."""

    async def started() -> Any:
        app = make_app(str(file), passes)
        async with app.run_test(size=(160, 50)) as pilot:
            await pilot.pause()
            names = {str(available) for available in app.available_pass_list}
            return app.input_text_area.text, app.output_text_area.text, names

    return asyncio.run(started())


@needs_extra
def test_chosen_passes_run_and_ours_are_in_the_tree(tmp_path: Path) -> None:
    """f32 2x3 is one-dimensional after the pass: 6 elements."""
    (tmp_path / "k.mlir").write_text(KERNEL)
    before, after, names = shown(tmp_path / "k.mlir", "xla-flatten-tensors")
    assert "tensor<2x3xf32>" in before
    assert "tensor<6xf32>" in after
    assert "tensor<2x3xf32>" not in after
    assert {"xla-flatten-tensors", "xla-canonicalize"} <= names


@needs_extra
def test_hlo_text_is_shown_as_the_hlo_dialect() -> None:
    before, after, _ = shown(EXAMPLES / "negate_20.hlo")
    assert "hlo.negate" in before
    assert "hlo.negate" in after


@needs_extra
def test_a_pass_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="xla-flaten"):
        make_app(None, "xla-flaten-tensors")


@pytest.mark.skipif(HAS_EXTRA, reason="the extra [notebook] is installed")
def test_without_the_extra_the_line_that_installs_it_is_printed() -> None:
    assert "[notebook]" in messages(ToolError.exit_code, EXAMPLES / "negate_20.hlo")


def test_a_wrong_input_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_text("func.func @f(")
    with pytest.raises(ParseError, match=r"k\.mlir:1:"):
        text_of(str(tmp_path / "k.mlir"))
