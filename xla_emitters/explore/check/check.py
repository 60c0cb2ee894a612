"""`check`: whether every stage computes what the text says, by the NumPy reference on the CPU.

check("gelu.hlo")                       a module: each kernel after every stage on its real inputs, then the whole: `module_stages`
check("spmd.hlo")                       a module for several devices: each device its kernels and results, on what the others send it
check("layer.mlir", sizes={"b": 2})     a program with unknown sizes: the whole at each stage: `program_stages`
check(p)   check(p, sizes={"b": 2})     what `compile` or `from_jax` returned: its module is compiled again, for the same target
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.device_groups import devices_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import UsageError
from xla_emitters.explore.bisect.program_bisect import search_program
from xla_emitters.explore.check.module_stages import CheckOptions, StageComparison
from xla_emitters.explore.check.on_devices import given_on_devices, on_each_device, verdict_of_devices
from xla_emitters.explore.check.program_stages import check_program
from xla_emitters.explore.check.verdict import Verdict
from xla_emitters.explore.compile import examined
from xla_emitters.explore.listing import LeftOut, compilable
from xla_emitters.pipelines.compiler import with_splits
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.pass_lists import kernel_rows
from xla_emitters.pipelines.program_inputs import given_inputs
from xla_emitters.pipelines.programs import compile_program, executable_stage
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import StandardInput
from xla_emitters.runtime.device_threads import devices_wanted


def check(
    source: str | Path | bytes | bytearray | Program | ModuleOp,
    *,
    stages: str = "all",
    sizes: Mapping[str, int] | None = None,
    blocks: int = 0,
    sanitize: bool = True,
    inputs: str | Path | StandardInput | Sequence[Array] | None = None,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    keep_going: bool = False,
    devices: int | None = None,
    instead: str = 'sizes={"b": 2} or inputs=[...] in Python',
    **compiling: Unpack[CompileKeywords],
) -> Verdict:
    """Compiles, executes every stage on the CPU, compares with the NumPy reference.

    source      a path, text (anything with a newline) of HLO or StableHLO, a program, or what `read_module` made of HLO
    stages      "all", "passes" (after every single pass), or stage names with commas
    sizes       of a program with unknown sizes, for inputs that are drawn: symbol -> size
    blocks, sanitize  for modules of HLO, as in `CheckOptions`
    inputs      arrays, or an `.npz` of them; default: drawn from `seed`. Of several devices, a list for each
    atol, rtol  allowed absolute and relative errors of results, instead of the bounds of the ops
    keep_going  if a module cannot be compiled completely, checks the fusions that can be compiled, each on drawn arrays
    devices     of a module for several devices; None: as many as it is for, up to 16
    instead     what the message about missing sizes says besides
    compiling   the fields of `CompileOptions`; the verifier runs after every pass unless `verify=False`
    returns     a verdict, with one for each kernel
    raises      what `compile` raises; ExecutionError becomes part of the verdict; DataError for sizes that are missing; UsageError for
                options of the other kind
    """
    subject, compiling = examined(source, compiling)
    if isinstance(subject, Program):
        made = lowerings_of(subject)
        named = [] if stages in ("all", "passes") else stages.split(",")
        wanted = [executable_stage(stage, "check") for stage in named]
        options = replace(replace(made.options, stage="ptx", verify=True), **compiling)
        options = replace(options, record="stages")
        program = compile_program(made.source, options)
        arrays = given_inputs(program, sizes or {}, inputs, seed, instead=instead)
        if stages == "passes":
            bounds: Any = {"atol": atol, "rtol": rtol, "sanitize": sanitize}
            search = search_program(program, arrays, **bounds)
            if (wrong := search.culprit) is not None:
                return Verdict(False, f"{wrong.name}: {wrong.summary}", wrong.details)
            return Verdict(True, f"ok  {search.executed} executions after passes: {search.last}")
        return check_program(program, arrays, wanted, atol, rtol)
    if sizes:
        raise UsageError("sizes are for programs (StableHLO); the sizes of HLO text are known", stage="check")
    how = CheckOptions(stages, blocks, sanitize, atol, rtol, seed)
    given: CompileKeywords = {"verify": True, **compiling, "stage": how.last_stage, "record": "none"}
    options = CompileOptions(**given)
    for stage in sorted(how.named):
        kernel_rows(replace(options, stage=stage))
    needed = devices_of(subject) if options.fusion is None and not keep_going else 1
    if devices_wanted(needed, devices, "check") > 1:
        return check_on_devices(subject, how, options, cast("Any", inputs))
    return check_module(subject, how, options, inputs, keep_going=keep_going)


def check_module(
    module: ModuleOp,
    how: CheckOptions,
    options: CompileOptions,
    inputs: str | Path | StandardInput | Sequence[Array] | None = None,
    *,
    keep_going: bool = False,
) -> Verdict:
    """The verdict on a module of HLO on one device; as `check`."""
    left_out = tuple[LeftOut, ...]()
    if keep_going:
        module, left_out = compilable(module, options)
    options, _ = with_splits(module, options)
    comparison = StageComparison.of(module, options, how, inputs)
    comparison.compare_text()
    program = comparison.compile(module, options)
    return replace(comparison.verdict(program), program=program, left_out=left_out)


def check_on_devices(
    module: ModuleOp,
    how: CheckOptions,
    options: CompileOptions,
    inputs: str | Path | StandardInput | Sequence[Sequence[Array]] | None = None,
) -> Verdict:
    """The verdict of `check_module` on each device, as one.

    inputs  as `given_on_devices`
    raises  as `check_module`; ExecutionError where collectives do not meet
    """
    given = given_on_devices(module, options, inputs, how.seed)
    found = on_each_device(
        given, lambda arrays: check_module(module, how, options, arrays), lambda verdict: not verdict.ok
    )
    return verdict_of_devices([found[device] for device in sorted(found)], sorted(found), len(given))
