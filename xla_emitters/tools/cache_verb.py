"""`xla-emitters cache info|clear`: the cache of compiled programs, of kernels compiled for hot sizes, and of modules that XLA optimized."""

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
from xla_emitters.runtime.ral.hot_compiler import hot_entries
from xla_emitters.tools.input_output import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="describe the cache, or remove its programs")
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    cache = ProgramCache(cache_directory())
    hot, optimized = hot_entries(cache.directory), optimized_entries(cache.directory)
    if options.action == "clear":
        removed, hot_removed, modules = cache.clear(), hot.clear(), optimized.clear()
        if options.json:
            facts = {"directory": str(cache.directory), "removed": removed, "hot_kernels_removed": hot_removed}
            print(json.dumps(facts | {"optimized_removed": modules}, indent=2))
        else:
            others = ((hot_removed, "hot kernel"), (modules, "optimized module"))
            also = "".join(f" and {counted(count, noun)}" for count, noun in others if count)
            print(f"{counted(removed, 'program')}{also} removed from {cache.directory}")
        return 0
    entries, size = cache.size()
    hot_count, hot_size = hot.size()
    modules, modules_size = optimized.size()
    if options.json:
        facts = {"directory": str(cache.directory), "enabled": not is_disabled(), "programs": entries}
        facts |= {"bytes": size, "limit_bytes": LIMIT_BYTES}
        facts |= {"hot_kernels": hot_count, "hot_bytes": hot_size, "hot_limit_bytes": hot.limit}
        facts |= {"optimized": modules, "optimized_bytes": modules_size, "optimized_limit_bytes": optimized.limit}
        print(json.dumps(facts, indent=2))
        return 0
    print(f"directory  {cache.directory}{' (disabled)' if is_disabled() else ''}")
    print(f"programs   {entries}")
    print(f"size       {size / 2**20:.1f} of {LIMIT_BYTES / 2**20:.0f} MiB")
    print(f"hot        {counted(hot_count, 'kernel')}, {hot_size / 2**20:.1f} of {hot.limit / 2**20:.0f} MiB")
    print(f"optimized  {counted(modules, 'module')}, {modules_size / 2**20:.1f} of {optimized.limit / 2**20:.0f} MiB")
    return 0
