"""The table of what a warm call on a GPU costs the host: on the stand-in, whose launches do nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_A_CALL, OF_A_STEP = 10.0, 3.0
"""Microseconds of the host."""
SLACK = 3.0
"""Of a machine that does other things too."""


@pytest.mark.long  # what a warm call does is counted in tests/unit/runtime/cuda/test_cupy_steps.py
def test_calls_and_steps_are_within_what_they_may_cost() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_calls", "rope", "layer", "until_large"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [(row[0], row[-4]) for row in rows] == [("rope", "1"), ("layer", "4"), ("until_large", "102")]
    for *_, steps, microseconds, _ in rows:
        assert float(microseconds) < SLACK * (OF_A_CALL + OF_A_STEP * int(steps)), done.stdout
