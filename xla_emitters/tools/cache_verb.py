"""`xla-emitters cache info|clear`: describes or empties the cache of compiled programs."""

from __future__ import annotations

import argparse
import json

from xla_emitters.runtime.program_cache import LIMIT_BYTES, ProgramCache, cache_directory, is_disabled
from xla_emitters.tools.input_output import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="describe the cache, or remove its programs")
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    cache = ProgramCache(cache_directory())
    if options.action == "clear":
        removed = cache.clear()
        if options.json:
            facts = {"directory": str(cache.directory), "removed": removed}
            print(json.dumps(facts, indent=2))
        else:
            print(f"{counted(removed, 'program')} removed from {cache.directory}")
        return 0
    entries, size = cache.size()
    if options.json:
        facts = {"directory": str(cache.directory), "enabled": not is_disabled(), "programs": entries}
        facts |= {"bytes": size, "limit_bytes": LIMIT_BYTES}
        print(json.dumps(facts, indent=2))
        return 0
    print(f"directory  {cache.directory}{' (disabled)' if is_disabled() else ''}")
    print(f"programs   {entries}")
    print(f"size       {size / 2**20:.1f} of {LIMIT_BYTES / 2**20:.0f} MiB")
    return 0
