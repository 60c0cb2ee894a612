"""The kernels of the programs of tests/corpus/stablehlo and tests/corpus/programs: executed at every stage, and assembled for every chip.

    python -m runtime.kernels_table                    all programs; exit code 1 where numbers differ or code is refused
    python -m runtime.kernels_table rope layer         of these
    python -m runtime.kernels_table --no-ptx ...       without the assembler

A row: the program, its kernels, library calls and ops that the runtime carries out, the verdict at `loops`, `kernels`, `host` and
`llvm-dialect` at the first, a middle and the last of its shapes (against the NumPy reference, sums within their bounds; later stages
have the bits of the first), the chips for which its PTX was assembled, seconds.
"""

import sys
import time
from collections.abc import Sequence

import numpy as np
from runtime.programs_table import KnownProgram, programs
from tools_here import here

from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import RUN_ON_KERNELS
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_100")
EXECUTED = RUN_ON_KERNELS


def compiled(program: KnownProgram, target: str = "h200") -> Program:
    options = CompileOptions(target=target, record="none")
    return compile_program(parse_stablehlo(program.text(), f"{program.name}.mlir"), options)


def verdicts(program: KnownProgram, made: Program) -> list[str]:
    """What is wrong at each shape and stage; [] for nothing. `kernels` and `host` have the bits of `loops`."""
    wrong = list[str]()
    sizes = program.case.sizes
    for shape in dict.fromkeys((0, len(sizes) // 2, len(sizes) - 1)):
        arrays = made.compilation.checked(program.inputs(sizes[shape]))
        reference = reference_of(made, arrays)
        first: Sequence[np.ndarray] = ()
        for stage in EXECUTED:
            found = made.run(arrays, stage)
            verdict = reference.compare(found)
            if not verdict.ok:
                wrong.append(f"{sizes[shape]} {stage}: {verdict.summary}")
            first = first or found
            same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, found, strict=True))
            if stage in ("kernels", "host") and not same:
                wrong.append(f"{sizes[shape]} {stage}: other bits than at {EXECUTED[0]}")
    return wrong


def row(program: KnownProgram, with_ptx: bool = True) -> tuple[bool, str]:
    """Whether it is right, and its row."""
    start = time.perf_counter()
    try:
        made = compiled(program)
        wrong = verdicts(program, made)
        chips = list[str]()
        if with_ptx and made.kernels:
            for chip in CHIPS:
                assemble(compiled(program, chip).code, chip, here())
                chips.append(chip)
    except XlaEmittersError as error:
        return False, f"{program.name:24} [{error.stage}] {error.message}"
    seconds = time.perf_counter() - start
    verdict = "; ".join(wrong) or "ok"
    return not wrong, f"{program.name:24} {len(made.kernels):3} kernels  {verdict}  {' '.join(chips)}  {seconds:.1f} s"


def main() -> int:
    asked = [name for name in sys.argv[1:] if not name.startswith("-")]
    rows = list[tuple[bool, str]]()
    for name, program in programs().items():
        if not asked or name in asked:
            rows.append(row(program, "--no-ptx" not in sys.argv))
            print(rows[-1][1], flush=True)
    right = sum(ok for ok, _ in rows)
    print(f"{right} of {len(rows)} programs")
    return int(right < len(rows))


if __name__ == "__main__":
    sys.exit(main())
