"""A late data class is Python's: whatever is asked for first has its methods written."""

import dataclasses
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from operator import attrgetter
from typing import Any

import pytest

from xla_emitters.support.late_dataclass import dataclass


def made() -> Any:
    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list[str], compare=False)

    return Point


def is_written(cls: type[Any]) -> bool:
    return isinstance(cls.__dict__["__dataclass_fields__"], dict)


USES: dict[str, Callable[[Any], Any]] = {
    "call": lambda cls: cls(1),
    "fields": dataclasses.fields,
    **{
        name: attrgetter(name)
        for name in ("__match_args__", "__repr__", "__eq__", "__hash__", "__dataclass_params__", "__init__")
    },
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_first_use_writes_the_methods(use: Callable[[Any], Any]) -> None:
    cls = made()
    assert not is_written(cls)
    use(cls)
    assert is_written(cls)
    assert cls(1) == cls(1, 2, ["a"])
    assert hash(cls(1)) == hash((1, 2))
    assert cls(1) != made()(1)
    assert repr(cls(1)).endswith("Point(x=1, y=2, names=[])")
    with pytest.raises(dataclasses.FrozenInstanceError):
        cls(1).x = 3
    assert dataclasses.replace(cls(1), y=5).y == 5
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        cls()


def test_a_subclass_is_written_with_its_base() -> None:
    base = made()

    @dataclass(frozen=True)
    class Named(base):
        name: str = ""

        def __repr__(self) -> str:
            return self.name

    assert not is_written(base)
    assert repr(Named(1, name="a")) == "a"
    assert is_written(base)
    assert [each.name for each in dataclasses.fields(Named)] == ["x", "y", "names", "name"]
    assert Named(1) != base(1)


def test_super_finds_the_method_of_the_base() -> None:
    base = made()

    class Doubled(base):
        def __init__(self, x: int) -> None:
            super().__init__(2 * x)  # pyright: ignore[reportUnknownMemberType]

    assert Doubled(2).x == 4


def test_a_subclass_without_fields_has_its_bases_methods() -> None:
    base = made()

    class Same(base):
        pass

    assert Same(1) == Same(1)
    assert Same(1) != base(1)
    assert repr(Same(1)).endswith("Same(x=1, y=2, names=[])")


@dataclass(order=True)
class Pair:
    a: int
    b: int


def test_order_and_pickles() -> None:
    assert Pair.__lt__(Pair(1, 2), Pair(1, 3))
    assert max(Pair(1, 2), Pair(0, 9)) == pickle.loads(pickle.dumps(Pair(1, 2)))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_class_that_another_thread_uses_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, use: Callable[[Any], Any]
) -> None:
    """While the methods are being written, no thread finds those of `object`."""
    cls, python, is_written_now = made(), dataclasses.dataclass, threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        is_written_now.set()
        time.sleep(0.05)
        return python(*arguments, **options)

    monkeypatch.setattr(dataclasses, "dataclass", slow)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(use, cls)
        assert is_written_now.wait(60)
        point = cls(1)
        assert (point.x, point.y, point.names) == (1, 2, [])
        assert point == cls(1)
        assert hash(point) == hash((1, 2))
        first.result()


def test_options_and_own_methods_are_kept() -> None:
    @dataclass(eq=False)
    class Box:
        x: int

        def __repr__(self) -> str:
            return "box"

    @dataclass(frozen=True, order=True)
    class Base:
        x: int
        seen: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "seen", self.x + 1)

    @dataclass(frozen=True, order=True)
    class Pair(Base):
        y: int = 1

    assert Box(1) != Box(1)
    assert (repr(Box(1)), len({Box(1), Box(1)})) == ("box", 2)
    assert Pair(1, 2) < Pair(1, 3)
    assert (Pair(1).seen, repr(Pair(1)).split(".")[-1]) == (2, "Pair(x=1, seen=2, y=1)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pair(1).y = 3  # pyright: ignore[reportAttributeAccessIssue]
    params: Any = vars(Pair)["__dataclass_params__"]
    assert (params.init, params.eq, params.order, params.frozen) == (True, True, True, True)
