"""Which test files cost most: CPU seconds of each file's tests and of the processes that they start, of a drawn sample.

    make lab NAME="suite_times --every 25"           every 25th test, drawn; about a minute of CPU time
    make lab NAME="suite_times tests/unit/tools"     all tests of some files

    estimate   sampled      tests  file
        51.2      2.90   3 of  53  tests/runtime/test_ptx_faults.py

The estimate is the sampled time per test, times the file's tests. What a file's fixtures cost counts to the first test drawn of it, so
files of which few were drawn look dearer than they are. Times of two runs compare only on a machine that is as busy.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Generator

import pytest


def spent() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Times:
    """A plugin of pytest that draws tests and adds up what each file's cost."""

    def __init__(self, every: int, seed: int) -> None:
        self.every, self.drawing = every, random.Random(seed)
        self.tests, self.drawn, self.seconds = Counter[str](), Counter[str](), defaultdict[str, float](float)

    @pytest.hookimpl(trylast=True)  # after the tests that a mark leaves out
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.tests.update(map(file_of, items))
        chosen = set(self.drawing.sample(range(len(items)), -(-len(items) // self.every)))
        items[:] = [item for number, item in enumerate(items) if number in chosen]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = spent()
        done = yield
        self.drawn[file_of(item)] += 1
        self.seconds[file_of(item)] += spent() - before
        return done

    def table(self, most: int) -> str:
        """The dearest files, by estimate."""
        rows = [
            (seconds * self.tests[file] / self.drawn[file], seconds, file) for file, seconds in self.seconds.items()
        ]
        lines = [f"{'estimate':>8}  {'sampled':>8}  {'tests':>9}  file"]
        for estimate, seconds, file in sorted(rows, reverse=True)[:most]:
            lines.append(f"{estimate:8.1f}  {seconds:8.2f}  {self.drawn[file]:>3} of {self.tests[file]:>3}  {file}")
        return "\n".join(
            (*lines, f"{sum(self.seconds.values()):.1f} s in {self.drawn.total()} of {self.tests.total()} tests")
        )


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="suite_times", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", default=["tests"])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one test of N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=40, help="rows of the table; default 40")
    options = parser.parse_args()
    times = Times(options.every, options.seed)
    code = pytest.main(["-p", "no:cacheprovider", "--tb=short", *options.files], plugins=[times])
    print(times.table(options.most))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
