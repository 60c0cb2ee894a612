"""The values of variables: lists of any length and form."""

import numpy as np
import pytest

from xla_emitters.errors import ParseError
from xla_emitters.text.ptx import read_ptx
from xla_emitters.text.ptx.ptx_lexer import PtxCursor
from xla_emitters.text.ptx.syntax import PtxLiteral

TEXT = """.version 8.6
.target sm_80
.address_size 64
.global .align 16 {element} data[{count}] = {values};
.visible .entry kernel(.param .u64 p) {{ ret; }}
"""


def values_of(values: str, count: int, element: str = ".b8") -> list[int]:
    """The patterns of the variable's values."""
    module = read_ptx(TEXT.format(element=element, count=count, values=values), "<test>")
    found = module.variables["data"].values
    assert found is not None
    assert all(isinstance(value, PtxLiteral) for value in found)
    return [value.value for value in found if isinstance(value, PtxLiteral)]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("{1, 20, 0, 255}", [1, 20, 0, 255]),
        ("{ 7 }", [7]),
        ("{1,\n  2 ,3\n}", [1, 2, 3]),
        ("{1, 0x10, 3}", [1, 16, 3]),
        ("{017, 1}", [15, 1]),
        ("{1, /* two */ 2}", [1, 2]),
        ("{{1, 2}, {3}}", [1, 2, 3]),
        ("{1, -1}", [1, -1]),
    ],
)
def test_lists(values: str, wanted: list[int]) -> None:
    assert values_of(values, 4) == wanted


def test_numbers_of_64_bits() -> None:
    assert values_of("{9223372036854775807, 18446744073709551615}", 2, ".b64") == [2**63 - 1, 2**64 - 1]


@pytest.mark.parametrize("values", ["{1, 2, 3, 4, 5}", "{1, 2", "{08}", "{18446744073709551616}", "{1, }5"])
def test_what_is_no_list_of_four_numbers(values: str) -> None:
    with pytest.raises(ParseError):
        values_of(values, 4)


def test_a_long_list_is_not_read_number_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens: those of the text around it."""
    numbers = np.random.default_rng(0).integers(0, 256, 50_000).tolist()
    read, tokens = PtxCursor.read, list[int]()

    def counted(cursor: PtxCursor, offset: int) -> object:
        tokens.append(offset)
        return read(cursor, offset)

    monkeypatch.setattr(PtxCursor, "read", counted)
    assert values_of(f"{{{', '.join(map(str, numbers))}}}", len(numbers)) == numbers
    assert len(tokens) < 500


@pytest.mark.parametrize("space", ["shared", "local"])
def test_only_global_and_constant_variables_have_one(space: str) -> None:
    """ptxas: "No initial value is allowed for 'x' in this state space"."""
    text = TEXT.format(element=".b32", count=1, values="{1}").replace("{ ret;", f"{{ .{space} .u32 x = 5; ret;")
    with pytest.raises(ParseError, match=rf"'x' in \.{space} has no initial value"):
        read_ptx(text, "<test>")
