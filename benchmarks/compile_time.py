"""Warm compile time of one fusion, ours against the real XLA's, interleaved in one process: `make bench`.

Ours is HLO text to PTX, and again with ptxas behind it; XLA's is HLO text to an executable without dumps and includes its own ptxas run.
Machines are noisy: read the ratio, and the spread beside it. The cache is off.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from xla_emitters.errors import ToolError
from xla_emitters.explore.xla import XlaGpu
from xla_emitters.lowering.toolchain import assemble
from xla_emitters.pipeline import compile


def milliseconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description="Warm compile time against the real XLA's.")
    parser.add_argument("file", nargs="?", default="examples/gelu.hlo")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    text = Path(options.file).read_text()

    def ours() -> str:
        return compile(text, record="none").kernels[0].ptx

    def ours_and_ptxas() -> None:
        assemble(ours(), "sm_90")

    contenders: dict[str, Callable[[], object]] = {"ours, to PTX": ours, "ours, with ptxas": ours_and_ptxas}
    try:
        # XLA's parser wants a space before a colon or none at all in the header's name.
        xla, theirs = XlaGpu(), text.replace("HloModule m:", "HloModule m")
        contenders["XLA, with ptxas"] = lambda: xla.compile(theirs)
    except ToolError as error:
        print(f"the real XLA is not measured: {error.message}; {error.help}", file=sys.stderr)
    for _ in range(3):
        for contender in contenders.values():
            contender()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, contender in contenders.items():
            times[name].append(milliseconds(contender))
    print(f"{options.file}, {date.today()}, Python {platform.python_version()}, {options.rounds} rounds interleaved, ms")
    print(f"{'':<18} {'median':>8} {'best':>8} {'worst':>8}")
    for name, measured in times.items():
        print(f"{name:<18} {statistics.median(measured):>8.1f} {min(measured):>8.1f} {max(measured):>8.1f}")
    if "XLA, with ptxas" in times:
        baseline = times["XLA, with ptxas"]
        for name in ("ours, to PTX", "ours, with ptxas"):
            ratios = [mine / theirs for mine, theirs in zip(times[name], baseline, strict=True)]
            print(f"ratio of {name} to XLA: median {statistics.median(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
