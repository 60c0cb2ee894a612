"""The verbs on a program: StableHLO, with sizes that may be unknown. Whether a file is a program is read from its text.

    xla-emitters run layer.mlir --inputs a.npz --outputs a.out.npz --inputs b.npz --outputs b.out.npz      one compilation, two runs
    xla-emitters run layer.mlir --sizes b=2,s=16                                                           inputs from the seed

Each function implements the verb of its name for files in which `program_text` finds StableHLO.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from xla_emitters.errors import (
    DataError,
    EndlessLoop,
    ExecutionError,
    NumbersDiffer,
    ToolError,
    Unsupported,
    UsageError,
)
from xla_emitters.tools.input_output import arrays_source, counted, print_dumps, print_warnings, write_file
from xla_emitters.tools.kernel_files import is_directory, make_directory
from xla_emitters.tools.options import max_iterations, pass_options_asked, pipeline_asked, record_wanted
from xla_emitters.tools.terminal import coloured, progress
from xla_emitters.trace.annotate import annotated, stablehlo_definitions
from xla_emitters.trace.text import stage_table

if TYPE_CHECKING:
    from xla_emitters.dtypes import Array
    from xla_emitters.explore.bisect import Search
    from xla_emitters.explore.check import Reference, Verdict
    from xla_emitters.pipelines.program_kernels import SizedKernel
    from xla_emitters.pipelines.program_listing import ProgramListing
    from xla_emitters.pipelines.programs import DynamicProgram

INPUTS = "--inputs IN.npz"
"""The arguments that replace --sizes in verbs that run a program on arrays."""
_SUFFIXES = {"ptx": ".ptx", "sass": ".sass"}
"""Suffix of files with the text of a stage that is not MLIR."""
_SIZE = re.compile(r"([A-Za-z_]\w*)=(\d{1,18})")


def add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", metavar="b=2,s=16", help="of a program: the unknown sizes at which inputs are drawn from --seed"
    )


def add_mixed_precision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mixed-precision",
        metavar="f16|bf16",
        default="",
        help="of a program: products and convolutions of f32 are computed in this type, sums in f32; run and explain say the deviation",
    )


def program_text(source: str | Path) -> tuple[str, str] | None:
    """A program's text and name; None for a file that is not StableHLO.

    raises  FileNotFoundError, ParseError for a file that is not text: the message is about the file, not about options of programs
    """
    from xla_emitters.pipelines.kept_programs import read_text
    from xla_emitters.stablehlo_text import is_stablehlo

    if isinstance(source, str):
        return (source, "<stdin>") if is_stablehlo(source) else None
    try:
        text, name = read_text(source)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    return (text, name) if is_stablehlo(text) else None


def refuse_mixed_precision(options: argparse.Namespace) -> None:
    """raises UsageError for --mixed-precision with HLO text, whose types are XLA's choice"""
    if options.mixed_precision:
        raise UsageError("--mixed-precision is for programs (StableHLO)", stage=options.verb)


def refuse_sizes(options: argparse.Namespace) -> None:
    """raises UsageError for --sizes with HLO text, whose sizes are all known"""
    if options.sizes is not None:
        raise UsageError("--sizes is for programs (StableHLO); the sizes of HLO text are known", stage=options.verb)


def refuse(options: argparse.Namespace, **names: str) -> None:
    """raises UsageError for an option of modules that was given with a program, such as --tune

    names  further options of this verb to refuse: field -> spelling of the option
    """
    always = {"tune": "--tune", "hero_rules": "--hero-rules", "triton": "--triton"}
    for field, spelled in {**always, **names}.items():
        if getattr(options, field, None):
            raise UsageError(
                f"{spelled} is for modules of HLO text; {options_file(options)} is a program in StableHLO",
                stage=options.verb,
                help=f"leave out {spelled}",
            )


def refuse_programs(source: str | Path, verb: str, why: str) -> None:
    """raises Unsupported for StableHLO with a verb that takes HLO text only

    why  the reason, for the message
    """
    if found := program_text(source):
        name = found[1]
        raise Unsupported(
            f"{name} is a program in StableHLO: {why}",
            stage=verb,
            help=f"run, check, compile, explain and list take programs; with static sizes, optimize {name} -o OUT.hlo makes HLO text",
        )


def options_file(options: argparse.Namespace) -> str:
    return options.file if "file" in options else options.files[0]


