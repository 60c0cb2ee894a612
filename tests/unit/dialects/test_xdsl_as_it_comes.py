"""Importing the package changes nothing of xDSL's: no attribute of a module or class is another, no definition of an op."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "xdsl_state.py"


def state(*flags: str, modules: list[str] | None = None) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, PROGRAM, *flags],
        input=json.dumps(modules),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    return json.loads(done.stdout)


def test_nothing_of_xdsls_is_another_after_importing_all_of_the_package():
    beside = state("--with-us")
    modules = sorted({place.split()[0] for place in beside})
    assert {"xdsl.dialects.arith", "xdsl.dialects.llvm", "xdsl.parser.core", "xdsl.universe"} <= set(modules)
    alone = state(modules=modules)
    assert len(alone) > 10_000
    changed = {place: (alone.get(place), beside.get(place)) for place in alone | beside}
    assert {place: pair for place, pair in changed.items() if pair[0] != pair[1]} == {}
