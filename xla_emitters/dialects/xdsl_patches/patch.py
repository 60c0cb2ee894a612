"""A patch of xDSL: the class or module, the replaced member, and the reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

XDSLS_OWN: dict[tuple[Any, str], Any] = {}
"""(class or module, member) -> xDSL's own, None if inherited: a test detects by it whether xDSL has caught up."""


def put(holder: Any, name: str, value: Any) -> None:
    """Replaces a member, and keeps xDSL's own in `XDSLS_OWN`."""
    XDSLS_OWN.setdefault((holder, name), holder.__dict__.get(name))
    setattr(holder, name, value)


class Patch(ABC):
    """A row: `why` says what xDSL 0.74 lacks or does wrong."""

    why: str

    @abstractmethod
    def apply(self) -> None:
        """Changes xDSL; called once."""


@dataclass(frozen=True)
class Member(Patch):
    """A method, function or constant: `make` maps xDSL's own to ours."""

    holder: Any
    name: str
    why: str
    make: Callable[[Any], Any]

    def apply(self) -> None:
        put(self.holder, self.name, self.make(getattr(self.holder, self.name)))