def sizes_given(text: str | None) -> dict[str, int]:
    """The value of --sizes. raises UsageError for text that is not a list of NAME=NUMBER, and for a name that is given twice."""
    if text is None:
        return {}
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _SIZE.fullmatch(part.strip())
        if match is None or match[1] in found:
            why = "is given twice" if match else "is not NAME=NUMBER"
            raise UsageError(f"--sizes {text}: '{part.strip()}' {why}", stage="usage", help="--sizes b=2,s=16")
        found[match[1]] = int(match[2])
    return found


def compiled(
    options: argparse.Namespace,
    text: str,
    name: str,
    stage: str | None = None,
    record: str = "stages",
    constants: str = "",
    line_info: bool = False,
) -> DynamicProgram:
    """The program, compiled up to `stage`; None: PTX. raises UsageError for a stage that programs do not have.

    constants  the file that its constants are written to; "": they stay in the program
    line_info         as in `CompileOptions`
    """
    from xla_emitters.explore.programs import compile_text
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.pipelines.program_passes import CODE_STAGES
    from xla_emitters.pipelines.programs import known_stage

    chosen = known_stage(stage, options.verb) if stage is not None else CODE_STAGES[0]
    refuse(options, fusion="--fusion")
    mixed: str = getattr(options, "mixed_precision", "")  # `list` does not have this option
    wanted = CompileOptions(
        target=options.target,
        stage=chosen,
        record=record,
        constants=constants,
        mixed_precision=mixed,
        line_info=line_info,
        pipeline=pipeline_asked(options),
        pass_options=pass_options_asked(options),
        entry=options.entry,
        rng_seed=options.rng_seed,
    )
    with progress(f"compiling {name}"):
        return compile_text(text, name, wanted)


# --------------------------------------------------------------------------------------------------------------- compile


def compile_program(options: argparse.Namespace, text: str, name: str) -> int:
    """Prints the program's IR at a stage."""
    refuse(options, keep_intermediates="--keep-intermediates")
    directory = Path(options.output) if is_directory(options.output) else None
    stem = re.sub(r"\W", "_", Path(name).stem)
    record = "passes" if options.diff else record_wanted(options, "stages")
    if directory is not None:
        make_directory(directory)
    constants = str(directory / f"{stem}.npz") if directory and not (options.json or options.diff) else ""
    line_info = options.line_info or options.annotate
    program = compiled(options, text, name, options.stage, record, constants, line_info=line_info)
    if options.json:
        printed = json.dumps(program.to_json(), indent=2)
    elif options.diff:
        points = [int(point) if point.isdecimal() else point for point in options.diff]
        try:
            printed = program.trace.diff(*points)
        except KeyError as error:
            raise UsageError(str(error.args[0]), stage="diff") from error
    elif options.annotate and program.kernels:
        steps = [trace[program.stage] for trace in program.lowering.listed(program.stage)]
        from xla_emitters.hlo_text.stack_frames import PythonLines

        lines = PythonLines(program.source).by_name(program.source)
        printed = annotated(steps, stablehlo_definitions(text, program.lines), lines)
    else:
        printed = program.code
    printed = printed if printed.endswith("\n") else printed + "\n"
    if options.output == "-":
        kind = "json" if options.json else "diff" if options.diff else program.stage
        sys.stdout.write(coloured(printed, kind, sys.stdout))
    elif directory is not None:
        suffix = ".json" if options.json else ".diff" if options.diff else _SUFFIXES.get(program.stage, ".mlir")
        write_file(str(directory / f"{stem}{suffix}"), printed)
    else:
        write_file(options.output, printed)
    print_dumps(options, program)
    print_warnings(program)
    return 0


# -------------------------------------------------------------------------------------------------------- list, explain


