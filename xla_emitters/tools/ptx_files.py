"""`run FILE.ptx` and `check FILE.ptx`: anybody's PTX, or LLVM IR (`FILE.ll`), with arrays and a launch.

    xla-emitters run scale.ptx --launch 32x128 --inputs in.npz --outputs out.npz
    xla-emitters check scale.ptx --launch 32x128 --inputs in.npz

`pN` of the inputs is parameter N: an array for a pointer, as it is before; an array without dimensions for a number. `pN+16` is the array
whose address is at byte 16 of that. Any other name is that of a variable of the module. `rN` of the outputs is what pointer N's array holds
afterwards, `rN+16` that of the other one.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import DataError, UsageError, file_errors
from xla_emitters.tools.input_output import arrays_source, read_source
from xla_emitters.tools.terminal import progress

if TYPE_CHECKING:
    from xla_emitters.dtypes import Array
    from xla_emitters.explore.check.any_ptx import GivenKernel
    from xla_emitters.explore.check.verdict import Verdict
    from xla_emitters.program import LaunchDimensions


TAKEN = (
    *("help", "file", "files", "launch", "tensor_map", "entry", "inputs", "max_memory", "max_iterations"),
    *("jobs", "executor", "resume", "timeout"),
)
OF_VERB = {
    "run": ("outputs", "sanitize", "access_report", "no_reference"),
    "check": ("blocks", "no_sanitize", "json", "format"),
}
"""Options that mean something for PTX."""


def refuse_options_of_modules(options: argparse.Namespace, file: str) -> None:
    """raises UsageError for an option that was given and would be ignored"""
    for action in options.parser._actions:  # pyright: ignore[reportPrivateUsage]
        given = getattr(options, action.dest, action.default)
        is_so = (action.dest, given) == ("platform", "cpu")
        if action.dest not in TAKEN + OF_VERB[options.verb] and given != action.default and not is_so:
            option = action.option_strings[0]
            raise UsageError(
                f"{option} is for modules and programs; {file} is PTX or LLVM IR, which is run as it is, on the CPU",
                stage=options.verb,
                help=f"leave out {option}",
            )


def _kernel(text: str, shown: str, entry: str) -> GivenKernel:
    if Path(shown).suffix == ".ll":
        from xla_emitters.explore.check.any_llvm_ir import LlvmIrKernel

        return LlvmIrKernel.read(text, shown, entry)
    from xla_emitters.explore.check.any_ptx import PtxKernel

    return PtxKernel.read(text, shown, entry)


def _read(
    options: argparse.Namespace, name: str, inputs: str | None
) -> tuple[GivenKernel, Sequence[Array], LaunchDimensions, dict[str, Any]]:
    """The kernel, its arguments, its launch, and what else `GivenKernel.run` needs to know about that."""
    import numpy as np

    from xla_emitters.explore.check.any_ptx import HELP, INSIDE, launch_of, place_of, tensor_map_of
    from xla_emitters.pipelines.kept_programs import read_text
    from xla_emitters.runtime.arrays import load_given, load_matching

    text, shown = read_text(read_source(name))
    kernel = _kernel(text, shown, options.entry)
    for remark in kernel.remarks:
        print(f"note: {remark}", file=sys.stderr)
    if options.launch is None:
        kind = "LLVM IR" if Path(name).suffix == ".ll" else "PTX"
        raise UsageError(f"{name} is {kind}, which does not say how it is launched", stage=options.verb, help=HELP)
    launch, shared, cluster = launch_of(options.launch)
    maps = dict(tensor_map_of(text) for text in options.tensor_map)
    if inputs is None and kernel.parameters:
        names = ", ".join(f"p{number}: {of} {word}" for number, (word, of) in enumerate(kernel.parameters))
        raise DataError(
            f"{name} needs --inputs: it does not say how large its arrays are", stage=options.verb, details=(names,)
        )
    # A map of another parameter's array has none of its own.
    without = [place for place, of in maps.items() if isinstance(place, int) and of.argument is not None]
    numbers = [number for number in range(len(kernel.parameters)) if number not in without]
    arrays, inside = list["Array"](), dict[Any, "Array"]()
    if (source := arrays_source(inputs)) is not None:
        arrays = load_given(source, "p", numbers)
        inside = {place_of(name[1:]): array for name, array in load_matching(source, INSIDE).items()}
        kernel = kernel.filled(load_matching(source, "|".join(map(re.escape, kernel.variables))))
    for number in sorted(without):
        arrays.insert(number, np.zeros(128, np.uint8))
    how = {"shared_bytes": shared, "cluster": cluster, "inside": inside, "tensor_maps": maps}
    return kernel, arrays, launch, how


def run_ptx(options: argparse.Namespace) -> int:
    """Runs the kernel once, and writes what the arrays hold afterwards."""
    from xla_emitters.explore.check.any_ptx import name_of
    from xla_emitters.library.arguments import element_name
    from xla_emitters.program import ArraySpec
    from xla_emitters.runtime.arrays import save_named
    from xla_emitters.runtime.simt.access_counts import AccessCounter, access_table
    from xla_emitters.runtime.simt.sanitizer import Sanitizer

    refuse_options_of_modules(options, options.file)
    inputs: list[str] = options.inputs or []
    outputs: list[str] = options.outputs or []
    if len(inputs) > 1 or len(outputs) > 1:
        raise UsageError("a kernel takes one pair of --inputs and --outputs", stage="run")
    kernel, arrays, launch, how = _read(options, options.file, inputs[0] if inputs else None)
    counter = AccessCounter() if options.access_report else None
    watchers = [*([Sanitizer()] if options.sanitize else []), *([counter] if counter else [])]
    start = time.perf_counter()
    with progress(f"running {options.file}"):
        after = kernel.run(arrays, launch, watchers=watchers, **how)
    seconds = time.perf_counter() - start
    specs = [
        ArraySpec(element_name(array.dtype), array.shape, tuple(reversed(range(array.ndim))))
        for array in after.values()
    ]
    target = outputs[0] if outputs else None
    stream = sys.stderr if target == "-" else sys.stdout
    names = [f"r{name_of(place)}" for place in after]
    for name, spec in zip(names, specs, strict=True):
        print(f"{name} = {spec}", file=stream)
    print(f"ran {launch} on the CPU in {seconds:.3f} s; there is no reference", file=stream)
    if counter:
        print(access_table(counter.counts()), file=stream)
    if target is not None:
        with file_errors(f"cannot write {target}", "run"):
            stream_or_file = sys.stdout.buffer if target == "-" else target
            save_named(stream_or_file, names, [*after.values()], specs)
    return 0


def check_ptx(options: argparse.Namespace, name: str) -> Verdict:
    """The verdict on a kernel's faults."""
    kernel, arrays, launch, how = _read(options, name, options.inputs)
    return kernel.check(
        arrays,
        launch,
        **how,
        blocks=options.blocks,
        sanitize=not options.no_sanitize,
    )
