"""Options that several verbs take, and what the compiler is asked to do by them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.device import DEFAULT_DEVICE
from xla_emitters.errors import UsageError, file_errors

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from xla_emitters.pipelines.options import CompileOptions, Replacement


ANSWER_SECONDS = 60.0
ENGINE = ("jobs", "executor", "resume", "timeout")
"""The options of `add_engine`."""
ENGINES = "dask://HOST:PORT, or mpi"


def add_file(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    parser.add_argument(
        "files" if several else "file",
        metavar="FILE.hlo",
        nargs="+" if several else None,
        help="HLO text, or a program in StableHLO; '-' is standard input",
    )


def add_input(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    add_file(parser, several=several)
    parser.add_argument("--fusion", metavar="NAME", help="use only the fusion instruction of this name")


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        default=DEFAULT_DEVICE,
        metavar="DEVICE",
        help=f"device (h200, a6000 ...), architecture (sm_90), or a file with XLA's description of a GPU; default {DEFAULT_DEVICE}",
    )


def add_compilation(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose the device and the rules by which a fusion gets its emitter."""
    add_target(parser)
    parser.add_argument(
        "--hero-rules",
        choices=("current", "seed"),
        help="how a fusion's emitter is chosen: as in today's XLA (current, default) or as in the seed document",
    )
    parser.add_argument(
        "--triton",
        choices=("rows", "split", "refuse"),
        help="fusions that XLA gives to Triton or cuDNN: one kernel where rows are read again, else split into fusions and dots (rows, "
        "default); always split; or refused",
    )
    parser.add_argument(
        "--tune",
        choices=("xla", "auto", "price"),
        help="how a thread's work is chosen: as XLA does (default of one kernel), by rules (default of several), or by the cost "
        "model's price among candidates (needs ptxas)",
    )
    parser.add_argument(
        "--pipeline",
        "--pass-pipeline",
        metavar="PASSES",
        help="run these passes, or those that a file of this name lists, from stage xla_gpu on: 'builtin.module(xla-cse,...)'; "
        "of a program from stablehlo on, up to fused or host",
    )
    parser.add_argument(
        "--pass-options",
        metavar="PASSES",
        help="set options of passes, wherever they are in the lists: 'disc-base-gemm{multiple=8 least=64},disc-placer{i32-on-host}'",
    )
    parser.add_argument(
        "--replace",
        metavar="STAGE=FILE.mlir",
        action="append",
        help="IR of this stage in place of the kernel with its entry's name: an idea tried by hand, which the passes go on from",
    )
    parser.add_argument(
        "--replace-cpu-alloc",
        action="store_true",
        help="of a program: the host's buffers are allocated by calls of the runtime too, as with BladeDISC's TAO_REPLACE_CPU_ALLOC",
    )
    parser.add_argument(
        "--rng-seed", type=int, metavar="N", default=0, help="of a program: the seed of stablehlo.rng; default 0"
    )
    parser.add_argument(
        "--entry",
        metavar="NAME",
        default="",
        help="of a program with several functions: the one to compile; default @main",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Adds the limits of one answer of `serve` and `lsp`."""
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        default=ANSWER_SECONDS,
        help=f"of one answer, of its own time; default {ANSWER_SECONDS:g}",
    )
    add_max_memory(parser)


def seconds(text: str) -> float:
    """The value of an option that takes a time."""
    return _between(text, 5e-324, "number of seconds above 0")


def _difference(text: str) -> float:
    return _between(text, 0.0, "difference of 0 or more")


def _between(text: str, least: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no {what}")
    return number


def compile_options(options: argparse.Namespace) -> CompileOptions:
    """The `CompileOptions` given by the arguments of `add_input`, `add_compilation` and `add_mixed_precision`."""
    from dataclasses import replace

    return replace(module_options(options), fusion=options.fusion)


def module_options(options: argparse.Namespace) -> CompileOptions:
    """The `CompileOptions` given by `add_compilation`, for the whole module even if one fusion was selected."""
    from xla_emitters.pipelines.options import TRITON, CompileOptions

    # Without a default in the parser it is known whether these were given: `given.ONLY` refuses them for programs.
    return CompileOptions(
        target=options.target,
        hero_rules=options.hero_rules or "current",
        triton=options.triton or TRITON[0],
        pipeline=_pipeline_asked(options),
        pass_options=_pass_options_asked(options),
        entry=options.entry,
        rng_seed=options.rng_seed,
        tune=options.tune or "",
        mixed_precision=getattr(options, "mixed_precision", ""),
        replaced=tuple(map(_replacement, options.replace or ())),
        settings=options.settings,
    )


def _replacement(given: str) -> Replacement:
    """The value of a `--replace`. raises UsageError where it is not STAGE=FILE, or the file cannot be read"""
    from xla_emitters.pipelines.options import Replacement
    from xla_emitters.support.decoding import decoded

    stage, equals, file = given.partition("=")
    if not (stage and equals and file):
        raise UsageError(
            f"--replace {given}: it is not STAGE=FILE.mlir", stage="usage", help="--replace scf=kernel.mlir"
        )
    with file_errors(f"cannot read {file}", "usage"):
        return Replacement(stage, decoded(Path(file).read_bytes(), file, "read"), file)


def _pipeline_asked(options: argparse.Namespace) -> tuple[ModulePass, ...] | None:
    """The passes of `--pipeline`; None where it was not given. raises UsageError, ParseError"""
    if options.pipeline is None:
        return None
    from xla_emitters.tools.pass_list import pipeline_of

    text = options.pipeline
    # A text this long is not a file name; asking the system about it would raise an error.
    if len(text) < 256 and Path(text).is_file():
        from xla_emitters.support.decoding import decoded

        text = decoded(Path(text).read_bytes(), text, "read")
    return pipeline_of(text)


def _pass_options_asked(options: argparse.Namespace) -> tuple[tuple[str, str, Any], ...]:
    """(pass, option, value) of `--pass-options` and `--replace-cpu-alloc`. raises UsageError"""
    words = [options.pass_options] if options.pass_options else []
    if options.replace_cpu_alloc:
        words.append("disc-convert-memory-marker{cpu-too}")
    if not words:
        return ()
    from xla_emitters.tools.pass_list import options_of

    return options_of(",".join(words))


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


def add_keep_going(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="where the whole cannot be compiled, take the fusions that can be, and say at the end what was left out",
    )


def add_max_iterations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-iterations",
        type=int,
        metavar="N",
        help="a loop of the program that runs longer is an error; default 100000",
    )


def add_max_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="an array that does not fit into so much memory, with those that the run still needs, is an error: 2G, 512M; "
        "default: three quarters of what is free",
    )


def add_arrays(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Adds the options that choose the parameters' arrays; see `arrays_source`."""
    parser.add_argument(
        "--inputs",
        metavar="IN.npz",
        action="append" if several else "store",
        help="arrays p0, p1, ...; '-' is standard input; default: drawn from --seed"
        + ("; of a program several, each with its --outputs" if several else ""),
    )
    add_seed(parser)


def add_seed(parser: argparse.ArgumentParser, for_what: str = "") -> None:
    """Adds --seed. for_what: what `help` says before the rest"""
    text = f"{for_what}seed of the random inputs, from 0; default 0"
    parser.add_argument("--seed", type=_seed, metavar="N", default=0, help=text)


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no integer of 0 or more")
    return seed


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a comparison with the NumPy reference."""
    parser.add_argument(
        "--blocks", type=int, default=0, metavar="N", help="run at most N blocks, spread over the grid; 0: all"
    )
    parser.add_argument(
        "--devices", type=int, metavar="N", help="of a module with collectives: all of its N devices; needed above 16"
    )
    parser.add_argument(
        "--atol",
        "--abs_error_bound",
        type=_difference,
        help="allow this absolute difference instead of the error bounds of the ops",
    )
    parser.add_argument("--rtol", "--rel_error_bound", type=_difference, help="allow this relative difference instead")


def add_dumps(parser: argparse.ArgumentParser) -> None:
    """Adds the options that print what the pipeline did."""
    parser.add_argument(
        "--print-ir-after-all",
        "--mlir-print-ir-after-all",
        action="store_true",
        help="print the IR after every pass to stderr",
    )
    parser.add_argument(
        "--print-ir-after-change",
        "--mlir-print-ir-after-change",
        action="store_true",
        help="print the IR after every pass that changed it to stderr",
    )
    parser.add_argument(
        "--print-ir-tree-dir",
        "--xla_dump_to",
        metavar="DIR",
        help="write the IR after every pass to numbered files in DIR",
    )
    parser.add_argument("--time-passes", action="store_true", help="print each pass's time in milliseconds to stderr")
    parser.add_argument("--trace", metavar="OUT.json", help="write the whole trace to one JSON file: see docs/trace.md")
    add_trace_format(parser, "the passes' times (of run also the steps' times)")
    parser.add_argument("--remarks", action="store_true", help="print to stderr what passes declined, and why")


def add_trace_format(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--trace-format",
        choices=("json", "chrome"),
        default="json",
        help=f"chrome: --trace writes {what} for Perfetto and chrome://tracing",
    )


def check_trace_format(options: argparse.Namespace) -> None:
    """raises UsageError for the format of a trace that is not written"""
    if options.trace_format == "chrome" and not (options.trace or getattr(options, "time_passes", False)):
        raise UsageError("--trace-format chrome says how --trace writes", stage="usage", help="--trace OUT.json")


def record_wanted(options: argparse.Namespace, otherwise: str) -> str:
    """How much IR the trace must record: all passes if a dump of the IR was asked for, else `otherwise`."""
    dumps_wanted = (
        options.print_ir_after_all,
        options.print_ir_after_change,
        options.print_ir_tree_dir,
        options.trace and options.trace_format == "json",
    )
    return "passes" if any(dumps_wanted) else otherwise


def prints_anything(options: argparse.Namespace) -> bool:
    """Whether a dump was asked for. The program is then compiled without the cache, so that the dump is of this run."""
    return record_wanted(options, "") != "" or options.time_passes or options.remarks or options.trace


def add_engine(parser: argparse.ArgumentParser, what: str, jobs: str = "") -> None:
    """Adds the options that say where jobs run.

    what  the words for a job: "file"
    jobs  the help of `-j`, if it is not about jobs alone
    """
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help=jobs or f"N {what}s at once, in N processes")
    parser.add_argument("--executor", metavar="ENGINE", help=f"each {what} on a worker of an engine: {ENGINES}")
    parser.add_argument(
        "--resume",
        metavar="RESULTS.jsonl",
        help=f"keep the result of each {what} there, and take those that are there already",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help=f"a {what} that takes longer, without waiting for a busy CPU, has failed",
    )


def check_engine(options: argparse.Namespace) -> None:
    """raises UsageError for options of `add_engine` that do not go together"""
    if options.executor is not None and (options.jobs is not None or options.timeout is not None):
        raise UsageError("--executor has workers of its own: no -j, no --timeout", stage="executor")
    if options.jobs is not None and options.jobs <= 0:
        raise UsageError("-j takes a number above 0", stage="executor")


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Adds the option that PTX needs."""
    parser.add_argument(
        "--launch",
        metavar="GRIDxBLOCK",
        help="of PTX or LLVM IR: blocks and threads, GX[,GY,GZ]xBX[,BY,BZ][+SHARED][/CX[,CY,CZ]], such as 24576x128; /2: clusters",
    )
    parser.add_argument(
        "--tensor-map",
        metavar="MAP",
        action="append",
        default=[],
        help="of a file of PTX: parameter M is a tensor map, pM[=pN][:TYPE[DIMS]],box=AxB[,swizzle=128]...; docs/ptx.md",
    )


def is_ptx(name: str) -> bool:
    """Whether a file argument is PTX or LLVM IR, by its ending."""
    return Path(name).suffix in (".ptx", ".ll")


COMMS = ("local", "mpi", "nccl")
"""How the devices of a run exchange arrays: in one process, one in each process over MPI, one GPU in each over NCCL."""
