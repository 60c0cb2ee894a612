"""The PTX of programs with unknown sizes, launched through the stand-in for CuPy at two sets of sizes each, against JAX's values."""

from collections.abc import Iterator

import numpy as np
from runtime.programs_table import KnownProgram, difference, programs
from unit.runtime.fake_gpu import fake_cupy

from lab.ptx.rows import Row
from xla_emitters.errors import XlaEmittersError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_gpu import GpuProgram
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.text.stablehlo import parse_stablehlo


def rows(every: int, first: int) -> Iterator[Row]:
    for program in list(programs().values())[first::every]:
        yield from rows_of(program)


def rows_of(known: KnownProgram) -> Iterator[Row]:
    """At the second and the last sizes of its case, or at its only ones."""
    count = len(known.case.sizes)
    with fake_cupy(), np.load(known.folder / f"{known.name}.npz") as expected:
        try:
            module = parse_stablehlo(known.text(), f"{known.name}.mlir")
            compiled = GpuProgram(compile_program(module, CompileOptions(target="sm_90", record="none")).compilation)
            for number in sorted({min(1, count - 1), count - 1}):
                sizes = known.case.sizes[number]
                results = compiled.run(known.inputs(sizes))
                worst = max(difference(a, expected[f"{number}/r{i}"]) for i, a in enumerate(results))
                ok = worst <= known.case.tolerance
                text = f"{known.name:28} {dict(sizes)!s:28} differs by {worst:.1e} of the largest magnitude"
                yield Row(text, ok, ("right" if ok else "wrong",))
        except XlaEmittersError as error:
            yield Row(f"{known.name:28} {error.message}", False, ("refused",))
        except Exception as error:  # a bug, which is shown in its row
            yield Row(f"{known.name:28} {type(error).__name__}: {error}", False, ("failed",))
