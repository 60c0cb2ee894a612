"""`check` as users call it: for files and text of HLO and StableHLO, and for programs that were compiled before.

check("gelu.hlo")                       a module: `explore.check`
check("layer.mlir", sizes={"b": 2})     a program with unknown sizes: `explore.programs`
check(p)   check(p, sizes={"b": 2})     what `compile` or `from_jax` returned: its module is compiled again, for the same target
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from xla_emitters.dialects.hlo.device_groups import devices_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import UsageError
from xla_emitters.explore import check as modules
from xla_emitters.explore.check import Verdict
from xla_emitters.explore.check_devices import check_on_devices
from xla_emitters.explore.compile import compile_text
from xla_emitters.explore.programs import check_passes, check_program, wanted_stages
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.pipelines.kept_programs import read_text
from xla_emitters.pipelines.lowerings import Lowerings, lowerings_of
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import StandardInput, load_given
from xla_emitters.runtime.devices import devices_wanted
from xla_emitters.runtime.repetition import MOST_ITERATIONS
from xla_emitters.stablehlo_text import is_stablehlo


def check(
    source: str | Path | Program,
    *,
    stages: str = "all",
    sizes: Mapping[str, int] | None = None,
    blocks: int = 0,
    sanitize: bool = True,
    inputs: str | Path | StandardInput | Sequence[Array] | None = None,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
    keep_going: bool = False,
    devices: int | None = None,
    instead: str = 'sizes={"b": 2} or inputs=[...] in Python',
    **compiling: Unpack[CompileKeywords],
) -> Verdict:
    """Compiles, executes every stage on the CPU, compares with the NumPy reference.

    source      a path, text (anything with a newline) of HLO or StableHLO, or a program
    sizes       of a program with unknown sizes, for inputs that are drawn: symbol -> size
    devices     of a module for several devices; None: as many as it is for, up to 16. `inputs` then holds a list for each
    instead     what the message about missing sizes says besides
    blocks, keep_going, sanitize  for modules of HLO, as in `explore.check`; the others too
    returns     a verdict, with one for each kernel
    raises      what `compile` raises; DataError for sizes that are missing; UsageError for options of the other kind
    """
    if isinstance(source, Program) and isinstance(source.compilation, Lowerings):
        return _checked(source, stages, sizes or {}, inputs, seed, atol, rtol, most_iterations, instead, compiling)
    if isinstance(source, str | Path) and is_stablehlo(read_text(source)[0]):
        text, name = read_text(source)
        program = compile_text(text, name, replace(CompileOptions(**compiling), stage="stablehlo"))
        return _checked(program, stages, sizes or {}, inputs, seed, atol, rtol, most_iterations, instead, compiling)
    if sizes:
        raise UsageError("sizes are for programs (StableHLO); the sizes of HLO text are known", stage="check")
    if isinstance(source, Program):
        compiling = {"target": source.target, "fusion": source.fusion, **compiling}
        source = source.hlo if "\n" in source.hlo else f"{source.hlo}\n"
    how: dict[str, Any] = {
        "stages": stages,
        "blocks": blocks,
        "sanitize": sanitize,
        "seed": seed,
        "atol": atol,
        "rtol": rtol,
        "most_iterations": most_iterations,
        **compiling,
    }
    module = read_module(source)
    needed = devices_of(module) if compiling.get("fusion") is None and not keep_going else 1
    count = devices_wanted(needed, devices, "check")
    if count > 1:
        return check_on_devices(module, inputs=cast("Any", inputs), **how)
    return modules.check(module, inputs=inputs, keep_going=keep_going, **how)


def _checked(
    program: Program,
    stages: str,
    sizes: Mapping[str, int],
    inputs: str | Path | StandardInput | Sequence[Array] | None,
    seed: int,
    atol: float | None,
    rtol: float | None,
    most_iterations: int,
    instead: str,
    compiling: CompileKeywords,
) -> Verdict:
    """The verdict on a program's module, compiled again up to its last stage with its IR recorded."""
    made = lowerings_of(program)
    is_by_pass = stages == "passes"
    wanted = [] if stages in ("all", "passes") else wanted_stages(stages)
    options = replace(replace(made.options, stage="ptx", verify=True), **compiling)
    compiled = compile_program(made.source, replace(options, record="passes" if is_by_pass else "stages"))
    if inputs is None:
        arrays = drawn_inputs(compiled, sizes, seed, instead=instead)
    elif isinstance(inputs, str | Path | StandardInput):
        arrays = load_given(inputs, "p", len(compiled.parameters))
    else:
        arrays = list(inputs)
    if is_by_pass:
        return check_passes(compiled, arrays, atol, rtol, most_iterations)
    return check_program(compiled, arrays, wanted, atol, rtol, most_iterations)
