"""Numbers that data hold are right or refused: at every stage, and by machine code."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest
from long_lists import but_long
from runtime.bad_numbers import DYNAMIC, Array, TooLarge

from xla_emitters.errors import DataError
from xla_emitters.pipelines.program_runs import run_module
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

CASES = [(name, integer) for name, case in DYNAMIC.items() for integer in case.integers]
SOME = [(name, "i64" if "i64" in case.integers else "i32") for name, case in DYNAMIC.items()]
MORE = 4
"""Lists of numbers of which several are bad, for each case."""


@cache
def compiled(name: str, integer: str) -> Program:
    return compile_program(parse_stablehlo(DYNAMIC[name].text(integer), "m.mlir"))


def ways(made: Program) -> Mapping[str, Callable[[list[Array]], list[Array]]]:
    """Each way to run a program: as its stages and as a call."""

    def at(stage: str) -> Callable[[list[Array]], list[Array]]:
        module = made.compilation.at(stage)
        return lambda arrays: run_module(module, made.compilation.checked(arrays))

    found = {stage: at(stage) for stage in ("stablehlo", "placed", "fused")}

    def kernels(arrays: list[Array]) -> list[Array]:
        return made.run(arrays, "kernels")

    def call(arrays: list[Array]) -> list[Array]:
        return made.run(arrays)

    return {**found, "kernels": kernels, "call": call}


@pytest.mark.parametrize(("name", "integer"), but_long(CASES, [case for case in CASES if case not in SOME]))
def test_numbers_that_data_hold_are_right_or_refused(name: str, integer: str) -> None:
    case, made = DYNAMIC[name], compiled(name, integer)
    runs = ways(made)
    # Every fifth list in the tests that always run.
    for number, numbers in enumerate(list(case.draws(integer, 0, MORE))[:: 5 if (name, integer) in SOME else 1]):
        try:
            wanted = case.wanted(numbers)
        except TooLarge:
            continue
        # Every way runs the good numbers; of the others each runs a part, and the call all.
        for turn, (way, run) in enumerate(runs.items()):
            if number and way != "call" and (number + turn) % 3:
                continue
            if wanted is None:
                with pytest.raises(DataError, match=r"%y|%dynamic_pad"):
                    run(case.arrays(numbers, integer))
            else:
                (found,) = run(case.arrays(numbers, integer))
                np.testing.assert_array_equal(found, wanted, err_msg=f"{way} {numbers}")
