"""`xla-emitters cache info|clear`: the cache of compiled programs, and of modules that XLA optimized."""

from __future__ import annotations

import argparse
import json

from xla_emitters.runtime.cache import OPTIMIZED, PROGRAMS, Cache, cache_directory
from xla_emitters.settings import Settings
from xla_emitters.tools.input_output import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="describe the cache, or remove its programs")
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    settings: Settings = options.settings
    directory = cache_directory(settings)
    programs, optimized = Cache.of(PROGRAMS, settings), Cache.of(OPTIMIZED, settings)
    if options.action == "clear":
        removed, modules = programs.clear(), optimized.clear()
        if options.json:
            print(json.dumps({"directory": str(directory), "removed": removed, "optimized_removed": modules}, indent=2))
        else:
            also = f" and {counted(modules, 'optimized module')}" if modules else ""
            print(f"{counted(removed, 'program')}{also} removed from {directory}")
        return 0
    entries, size = programs.size()
    modules, modules_size = optimized.size()
    if options.json:
        facts = {"directory": str(directory), "enabled": not settings.no_cache, "programs": entries}
        facts |= {"bytes": size, "limit_bytes": programs.limit}
        facts |= {"optimized": modules, "optimized_bytes": modules_size, "optimized_limit_bytes": optimized.limit}
        print(json.dumps(facts, indent=2))
        return 0
    print(f"directory  {directory}{' (disabled)' if settings.no_cache else ''}")
    print(f"programs   {entries}")
    print(f"size       {size / 2**20:.1f} of {programs.limit / 2**20:.0f} MiB")
    print(f"optimized  {counted(modules, 'module')}, {modules_size / 2**20:.1f} of {optimized.limit / 2**20:.0f} MiB")
    return 0
