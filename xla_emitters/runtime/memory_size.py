"""How much memory this machine has: an upper bound for any array. Needs Python alone, as bundles do."""

from __future__ import annotations

import os
from functools import cache


@cache
def memory_bytes() -> int:
    """Bytes of physical memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
