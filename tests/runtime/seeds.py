"""How many random cases a property test runs: few in the suite, as many as wanted on demand.

XLA_EMITTERS_TEST_CASES=20000 .venv/bin/python -m pytest tests/runtime/test_bad_input.py
"""

import os

CASES = "XLA_EMITTERS_TEST_CASES"


def seeds(in_the_suite: int, *, of_all: float = 1.0) -> range:
    """0, 1, 2 ...: `in_the_suite` of them, or where the variable is set that many.

    of_all   fraction of the variable's number, for a test with more expensive cases
    """
    wanted = os.environ.get(CASES)
    return range(in_the_suite if wanted is None else max(in_the_suite, int(int(wanted) * of_all)))
