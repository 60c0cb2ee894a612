"""`xla-emitters cache info|clear`: the cache of compiled programs, and of modules that XLA optimized."""

from __future__ import annotations

import argparse
import json

from xla_emitters.runtime.program_cache import (
    LIMIT_BYTES,
    ProgramCache,
    cache_directory,
    is_disabled,
    optimized_entries,
)
from xla_emitters.tools.input_output import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="describe the cache, or remove its programs")
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    cache = ProgramCache(cache_directory())
    optimized = optimized_entries(cache.directory)
    if options.action == "clear":
        removed, modules = cache.clear(), optimized.clear()
        if options.json:
            facts = {"directory": str(cache.directory), "removed": removed, "optimized_removed": modules}
            print(json.dumps(facts, indent=2))
        else:
            also = f" and {counted(modules, 'optimized module')}" if modules else ""
            print(f"{counted(removed, 'program')}{also} removed from {cache.directory}")
        return 0
    entries, size = cache.size()
    modules, modules_size = optimized.size()
    if options.json:
        facts = {"directory": str(cache.directory), "enabled": not is_disabled(), "programs": entries}
        facts |= {"bytes": size, "limit_bytes": LIMIT_BYTES}
        facts |= {"optimized": modules, "optimized_bytes": modules_size, "optimized_limit_bytes": optimized.limit}
        print(json.dumps(facts, indent=2))
        return 0
    print(f"directory  {cache.directory}{' (disabled)' if is_disabled() else ''}")
    print(f"programs   {entries}")
    print(f"size       {size / 2**20:.1f} of {LIMIT_BYTES / 2**20:.0f} MiB")
    print(f"optimized  {counted(modules, 'module')}, {modules_size / 2**20:.1f} of {optimized.limit / 2**20:.0f} MiB")
    return 0
