"""What NVIDIA's libraries have built for shapes, kept for each device and thread, since their handles are of these.

keeper = kept_for(_KEPT, device, "cudnn", _Kept)        _Kept(module), made once; None where the module is missing
keeper.plan([config, shapes], build)                    what build() gives, made once for equal keys
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

MOST_PLANS = 256
"""Kept for a device and a thread, the least recently used goes first."""
PlanT = TypeVar("PlanT")
KeeperT = TypeVar("KeeperT")


class Plans(Generic[PlanT]):
    """Plans by key.

    refusals  what a library raises for a plan that it cannot make
    """

    def __init__(self, *refusals: type[Exception]) -> None:
        self._refusals, self._plans = refusals, OrderedDict[str, PlanT | None]()

    def plan(self, key: object, build: Callable[[], PlanT | None]) -> PlanT | None:
        """The plan for a key of plain data; None where the library refuses."""
        text = json.dumps(key, default=list)
        if text not in self._plans:
            try:
                self._plans[text] = build()
            except self._refusals:
                self._plans[text] = None
            if len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(text)
        return self._plans[text]


def kept_for(kept: Any, device: int, name: str, keeper: Callable[[ModuleType], KeeperT]) -> KeeperT | None:
    """The keeper for a device, which `kept`, of this thread, holds; None where the module, or the library behind it, is missing."""
    devices: dict[int, KeeperT | None] = kept.__dict__.setdefault("devices", {})
    if device not in devices:
        try:
            devices[device] = keeper(import_module(name))
        except (ImportError, OSError, RuntimeError):
            devices[device] = None  # the caller says what it does instead
    return devices[device]
