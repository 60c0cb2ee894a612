"""`@dataclass` that writes a class's methods when the class is first used; otherwise as Python's.

    @dataclass(frozen=True)
    class Interval: ...            __init__, __eq__, __hash__ and others are placeholders here
    Interval(0, 3)                 Python's decorator does its work now

Python's decorator compiles up to six functions for each class, which takes half a millisecond: a command that compiles one fusion imports
some 260 of these classes and uses a third. Each placeholder is a descriptor: the first that is asked for has Python's decorator applied to
the class, and the class is then as usual. Until then the class attribute of a field that has a `field(...)` is that, not its default.
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


_WRITTEN = (
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__init__", "__repr__", "__eq__", "__hash__"),
    *("__lt__", "__le__", "__gt__", "__ge__"),
)
"""What Python's decorator writes, but for the methods that only refuse changes: an instance exists after `__init__`."""

_LOCK = RLock()


class _Placeholder:
    """A member that Python's decorator writes if the class does not have it."""

    def __init__(self, cls: type[Any], name: str, options: dict[str, Any]) -> None:
        self.cls, self.name, self.options = cls, name, options

    def __get__(self, instance: object | None, owner: type[Any]) -> Any:
        with _LOCK:
            if self.cls.__dict__.get(self.name) is self:
                for name in _WRITTEN:
                    if isinstance(self.cls.__dict__.get(name), _Placeholder):
                        delattr(self.cls, name)
                dataclasses.dataclass(self.cls, **self.options)
        # Not `getattr(owner, ...)`: a subclass that overrides the member comes here by `super()`.
        found = next(vars(each)[self.name] for each in self.cls.__mro__ if self.name in vars(each))
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found
