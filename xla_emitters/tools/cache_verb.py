"""`xla-emitters cache info|clear`: the programs that were compiled before."""

from __future__ import annotations

import argparse

from xla_emitters.runtime.program_cache import LIMIT_BYTES, ProgramCache, cache_directory, is_disabled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="say what there is, or let go of it")


def run(options: argparse.Namespace) -> int:
    cache = ProgramCache(cache_directory())
    if options.action == "clear":
        removed = cache.clear()
        print(f"{removed} program{'' if removed == 1 else 's'} removed from {cache.directory}")
        return 0
    entries, size = cache.size()
    print(f"directory  {cache.directory}{' (disabled)' if is_disabled() else ''}")
    print(f"programs   {entries}")
    print(f"size       {size / 2**20:.1f} of {LIMIT_BYTES / 2**20:.0f} MiB")
    return 0
