"""Modules that the real XLA has optimized, kept for the next time: XLA takes seconds for what a file holds.

    optimized("module @jit_f ...", "h200", {})      XLA, in a child process; kept under the text, the target, the flags and the versions
    optimized("module @jit_f ...", "h200", {})      the same text, from the cache

`dropped_round_trips` compares the module before and after: XLA may compute with more precision than the program says
(xla_allow_excess_precision), so that a value that the program rounds to fp8 on the way to a wider type keeps all its bits.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import distributions

from xla_emitters.device import device
from xla_emitters.dtypes import DTYPES, Kind
from xla_emitters.errors import ToolError
from xla_emitters.explore.optimize import optimize
from xla_emitters.explore.real_xla import Flag
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.runtime.cache import OPTIMIZED, Cache, key_of
from xla_emitters.settings import Settings, Toolchain
from xla_emitters.trace import Remark

_PACKAGES = re.compile(r"jaxlib|jax-cuda\d+-p(?:jrt|lugin)")


def optimized(
    text: str,
    target: str,
    flags: Mapping[str, Flag] | None,
    *,
    devices: int | None = None,
    name: str = "<hlo>",
    settings: Settings,
    cache: bool = True,
    remark: Callable[[Remark], object] = lambda remark: None,
) -> str:
    """The module after XLA's HLO passes, as `optimize` returns it; from the cache if XLA has been asked before.

    devices  as for `optimize`
    settings  the cache, and the ptxas that XLA calls
    cache   whether the cache is used
    remark  as for `optimize`; it gets the same remarks from the cache
    raises  like `optimize`
    """
    toolchain = settings.toolchain
    if not cache or settings.no_cache:
        return optimize(text, target, flags, devices=devices, name=name, remark=remark, toolchain=toolchain)
    entries = Cache.of(OPTIMIZED, settings)
    key = key_of(
        text,
        name,
        repr(device(target)),
        repr(devices),
        json.dumps(dict(flags or {}), sort_keys=True),
        _versions(toolchain),
    )
    if (kept := entries.get(key)) is not None:
        held = json.loads(kept)
        for each in held["remarks"]:
            remark(Remark(**each))
        return held["text"]
    remarks = list[Remark]()
    found = optimize(text, target, flags, devices=devices, name=name, remark=remarks.append, toolchain=toolchain)
    for each in remarks:
        remark(each)
    entries.put(key, json.dumps({"text": found, "remarks": [asdict(each) for each in remarks]}).encode())
    return found


def _versions(toolchain: Toolchain) -> str:
    """What the answer depends on beside the request and the code here that asks it: XLA, and the ptxas that it finds."""
    packages = {f"{each.name} {each.version}" for each in distributions() if _PACKAGES.fullmatch(each.name or "")}
    try:
        tool = str(find_tool("ptxas", toolchain))
    except ToolError:
        tool = ""
    return " ".join((*sorted(packages), tool))


_CONVERT = re.compile(
    r"(%[\w#]+) = stablehlo\.convert (%[\w#]+) : \(tensor<(?:\d+x)*(\w+)>\) -> tensor<(?:\d+x)*(\w+)>"
)
_FLOATS = {str(row.ir_type): row for row in DTYPES if row.kind is Kind.FLOAT}


def dropped_round_trips(before: str, after: str) -> list[Remark]:
    """A warning for each type to which StableHLO text narrows values that it widens again, if XLA's module converts to it less often.

    before  the StableHLO text that XLA read
    after   the HLO text of the module that it made
    """
    made = dict[str, tuple[str, str]]()
    trips = Counter[str]()
    for name, operand, source, target in _CONVERT.findall(before):
        if operand in made and all(_is_narrower(source, wide) for wide in (made[operand][0], target)):
            trips[_FLOATS[source].name] += 1
            del made[operand]  # converted back twice, it is one round trip
        made[name] = source, target
    found = list[Remark]()
    for narrow, count in trips.items():
        left = len(re.findall(rf" = {narrow}\[[^\]]*\]\S* convert\(", after))
        if left < count:
            found.append(
                Remark(
                    "xla",
                    f"XLA keeps more precision than the program: of {count} round trip{'' if count == 1 else 's'} through {narrow}"
                    f" {left or 'none'} {'is' if left < 2 else 'are'} left",
                    help='flags={"xla_allow_excess_precision": False} rounds as the program says',
                )
            )
    return found


def _is_narrower(narrow: str, wide: str) -> bool:
    return narrow in _FLOATS and wide in _FLOATS and _FLOATS[narrow].bits < _FLOATS[wide].bits