def list_program(options: argparse.Namespace, text: str, name: str) -> int:
    """Prints a line for each kernel, each library call, and each op that neither of them computes."""
    from xla_emitters.pipelines.program_listing import list_program as listed

    try:
        program = compiled(options, text, name)
        kernels, refused_because = _kernels_of(program)
    except Unsupported as error:
        # An op that the pipeline refuses is listed too; a text that cannot be read is refused again.
        program, kernels, refused_because = compiled(options, text, name, "hlo"), (), error.message
    listing = listed(program.at("hlo"))
    if options.json:
        rows_of_kernels = [
            {**kernel.to_json(), "computation": "ENTRY", "emitter": kernel.schedule, "supported": True, "reason": ""}
            for kernel in kernels
        ]
        data = {"target": options.target, "kernels": rows_of_kernels, **listing.to_json()}
        print(json.dumps(data | ({"no_kernels": refused_because} if refused_because else {}), indent=2))
        return 0
    rows, others = _listed_rows(program, listing, kernels)
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        print("  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip())
    refused = sum(not op.supported for op in listing.ops)
    why = f" ({refused_because})" if refused_because else ""
    calls = len(listing.library_calls)
    print(
        f"{counted(len(kernels), 'kernel')}{why}, {counted(calls, 'library call')}, "
        f"{counted(others, 'other op')}, {listing.of_sizes} of sizes, {refused} not supported"
    )
    return 0


def _listed_rows(
    program: DynamicProgram, listing: ProgramListing, kernels: Sequence[SizedKernel]
) -> tuple[list[tuple[str, str, str, str, str]], int]:
    """Rows of name, computation, kind, results, and how it runs; and the number of those that are neither kernels nor library calls.

    listing  of the stage "hlo": all of it is listed for a program that the pipeline refuses
    """
    from xla_emitters.pipelines.fusion_listing import list_fusions
    from xla_emitters.pipelines.program_listing import list_program as listed
    from xla_emitters.pipelines.program_outline import not_in_kernels

    rows = list[tuple[str, str, str, str, str]]()
    found, others = listing, [op for op in listing.ops if op not in listing.library_calls]
    if kernels and program.fused is not None:
        found = listed(program.at("placed"))
        others = not_in_kernels(found, program.fused)
        for fusion in list_fusions(program.fused):
            own = [
                kernel for kernel in kernels if kernel.name == fusion.name or kernel.name.startswith(f"{fusion.name}_")
            ]
            ways = Counter(f"{each.schedule} schedule, {'x'.join(map(str, each.block))} threads" for each in own)
            how = ", ".join(f"{way}{f' ({count} kernels)' if count > 1 else ''}" for way, count in ways.items())
            rows.append((fusion.name, "ENTRY", fusion.kind, ", ".join(fusion.results), how))
    for op in (*found.library_calls, *others):
        rows.append((op.name, op.computation, op.opcode, op.type, f"call {op.function}" if op.function else op.reason))
    return rows, len(others)


def _kernels_of(program: DynamicProgram) -> tuple[Sequence[SizedKernel], str]:
    """The kernels, and why there are none where something has no code of ours."""
    try:
        return program.kernels, ""
    except Unsupported as error:
        return (), error.message


def explain_program(options: argparse.Namespace, text: str, name: str) -> int:
    """Prints symbols, guards, what runs where and why, and, at given sizes, the memory over a run."""
    from xla_emitters.pipelines.program_report import report, report_json

    program = compiled(options, text, name)
    values = sizes_given(options.sizes)
    data = report_json(program, values) if options.json else report(program, values)
    print(json.dumps(data, indent=2) if options.json else data)
    return 0


# ----------------------------------------------------------------------------------------------------------------- check


def check_program(options: argparse.Namespace, text: str, name: str) -> Verdict:
    """Runs the program at every stage, or after every pass, and compares with the NumPy reference."""
    from xla_emitters.explore.programs import check_passes, check_program, wanted_stages

    is_by_pass = options.stages == "passes"
    stages = [] if options.stages in ("passes", "all") else wanted_stages(options.stages)
    program = compiled(options, text, name, record="passes" if is_by_pass else "stages")
    values = sizes_given(options.sizes)
    if len(options.files) > 1:  # a file need not have all symbols of --sizes
        values = {symbol: value for symbol, value in values.items() if symbol in program.symbols}
    inputs = _inputs_of(options, program, values)
    limit = max_iterations(options, "check")
    with _drawn() if options.inputs is None else nullcontext():
        if is_by_pass:
            return check_passes(program, inputs, options.atol, options.rtol, limit)
        return check_program(program, inputs, stages, options.atol, options.rtol, limit)


def _inputs_of(options: argparse.Namespace, program: DynamicProgram, values: Mapping[str, int]) -> Sequence[Array]:
    """The arrays of --inputs, or random ones at these sizes."""
    from xla_emitters.pipelines.program_inputs import drawn_inputs
    from xla_emitters.runtime.arrays import load_given

    if (given := arrays_source(options.inputs)) is None:
        return drawn_inputs(program, values, options.seed, instead=INPUTS)
    refuse_sizes_with_inputs(options)
    return load_given(given, "p", len(program.sizes.guards.types))


def bisect_program(options: argparse.Namespace, text: str, name: str) -> Search:
    """Executes the program after every pass, until one is wrong."""
    from xla_emitters.explore.program_bisect import bisect_program as bisected

    refuse(options, pipeline="--pipeline", blocks="--blocks")
    program = compiled(options, text, name, record="none")
    inputs = _inputs_of(options, program, sizes_given(options.sizes))
    limit = max_iterations(options, "bisect")
    with _drawn() if options.inputs is None else nullcontext():
        return bisected(
            program, inputs, atol=options.atol, rtol=options.rtol, sanitize=options.sanitize, most_iterations=limit
        )


def refuse_sizes_with_inputs(options: argparse.Namespace) -> None:
    if options.sizes is not None:
        raise UsageError("--sizes with --inputs: the arrays have sizes", stage=options.verb, help="leave out --sizes")


# ------------------------------------------------------------------------------------------------------------------- run


def run_program(options: argparse.Namespace, text: str, name: str) -> int:
    """Compiles once, then runs each pair of --inputs and --outputs in order; a bad pair ends the run."""
    inputs: list[str] = options.inputs or []
    outputs: list[str] = options.outputs or []
    if len(inputs) != len(outputs) and max(len(inputs), len(outputs)) > 1:
        raise UsageError(
            f"--inputs is given {len(inputs)} times and --outputs {len(outputs)} times: they are pairs", stage="run"
        )
    refuse(options, sanitize="--sanitize", access_report="--access-report")
    if options.platform == "cuda":
        _refuse_without_gpu(options)
    if inputs:
        refuse_sizes_with_inputs(options)
    if options.stage is not None:
        from xla_emitters.pipelines.programs import executable_stage

        executable_stage(options.stage, "run")
    if outputs.count("-") > 1:
        raise UsageError("'-' is given more than once: standard output takes one file", stage="run")
    if options.json and "-" in outputs:
        raise UsageError("--json and '--outputs -' both write to standard output", stage="run")
    values = sizes_given(options.sizes)
    record = record_wanted(options, "stages" if options.stage or options.show_stages else "none")
    results, standard = BytesIO(), sys.stdout
    with redirect_stdout(sys.stderr) if "-" in outputs else nullcontext():
        try:
            return _compile_and_run(options, text, name, values, record, inputs, outputs, results)
        finally:
            if written := results.getvalue():
                standard.buffer.write(written)


def _refuse_without_gpu(options: argparse.Namespace) -> None:
    """Checks for a GPU before anything is compiled. raises UsageError with a stage, ToolError without CuPy or a device"""
    from xla_emitters.runtime.cupy_launcher import HELP, cuda_reason_missing, device_architecture

    if options.stage:
        raise UsageError("--platform cuda runs PTX only; stages run on the CPU", stage="run", help="--platform cpu")
    if reason := cuda_reason_missing():
        raise ToolError(f"--platform cuda: {reason}", stage="run", help=HELP)
    options.target = device_architecture()


def _compile_and_run(
    options: argparse.Namespace,
    text: str,
    name: str,
    values: Mapping[str, int],
    record: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    standard_output: IO[bytes],
) -> int:
    from xla_emitters.pipelines.program_inputs import drawn_inputs
    from xla_emitters.pipelines.program_listing import list_program
    from xla_emitters.pipelines.programs import COMPILATIONS
    from xla_emitters.runtime.arrays import load_given

    before = COMPILATIONS.made
    program = compiled(options, text, name, options.stage, record)
    if options.show_stages and not options.json:
        print(stage_table(program.trace))
    print_dumps(options, program)
    print_warnings(program)
    rows: list[dict[str, Any]] = []
    try:
        for number in range(max(1, len(inputs))):
            source = arrays_source(inputs[number]) if inputs else None
            if source is None:
                arrays = drawn_inputs(program, values, options.seed, instead=INPUTS)
            else:
                arrays = load_given(source, "p", len(program.sizes.guards.types))
            target = outputs[number] if outputs else None
            with _drawn() if source is None else nullcontext():
                rows.append(_run_once(options, program, arrays, target, standard_output))
            rows[-1] |= {"inputs": inputs[number] if inputs else None, "outputs": target}
    finally:
        if options.json:
            calls = len(list_program(program.source).library_calls)
            counts = {
                "compiles": COMPILATIONS.made - before,
                "kernels": len(_kernels_of(program)[0]),
                "library_calls": calls,
            }
            print(json.dumps({**counts, "runs": rows}), flush=True)
    return 0


@contextmanager
def _drawn() -> Generator[None]:
    """An error about the arguments says that they were drawn."""
    try:
        yield
    except DataError as error:
        error.notes = (*error.notes, (None, f"the arguments are random numbers; {INPUTS} gives others"))
        raise


def _run_once(
    options: argparse.Namespace, program: DynamicProgram, given: Sequence[Array], target: str | None, stream: IO[bytes]
) -> dict[str, Any]:
    """Runs once, writes the results to `target`, and returns the JSON row. raises NumbersDiffer after the results are written."""
    from xla_emitters.pipelines.program_inputs import result_specs
    from xla_emitters.runtime.arrays import save_arrays

    arrays, values = program.checked_with_sizes(given)
    # Machine code does not notice that a loop never ends; the reference does.
    first = _reference(options, program, arrays) if not options.no_reference and _has_loop(program) else None
    if isinstance(first, EndlessLoop):
        raise first
    start = time.perf_counter()
    with progress(f"running {program.name}"):
        results = program.run(arrays) if options.platform != "cuda" else program.on("gpu").run(arrays)
    seconds = time.perf_counter() - start
    specs = result_specs(program, results)
    said: list[str] = [f"r{number} = {spec}" for number, spec in enumerate(specs)]
    sizes = ", ".join(f"{name} = {value}" for name, value in values.items())
    said.append(f"ran {_way(options, program)}{f' with {sizes}' if sizes else ''} in {seconds:.3f} s")
    on_host = program.on("gpu").log if options.platform == "cuda" else dict[str, str]()
    said += [f"on the host: {name}: {reason}" for name, reason in on_host.items()]
    if target:
        try:
            save_arrays(stream if target == "-" else target, "r", results, specs)
        except OSError as error:
            raise UsageError(f"cannot write {target}: {error.strerror}", stage="run") from error
        said.append(f"results: {target}")
    row: dict[str, Any] = {"sizes": values, "results": [asdict(spec) for spec in specs], "seconds": seconds}
    if deviations := program.deviations(arrays, results):
        said += [f"mixed precision ({program.options.mixed_precision}): {deviation}" for deviation in deviations]
        row["deviations"] = [asdict(deviation) for deviation in deviations]
    if options.platform == "cuda":
        row["on_host"] = dict(on_host)
    elif options.stage is None:
        row["cpu"] = program.cpu.name
    different = ""
    if not options.no_reference:
        reference = first or _reference(options, program, arrays)
        if isinstance(reference, ExecutionError):
            raise reference
        verdict = reference.compare(results)
        row |= {"ok": verdict.ok, "summary": verdict.summary}
        different = "" if verdict.ok else verdict.summary
        said.append(verdict.summary)
    if not options.json:
        print("\n".join(said), flush=True)
    if different:
        raise NumbersDiffer(f"{program.name}: {different}", stage="run")
    return row


def _has_loop(program: DynamicProgram) -> bool:
    return any(op.name == "hlo.while" for op in program.source.walk())


def _reference(
    options: argparse.Namespace, program: DynamicProgram, arrays: Sequence[Array]
) -> Reference | ExecutionError:
    """The reference's results, or why it has none."""
    from xla_emitters.explore.programs import reference_of

    with progress("evaluating the reference"):
        try:
            return reference_of(program, arrays, most_iterations=max_iterations(options, "run"))
        except ExecutionError as error:
            return error


def _way(options: argparse.Namespace, program: DynamicProgram) -> str:
    """Where and how a program ran. Without a stage the fusions run on the CPU, by LLVM or NumPy, not as the code for a GPU."""
    if options.platform == "cuda":
        return "on the GPU"
    return f"on the CPU by {program.cpu.name}" if options.stage is None else f"on the CPU at stage {program.stage}"
