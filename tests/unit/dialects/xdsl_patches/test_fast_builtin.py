"""Values cached for a builtin attribute equal those that xDSL computes each time; a cached hash is not shared between processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    NameLoc,
    Signedness,
    StringAttr,
    UnknownLoc,
    VectorType,
    f32,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils import hints
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.xdsl_patches.fast_builtin import FAST_BUILTIN
from xla_emitters.dialects.xdsl_patches.patch import XDSLS_OWN

INDEX = IndexType()
UNSIGNED = IntegerType(8, Signedness.UNSIGNED)


def xdsls_own(holder: Any, name: str) -> Any:
    return XDSLS_OWN[holder, name]


@pytest.mark.parametrize("truncate_bits", [False, True])
@pytest.mark.parametrize("value_type", [i1, i8, UNSIGNED, i32, i64, INDEX, 16], ids=str)
@pytest.mark.parametrize("value", [0, 1, -1, 127, 128, 255, 256, -128, -129, 1 << 40])
def test_an_integer_is_xdsls(value: int, value_type: Any, truncate_bits: bool) -> None:
    def outcome(make: Callable[..., None]) -> object:
        attribute: Any = object.__new__(IntegerAttr)
        try:
            make(attribute, value, value_type, truncate_bits=truncate_bits)
        except (VerifyException, ValueError) as error:
            return type(error), str(error)
        return attribute.value, attribute.type

    # Twice: what was refused is not remembered as made.
    for _ in range(2):
        assert outcome(IntegerAttr.__init__) == outcome(xdsls_own(IntegerAttr, "__init__"))


@pytest.mark.parametrize("width", [0, 1, 32, 33, -1])
@pytest.mark.parametrize("signedness", list(Signedness))
def test_an_integer_type_is_xdsls(width: int, signedness: Signedness) -> None:
    def outcome(make: Callable[..., None]) -> object:
        made: Any = object.__new__(IntegerType)
        try:
            make(made, width, signedness)
        except VerifyException as error:
            return str(error)
        return made.width, made.signedness

    assert outcome(IntegerType.__init__) == outcome(xdsls_own(IntegerType, "__init__"))


MADE: tuple[Callable[[], Attribute], ...] = (
    lambda: IntegerAttr(3, i32),
    lambda: IntegerType(17),
    lambda: VectorType(f32, [4]),
    lambda: NameLoc(StringAttr("tanh_0"), UnknownLoc()),
    lambda: DenseArrayBase.from_list(i64, [1, -2, 3]),
)


@pytest.mark.parametrize("make", MADE)
def test_equal_attributes_have_one_hash_which_is_not_pickled(make: Callable[[], Attribute]) -> None:
    one, other = make(), make()
    own = xdsls_own(type(one), "__hash__")
    assert hash(one) == hash(other) == own(one) == hash(one)
    assert one == other
    assert {one: 1}[other] == 1
    assert "_hash" in vars(one)
    again = pickle.loads(pickle.dumps(one))
    assert "_hash" not in vars(again)
    assert again == one
    assert hash(again) == hash(one)


def test_values_of_a_dense_array_are_xdsls() -> None:
    for values in ([], [0], [1, -2, 1 << 40]):
        array = DenseArrayBase.from_list(i64, values)
        assert array.get_values() == array.get_values() == xdsls_own(DenseArrayBase, "get_values")(array)


HINTS: tuple[Any, ...] = (
    *(
        IntegerAttr,
        IntegerType,
        IntegerAttr[IndexType],
        IntegerAttr[IntegerType],
        VectorType[Attribute],
        VectorType[IntegerType],
    ),
    *(ArrayAttr[IntegerAttr], ArrayAttr[StringAttr], IntegerType | IndexType, IntegerAttr[IndexType] | StringAttr),
    *(Attribute, Any, int, list[int], tuple[int, ...], dict[str, int], Annotated[IntegerType, i32]),
)
ARGUMENTS: tuple[Any, ...] = (
    *(
        IntegerAttr(3, i32),
        IntegerAttr(3, INDEX),
        i32,
        INDEX,
        VectorType(f32, [4]),
        VectorType(i32, [4]),
        FloatAttr(1.0, f32),
    ),
    *(ArrayAttr([IntegerAttr(3, i32)]), ArrayAttr([]), StringAttr("a"), 3, [3], ["a"], (1, 2), {"a": 1}, None),
)


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_isa_says_what_xdsls_says(hint: Any) -> None:
    def answer(ask: Callable[..., bool], argument: Any) -> object:
        try:
            return ask(argument, hint)
        except (TypeError, ValueError) as error:  # TypeError: Python 3.13's `Annotated` is no class
            return str(error)

    own, ours = xdsls_own(hints, "isa"), hints.isa
    assert own is not ours
    assert [answer(ours, argument) for argument in ARGUMENTS] == [answer(own, argument) for argument in ARGUMENTS]


def test_the_rows_are_what_runs() -> None:
    assert {row.holder.__dict__[row.name] is not XDSLS_OWN[row.holder, row.name] for row in FAST_BUILTIN} == {True}
