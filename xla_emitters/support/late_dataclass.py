"""`@dataclass` that writes a class's methods when they are first used; otherwise as Python's.

    @dataclass(frozen=True)
    class Interval: ...            __init__, __eq__, __hash__ and others are placeholders here
    Interval(0, 3)                 Python's decorator writes __init__ now, and says what the fields are
    Interval(0, 3) == x            ... and __eq__ now

Python's decorator compiles up to six functions for each class, which takes half a millisecond: a command that compiles one fusion imports
some 260 of these classes, uses a third, and of most of these only `__init__`. Each placeholder is a descriptor: the first that is asked for
has Python's decorator read the class. Until then the class attribute of a field that has a `field(...)` is that, not its default.

Python's decorator writes no method that the class has already. So that the class is never without one while another thread uses it, the
methods are written into a twin of the class, and take the places of the placeholders one by one.
"""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """Python's `dataclass`, when the class is first used. A class with slots is made at once: it is another class."""
        if cls is None:
            return partial(dataclass, **options)
        if options.get("slots"):
            return dataclasses.dataclass(cls, **options)
        for name in _wanted(cls, options):
            setattr(cls, name, _Placeholder(cls, name, options))
        return cls


_FIRST = ("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__init__")
"""Written together, when any placeholder is asked for."""
_LATER: dict[str, dict[str, bool]] = {
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"unsafe_hash": True},
    **{name: {"eq": True, "order": True} for name in ("__lt__", "__le__", "__gt__", "__ge__")},
}
"""Each method that waits until it is used itself -> the options by which Python's decorator writes it."""
_DEFAULTS = {"init": True, "repr": True, "eq": True, "order": False, "unsafe_hash": False, "frozen": False}
_REFUSING = ("__setattr__", "__delattr__")
"""What refuses changes of an instance of a frozen class; an instance exists after `__init__`."""

_LOCK = RLock()


def _wanted(cls: type[Any], options: dict[str, Any]) -> list[str]:
    """The members that Python's decorator would write: none that the class has, but `__hash__` also where `__eq__` made that None."""
    own, given = cls.__dict__, {**_DEFAULTS, **options}
    found = [*_FIRST, *(name for name, by in _LATER.items() if all(given[option] for option in by))]
    wanted = [name for name in found if name not in own and (name != "__init__" or given["init"])]
    if (given["eq"] or given["unsafe_hash"]) and (
        "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)
    ):
        if given["frozen"] or given["unsafe_hash"]:
            return [*dict.fromkeys((*wanted, "__hash__"))]
        cls.__hash__ = None  # pyright: ignore[reportAttributeAccessIssue]
    return wanted


def _write(cls: type[Any], options: dict[str, Any], name: str) -> None:
    """Replaces the placeholder of that name, and before it those of `_FIRST`."""
    if isinstance(cls.__dict__["__dataclass_fields__"], _Placeholder):
        _write_first(cls, options)
    if name in _LATER:
        setattr(cls, name, dataclasses.dataclass(_twin_with_fields(cls), **(_NOTHING | _LATER[name])).__dict__[name])


_NOTHING = {"init": False, "repr": False, "eq": False, "match_args": False}


def _write_first(cls: type[Any], options: dict[str, Any]) -> None:
    """At each moment a member is written, or its placeholder, for which another thread waits. The fields are the last."""
    given = {key: options[key] for key in ("frozen", "kw_only", "init") if key in options}
    made = dataclasses.dataclass(_twin(cls), repr=False, eq=False, **given).__dict__
    for option in ("repr", "eq", "order", "unsafe_hash"):
        setattr(made["__dataclass_params__"], option, options.get(option, _DEFAULTS[option]))
    for name in inspect.get_annotations(cls):
        if name in made:
            setattr(cls, name, made[name])
        elif name in cls.__dict__:
            delattr(cls, name)
    for name in _REFUSING if options.get("frozen") else ():
        function = made[name]
        # It asks whether an instance is of the class itself.
        function.__closure__[function.__code__.co_freevars.index("cls")].cell_contents = cls
        setattr(cls, name, function)
    for name in reversed(_FIRST):
        if isinstance(cls.__dict__.get(name), _Placeholder):
            setattr(cls, name, made[name])


def _twin(cls: type[Any]) -> type[Any]:
    """A class with the same fields, defaults and methods of its own, and with the fields of the bases; it runs no code of theirs."""
    bases: list[Any] = [base for base in reversed(cls.__mro__[1:]) if hasattr(base, "__dataclass_fields__")]
    inherited: dict[str, Any] = {
        "__dataclass_fields__": {name: each for base in bases for name, each in base.__dataclass_fields__.items()},
        **({"__dataclass_params__": bases[-1].__dataclass_params__} if bases else {}),
    }
    annotations = inspect.get_annotations(cls)
    members = {
        name: value
        for name, value in cls.__dict__.items()
        if name in annotations or (name in (*_FIRST, *_REFUSING) and not isinstance(value, _Placeholder))
    }
    after = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
    base = type(cls.__name__, (), inherited) if bases else object
    return type(cls.__name__, (base,), {**members, **_named(cls), **after, "__annotations__": annotations})


def _twin_with_fields(cls: type[Any]) -> type[Any]:
    """A class that inherits all fields of a class whose fields are known, and nothing else."""
    fields = {"__dataclass_fields__": cls.__dataclass_fields__, "__dataclass_params__": _OF_NO_CLASS}
    return type(cls.__name__, (type(cls.__name__, (), fields),), _named(cls))


_OF_NO_CLASS = SimpleNamespace(frozen=False)
"""Parameters of a base class that asks for nothing."""


def _named(cls: type[Any]) -> dict[str, Any]:
    """What names a class. Without a docstring Python's decorator would work out a signature."""
    return {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__ or cls.__name__}


class _Placeholder:
    """A member that Python's decorator writes if the class does not have it."""

    def __init__(self, cls: type[Any], name: str, options: dict[str, Any]) -> None:
        self.cls, self.name, self.options = cls, name, options

    def __get__(self, instance: object | None, owner: type[Any]) -> Any:
        with _LOCK:
            if self.cls.__dict__.get(self.name) is self:
                _write(self.cls, self.options, self.name)
        # Not `getattr(owner, ...)`: a subclass that overrides the member comes here by `super()`.
        found = next(vars(each)[self.name] for each in self.cls.__mro__ if self.name in vars(each))
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found
