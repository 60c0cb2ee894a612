"""`@dataclass` that writes a class's methods when the class is first used; otherwise as Python's.

    @dataclass(frozen=True)
    class Interval: ...            __init__, __eq__, __hash__ and others are placeholders here
    Interval(0, 3)                 Python's decorator does its work now

Python's decorator compiles up to six functions for each class, which takes half a millisecond: a command that compiles one fusion imports
some 260 of these classes and uses a third. Each placeholder is a descriptor: the first that is asked for has Python's decorator applied to
the class, and the class is then as usual. Until then the class attribute of a field that has a `field(...)` is that, not its default.

Python's decorator writes no method that the class has already. So that the class is never without one while another thread uses it, the
methods are written into a twin of the class, and take the places of the placeholders one by one.
"""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from threading import RLock
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
        if _adds_nothing(cls, options):
            return cls
        for name in _WRITTEN if options.get("order") else _WRITTEN[:-4]:
            if name not in cls.__dict__ and (name != "__init__" or options.get("init", True)):
                setattr(cls, name, _Placeholder(cls, name, options))
        return cls


def _adds_nothing(cls: type[Any], options: dict[str, Any]) -> bool:
    """Whether the class has no fields of its own, and its bases have all methods that it needs: those ask for the class of `self`."""
    if inspect.get_annotations(cls) or not {"__eq__", "__hash__", "__post_init__"}.isdisjoint(cls.__dict__):
        return False
    for base in cls.__mro__[1:]:
        if (params := base.__dict__.get("__dataclass_params__")) is not None:
            theirs = params.options if isinstance(params, _Placeholder) else {"frozen": True} if params.frozen else {}
            return options == theirs == {"frozen": True}
    return False


_METHODS = ("__match_args__", "__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__")
_WRITTEN = ("__dataclass_fields__", "__dataclass_params__", *_METHODS)
"""What Python's decorator writes, but for the methods that only refuse changes: an instance exists after `__init__`."""

_LOCK = RLock()


def _write(cls: type[Any], options: dict[str, Any]) -> None:
    """Replaces the placeholders. At each moment a member is written, or its placeholder, for which another thread waits."""
    twin = dataclasses.dataclass(_twin(cls), **options)
    for name in _METHODS:
        if name in twin.__dict__:
            setattr(cls, name, twin.__dict__[name])
        elif isinstance(cls.__dict__.get(name), _Placeholder):
            delattr(cls, name)
    own = {key: options[key] for key in ("frozen", "kw_only") if key in options}
    dataclasses.dataclass(cls, init=False, repr=False, eq=False, match_args=False, **own)
    cls.__dataclass_params__ = twin.__dict__["__dataclass_params__"]  # pyright: ignore[reportAttributeAccessIssue]


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
        if name in annotations or (name in _WRITTEN and not isinstance(value, _Placeholder))
    }
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    after = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
    base = type(cls.__name__, (), inherited) if bases else object
    return type(cls.__name__, (base,), {**members, **named, **after, "__annotations__": annotations})


class _Placeholder:
    """A member that Python's decorator writes if the class does not have it."""

    def __init__(self, cls: type[Any], name: str, options: dict[str, Any]) -> None:
        self.cls, self.name, self.options = cls, name, options

    def __get__(self, instance: object | None, owner: type[Any]) -> Any:
        with _LOCK:
            if self.cls.__dict__.get(self.name) is self:
                _write(self.cls, self.options)
        # Not `getattr(owner, ...)`: a subclass that overrides the member comes here by `super()`.
        found = next(vars(each)[self.name] for each in self.cls.__mro__ if self.name in vars(each))
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found
