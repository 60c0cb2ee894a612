"""Fixtures that tests of several wings share."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest


@pytest.fixture
def cupy() -> Iterator[ModuleType]:
    """The fake CuPy, fresh, in the place of the real one."""
    from unit.runtime.fake_gpu import fake_cupy

    with fake_cupy() as module:
        yield module


@pytest.fixture
def nothing_of_plugins_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a plugin registers is gone after its test, and entry points are read again."""
    from xla_emitters import device, plugins
    from xla_emitters.dialects.hlo import custom_calls
    from xla_emitters.emitters import emit
    from xla_emitters.library.function_table import FUNCTIONS
    from xla_emitters.pipelines import pass_lists

    for module, name, before in (
        (emit, "HERO_RULES", dict(emit.HERO_RULES)),
        (pass_lists, "LISTS", dict(pass_lists.LISTS)),
        (plugins, "_registered", []),
        (plugins, "_failed", []),
        (plugins, "_loaded", set()),
        (device, "_ADDED", {}),
    ):
        monkeypatch.setattr(module, name, before)
    targets, functions = dict(custom_calls._TARGETS), dict(FUNCTIONS)
    yield
    sys.modules.pop("wrong_plugin", None)
    for table, before in ((custom_calls._TARGETS, targets), (FUNCTIONS, functions)):
        table.clear()
        table.update(before)  # type: ignore[arg-type]
