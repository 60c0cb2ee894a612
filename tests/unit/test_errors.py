"""Errors: how a place is shown, the parts of a message, and the exit code of each kind."""

import pytest

from xla_emitters import errors
from xla_emitters.errors import Place, ToolError, VerifyError, XlaEmittersError

LINE = "    ROOT %sum = f32[64,4096] add(%x, %bias)"


@pytest.mark.tiny
def test_a_whole_message() -> None:
    """The one at the head of the file."""
    start = LINE.index("%bias") + 1
    error = VerifyError(
        "elementwise operands differ in shape",
        stage="hlo.verify",
        place=Place("bias.hlo", 6, start, start + 5, LINE),
        details=("operand 1 is f32[4096]; 'add' needs f32[64,4096]",),
        notes=((Place("bias.hlo", 3, 1, 6, "%bias = f32[4096] parameter(1)"), "defined here"), (None, "no place")),
        help="%b = f32[64,4096] broadcast(%bias), dimensions={1}",
    )
    assert str(error) == error.render()
    assert error.render().splitlines() == [
        f"bias.hlo:6:{start}: error: [hlo.verify] elementwise operands differ in shape",
        f"    {LINE}",
        "    " + " " * (start - 1) + "^~~~~",
        "    operand 1 is f32[4096]; 'add' needs f32[64,4096]",
        "bias.hlo:3:1: note: defined here",
        "    %bias = f32[4096] parameter(1)",
        "    ^~~~~",
        "note: no place",
        "    help: %b = f32[64,4096] broadcast(%bias), dimensions={1}",
    ]


def test_without_anything_but_a_message() -> None:
    assert XlaEmittersError("something").render() == "error: something"


def test_several_errors() -> None:
    """All that were found, up to twenty; the first one is what is raised."""
    error = VerifyError("first", help="none")
    error.others = (VerifyError("second"), ToolError("third"))
    assert error.render() == "error: first\n    help: none\nerror: second\nerror: third"
    error.others *= 10
    lines = error.render().splitlines()
    assert len([line for line in lines if line.startswith("error:")]) == 20
    assert lines[-1] == "and 1 more"


def test_a_place_without_text_has_no_excerpt() -> None:
    assert Place("a.hlo", 1, 2).excerpt() == ""
    assert XlaEmittersError("x", place=Place("a.hlo", 1, 2)).render() == "a.hlo:1:2: error: x"


@pytest.mark.parametrize(("column", "end"), [(1, 2), (1000, 1003), (500_000, 500_001), (1_000_000, 1_000_009)])
def test_a_long_line_is_shown_around_the_place(column: int, end: int) -> None:
    """A dense constant may be a megabyte: the caret is still below the right character."""
    text = "".join(chr(ord("a") + number % 26) for number in range(1_000_000))
    shown, carets = Place("a.hlo", 1, column, end, text).excerpt().splitlines()
    assert len(shown) <= 124
    at = carets.index("^")
    assert shown[at] == text[column - 1]
    assert carets.strip() == "^" + "~" * (min(end, len(text) + 1) - column - 1)


def test_tabs_count_as_one_column() -> None:
    shown, carets = Place("a.hlo", 1, 3, 4, "\t\tx = y").excerpt().splitlines()
    assert shown[carets.index("^")] == "x"


def test_every_kind_has_the_exit_code_that_users_are_told() -> None:
    """0 ok, 1 the input, 2 usage, 3 numbers differ, 4 a tool or an extra, 70 our own bug."""
    kinds = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, XlaEmittersError)
    }
    assert kinds == {
        "XlaEmittersError": 1,
        "EndlessLoop": 1,
        "ParseError": 1,
        "VerifyError": 1,
        "Unsupported": 1,
        "DataError": 1,
        "ExecutionError": 1,
        "UsageError": 2,
        "NumbersDiffer": 3,
        "ToolError": 4,
        "PluginError": 1,
        "InternalError": 70,
    }


def test_an_error_carries_its_facts() -> None:
    """A test or a tool reads fields, not text."""
    error = ToolError(
        "llc was not found", stage="toolchain", details=("looked at: llc-22",), help="apt-get install llvm-22"
    )
    assert (error.message, error.stage, error.place) == ("llc was not found", "toolchain", None)
    assert error.details == ("looked at: llc-22",)
    assert error.notes == ()
    assert error.help == "apt-get install llvm-22"
