"""How much memory this machine has: what no array can be larger than. Needs Python alone, as bundles do."""

from __future__ import annotations

import os
from functools import cache


@cache
def memory_bytes() -> int:
    """What this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
