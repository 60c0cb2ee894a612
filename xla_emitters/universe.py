"""Our dialects and passes for stock `xdsl-opt`, through the `xdsl.universe` entry point.

Every entry is a factory, so that listing the names imports nothing. Dialects that xDSL has too (`llvm`, `gpu`, `vector`, `arith`) are our
extended versions of them; a plugin may not define a name again, so `dialects.context` replaces xDSL's dialects by ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.passes import ModulePass
from xdsl.universe import Universe

from xla_emitters.dialects.context import ADDED_DIALECTS, replace_upstream_dialects
from xla_emitters.plugins import registered
from xla_emitters.rewrite.pass_table import PASSES, pass_class


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Our passes by name, and those of plugins."""
    own = {name: partial(pass_class, name) for name in PASSES}
    added = {plugin.name: plugin.owner for plugin in registered() if plugin.kind == "pass"}
    return own | {name: partial(_same, owner) for name, owner in added.items()}


def _same(owner: type[ModulePass]) -> type[ModulePass]:
    return owner


replace_upstream_dialects()
XLA_EMITTERS_UNIVERSE = Universe(all_dialects=dict(ADDED_DIALECTS), all_passes=all_passes())
