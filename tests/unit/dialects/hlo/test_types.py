"""Arrays, tuples and layouts: which are equal, and their spelling in IR text."""

import pytest
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    Alias,
    AliasAttr,
    BufferType,
    Layout,
    LayoutAttr,
    OpaqueType,
    TokenType,
    array_type,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    leaf_types,
    minor_to_major,
    same_shape,
    tuple_type,
    tuple_types,
    type_text,
)

ROW_MAJOR = array_type(f32, (8, 64))
COLUMN_MAJOR = array_type(f32, (8, 64), (0, 1))
UNKNOWN = array_type(f32, (UNBOUNDED, 64))
BOUNDED = array_type(f32, (UNBOUNDED, 64), bounds=(8, UNBOUNDED))


def test_the_default_layout_is_no_layout():
    assert array_type(f32, (8, 64), (1, 0)) == ROW_MAJOR != COLUMN_MAJOR
    assert minor_to_major(ROW_MAJOR) == (1, 0)
    assert minor_to_major(COLUMN_MAJOR) == (0, 1)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (ROW_MAJOR, COLUMN_MAJOR, True),
        (ROW_MAJOR, UNKNOWN, True),
        (ROW_MAJOR, BOUNDED, True),
        (ROW_MAJOR, array_type(f32, (64, 8)), False),
        (ROW_MAJOR, array_type(i32, (8, 64)), False),
        (UNKNOWN, array_type(f32, (8, 63)), False),
        (tuple_type([ROW_MAJOR]), tuple_type([COLUMN_MAJOR]), True),
        (tuple_type([ROW_MAJOR]), ROW_MAJOR, False),
        (tuple_type([ROW_MAJOR]), tuple_type([ROW_MAJOR, ROW_MAJOR]), False),
        (TokenType(), TokenType(), True),
        (TokenType(), OpaqueType(), False),
    ],
)
def test_layouts_do_not_count_and_unknown_sizes_agree_with_any(a: Attribute, b: Attribute, same: bool):
    assert same_shape(a, b) is same_shape(b, a) is same


def test_parts_of_tuples():
    nest = tuple_type([ROW_MAJOR, tuple_type([TokenType(), UNKNOWN]), tuple_type([])])
    assert leaf_types(nest) == (ROW_MAJOR, TokenType(), UNKNOWN)
    assert len(tuple_types(nest)) == 3
    assert tuple_types(ROW_MAJOR) == (ROW_MAJOR,)
    assert has_dynamic_dims(nest)
    assert not has_dynamic_dims(ROW_MAJOR)


def test_an_array_is_asked_for_and_given():
    assert dims_of(COLUMN_MAJOR) == (8, 64)
    assert element_of(COLUMN_MAJOR).name == "f32"
    with pytest.raises(VerifyException, match=r"expected an array, got token\[\]"):
        as_array(TokenType())


@pytest.mark.parametrize(
    "attribute",
    [
        ROW_MAJOR,
        COLUMN_MAJOR,
        UNKNOWN,
        BOUNDED,
        array_type(f32, (), (), "T(128)"),
        array_type(f32, (2, UNBOUNDED), (0, 1), "T(8,128)E(4)", (UNBOUNDED, 3)),
        TokenType(),
        OpaqueType(),
        BufferType(ROW_MAJOR),
        tuple_type([ROW_MAJOR, TokenType()]),
        tuple_type([]),
        AliasAttr(Alias((1, 0), 2, (), "must-alias")),
    ],
)
def test_ir_text_reads_back(attribute: Attribute):
    assert Parser(make_context(), str(attribute)).parse_attribute() == attribute


def test_hlo_text_of_a_type():
    assert (
        type_text(tuple_type([COLUMN_MAJOR, BOUNDED, TokenType()]), True)
        == "(f32[8,64]{0,1}, f32[<=8,64]{1,0}, token[])"
    )
    assert type_text(COLUMN_MAJOR) == "f32[8,64]"


@pytest.mark.parametrize(("order", "bounds"), [((0, 0), ()), ((1, 2), ()), ((0, 1), (3,))])
def test_a_layout_is_a_permutation(order: tuple[int, ...], bounds: tuple[int, ...]):
    with pytest.raises(VerifyException):
        LayoutAttr(Layout(order, "", bounds))
