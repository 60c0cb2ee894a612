"""Damaged PTX of ours and of the real XLA: each text gives a message with a place, a located fault, or numbers, and soon.

Where ptxas is installed, what runs here must be PTX for it too: else something wrong was taken without a word. Only wrong rows are printed.
"""

import gzip
import json
import random
import re
import resource
import sys
import traceback
from collections.abc import Iterator
from functools import cache

import numpy as np
from runtime.corpus import CORPUS, files
from unit.text.ptx.damaged_ptx import damaged, how_it_ends

from lab.ptx.rows import Row
from lab.ptx.xla_kernels import CODES
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import ToolError
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import LaunchDimensions
from xla_emitters.settings import read_settings

TEXTS = 8000
SECONDS, GIGABYTES = 20.0, 4.0
STEP = 9
"""Each n-th file of the corpus."""


@cache
def source(name: str, is_xlas: bool) -> tuple[str, tuple[Array, ...], LaunchDimensions] | None:
    """PTX, arrays of zeros and the launch; None for a file without one kernel of up to 4 MB."""
    program = compile(CORPUS / name, target="h100", stage="ptx", record="none")
    if len(program.kernels) != 1:
        return None
    (kernel,) = program.kernels
    if sum(argument.bytes for argument in kernel.arguments) > 4 << 20:
        return None
    arrays = tuple(np.zeros(a.array.elements, dtype(a.array.dtype).numpy) for a in kernel.arguments)
    if not is_xlas:
        return kernel.ptx, arrays, kernel.launch
    code = codes().get(name, {})
    launches = [numbers for _, numbers in code.get("thunks", ()) if numbers]
    if len(launches) != 1:
        return None
    (gx, gy, gz, bx, by, bz, _) = launches[0]
    return code["ptx"], arrays, LaunchDimensions((gx, gy, gz), (bx, by, bz))


@cache
def codes() -> dict[str, dict[str, str]]:
    with gzip.open(CODES, "rt") as stream:
        return json.load(stream)


def rows(every: int, first: int) -> Iterator[Row]:
    names = files()[::STEP]
    for seed in range(TEXTS)[first::every]:
        dice = random.Random(seed)
        found = source(dice.choice(names), dice.random() < 0.4)
        if found is not None:
            yield row(seed, dice, *found)


def row(seed: int, dice: random.Random, text: str, arrays: tuple[Array, ...], launch: LaunchDimensions) -> Row:
    done, text = damaged(dice, text)
    try:
        found = how_it_ends(text, arrays, launch)
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return Row(
            f"{seed:6} {done:40} {type(error).__name__}: {error} at {at.filename}:{at.lineno}", False, ("failed",)
        )
    wrong = list[str]()
    if not found.is_located:
        wrong.append("no place")
    if found.seconds > SECONDS:
        wrong.append(f"{found.seconds:.0f} s")
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > GIGABYTES * 1e6:
        wrong.append("memory")
    if found.outcome in ("ran", "ExecutionError") and (said := refused(text)):
        wrong.append(f"ptxas: {said}")
    counted = (found.outcome, *(each.partition(":")[0] for each in wrong))
    text = f"{seed:6} {done:40} {found.outcome} {found.message[:90]} {'; '.join(wrong)}" if wrong else ""
    return Row(text, not wrong, counted)


def refused(text: str) -> str:
    """Why ptxas refuses a text that was run; "" where it takes it or is not installed."""
    try:
        assemble(text, "sm_90a" if "sm_90a" in text else "sm_90", read_settings().toolchain)
    except ToolError as error:
        if "(signal 9)" in error.message or "Unsupported .version" in error.message:
            return ""  # ptxas has no memory for its locals; a newer version is a remark here
        lines = [line for line in (error.message, *error.details) if "error   :" in line]
        return re.sub(r"^.*kernel\.ptx, ", "", (lines or [error.message])[0])
    except Exception as error:  # a text that has no entry for ptxas
        return str(error)
    return ""


if __name__ == "__main__":
    (wanted,) = map(int, sys.argv[1:])
    dice = random.Random(wanted)
    name = dice.choice(files()[::STEP])
    found = source(name, dice.random() < 0.4)
    assert found is not None
    print(damaged(dice, found[0])[1])
