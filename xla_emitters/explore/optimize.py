"""A module as the real XLA:GPU optimizes it for a device, without a GPU: HLO before optimization or StableHLO in, HLO text out.

    ENTRY main { ... reduce ... subtract ... }    ->    HloModule jit_softmax, is_scheduled=true, ...
                                                        ENTRY %main { ... fusion(%x), kind=kInput, calls=%fused_reduce ... }

The text is what `--xla_dump_to` writes as `*gpu_after_optimizations.txt`: scheduled, with layouts, backend configs and aliasing, and
in addition with all elements of constants and, for several partitions, the shardings of parameters and results that XLA's text lacks.
XLA runs in a child process, because a failed check aborts it; the check becomes the error.
Nothing is timed: autotuning is off, so matrix products have default tilings. Triton cannot tile some of them, which XLA's autotuner
would find out on a GPU; here XLA fails, and is asked again without products by Triton. Source: XLA's DebugOptions.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

from xla_emitters import errors
from xla_emitters.device import DEFAULT_DEVICE, device
from xla_emitters.errors import DataError, ParseError, Place, ToolError, Unsupported, UsageError, XlaEmittersError
from xla_emitters.explore.real_xla import Flag, dumped, toolkit_of
from xla_emitters.settings import Toolchain, child_environment, read_settings
from xla_emitters.support.processes import run_tool
from xla_emitters.support.source import Source
from xla_emitters.trace import Remark

TIMEOUT_SECONDS = 600.0

# The child gets this process's search path. XLA's own log would hide the important line; level 2 leaves errors and failed checks.
_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from xla_emitters.explore.real_xla import serve; serve()"


_TRITON_GEMM = "xla_gpu_enable_triton_gemm"
FAILED = ("XLA:GPU: ", "XLA aborted: ", "XLA crashed ")
"""How the message of an error begins that is XLA's own failure on a module that it could read."""


def optimize(
    text: str,
    target: str = DEFAULT_DEVICE,
    flags: Mapping[str, Flag] | None = None,
    *,
    devices: int | None = None,
    name: str = "<hlo>",
    remark: Callable[[Remark], object] = lambda remark: None,
    toolchain: Toolchain | None = None,
) -> str:
    """The module after XLA's HLO passes.

    text    HLO before optimization, or StableHLO with static sizes
    devices  that XLA partitions it for, for each replica; None: as many partitions as the text says
    target  as in `compile`: a device, an architecture, or a file with XLA's description of a GPU
    flags   XLA's DebugOptions: {"xla_gpu_enable_triton_gemm": False}; unless this one is given, it is tried where XLA fails without it
    name    where the text is from, for messages
    remark  gets a remark if XLA was asked again
    toolchain  its ptxas is the one that XLA calls; default: what the environment says
    raises  ParseError with the place, Unsupported for an unknown size, DataError with XLA's message or its check that failed,
            UsageError for an unknown flag; ToolError without the extra [xla] or [ptxas]
    """
    device(target)
    if "xla_dump_to" in (flags or {}):
        raise UsageError("xla_dump_to is taken: the optimized module is the answer", stage="xla")
    if found := re.search(r"tensor<(?:\d+x)*\?", text):
        raise Unsupported(
            "a size is unknown; XLA:GPU optimizes static sizes",
            stage="xla",
            place=Source(text, name).place(*found.span()),
            help="compile and run take unknown sizes; or export the function at known ones",
        )
    if re.search(r"^HloModule .*\bis_scheduled=true", text, re.MULTILINE):
        raise DataError(f"{name} is scheduled: XLA has optimized it before", stage="xla", help="compile it as it is")
    toolchain = toolchain or read_settings().toolchain
    given, (replicas, partitions) = dict(flags or {}), counts_of(text)
    counts = replicas, partitions if devices is None else devices
    if min(counts) < 1:
        raise UsageError(f"{min(counts)} devices are none", stage="xla")
    try:
        return _optimized(text, target, given, name, counts, toolchain)
    except DataError as error:
        if _TRITON_GEMM in given or not error.message.startswith(FAILED):
            raise
        try:
            found = _optimized(text, target, {**given, _TRITON_GEMM: False}, name, counts, toolchain)
        except DataError:
            error.help = error.help or f"{_TRITON_GEMM}=false, which often helps, was tried too"
            raise error from None
        remark(
            Remark("xla", f"XLA was asked again with {_TRITON_GEMM}=false, since it failed without: {error.message}")
        )
        return found


def counts_of(text: str) -> tuple[int, int]:
    """How many replicas and partitions HLO text or StableHLO says it is for: where it says one of each, as many as its largest mesh has.

    >>> counts_of("HloModule m, num_partitions=8"), counts_of("module @m attributes {mhlo.num_replicas = 4 : i32} {")
    ((1, 8), (4, 1))
    >>> counts_of('sdy.mesh @mesh = <["x"=2, "y"=4]>')
    (1, 8)
    """
    header = re.search(r"^(?:HloModule|module)\b.*", text, re.MULTILINE)
    found = [
        re.search(rf"\b{name} ?= ?(\d+)", header[0]) if header else None
        for name in ("(?:num_replicas|replica_count)", "num_partitions")
    ]
    replicas, partitions = (int(count[1]) if count else 1 for count in found)
    if replicas * partitions == 1:
        meshes = re.findall(r"^\s*sdy\.mesh @[^\n]*?<\[([^\]]*)\]", text, re.MULTILINE)
        partitions = max((prod(map(int, re.findall(r"=\s*(\d+)", axes))) for axes in meshes), default=1)
    return replicas, partitions


def _optimized(
    text: str, target: str, flags: Mapping[str, Flag], name: str, counts: tuple[int, int], toolchain: Toolchain
) -> str:
    with tempfile.TemporaryDirectory(prefix="xla-emitters-") as directory:
        request = {
            "work": "optimize",
            "text": text,
            "target": target,
            "flags": dict(flags),
            "replicas": counts[0],
            "partitions": counts[1],
            "directory": directory,
        }
        try:
            ask_xla(request, text, name, toolchain)
        except (DataError, ToolError):
            # If the text was written, the passes are done: only making code failed.
            if dumped(Path(directory)) is None:
                raise
        optimized = dumped(Path(directory))
        assert optimized is not None, "XLA compiled a module and dumped none"
        return optimized


def ask_xla(request: Mapping[str, Any], text: str, name: str, toolchain: Toolchain) -> None:
    """Runs a request in a child process, in the format of `xla.serve`; XLA's dumps are in the directory that the request names.

    text, name  what XLA parses, and where it is from, for messages
    raises      like `optimize`
    """
    cuda = str(toolkit_of(toolchain))
    command, asked = [sys.executable, "-c", _CHILD, *sys.path], json.dumps({**request, "cuda": cuda}).encode()
    # XLA writes PTX for the newest toolkit that it finds, which an older ptxas refuses: it must find the ptxas that will assemble it.
    environment = child_environment(TF_CPP_MIN_LOG_LEVEL="2", CUDA_HOME=cuda)
    try:
        answer = json.loads(run_tool(command, asked, TIMEOUT_SECONDS, environment).result)
    except ToolError as error:
        raise _crash(error) from error
    if "error" in answer:
        raise _error(answer, text, name)


def parse_flag(words: str) -> tuple[str, Flag]:
    """A flag in the format of XLA_FLAGS: "xla_gpu_enable_triton_gemm=false", with or without dashes. raises UsageError without a value.

    >>> parse_flag("--xla_gpu_enable_triton_gemm=false")
    ('xla_gpu_enable_triton_gemm', False)
    """
    name, equals, value = words.lstrip("-").partition("=")
    if not name or not equals:
        raise UsageError(f"'{words}' is not NAME=VALUE", stage="usage", help="--flag xla_gpu_enable_triton_gemm=false")
    return name, {"true": True, "false": False}.get(value.lower(), value)


def _error(answer: Mapping[str, str], text: str, name: str) -> XlaEmittersError:
    """The child's error as an exception, with the place in the text if XLA named one."""
    message, kind = answer["message"], getattr(errors, answer["error"])
    if found := re.search(r"(?:was parsing |-:)(\d+):(\d+): error: ([^\n]*)", message):
        line, column = int(found[1]), int(found[2])
        source = dict(enumerate(text.splitlines(), 1)).get(line, "")
        return ParseError(f"XLA: {found[3]}", stage="xla", place=Place(name, line, column, column + 1, source))
    first, *rest = message.splitlines()
    return kind(first, stage="xla", details=tuple(line for line in rest if line.strip()), help=answer["help"])


def _crash(error: ToolError) -> XlaEmittersError:
    """The error for a child that a failed check of XLA's, or another signal, ended; `error` itself if it ended otherwise."""
    said = [error.message, *error.details]
    checks = [re.sub(r"^F\d{4} \S+ +\d+ ", "", line) for line in said if re.match(r"F\d{4} ", line)]
    if checks:
        return DataError(
            f"XLA aborted: {checks[0]}", stage="xla", help="this is XLA's own check; try other --flag values"
        )
    if signal := re.search(r"\(signal (\d+)\)", error.message):
        return DataError(f"XLA crashed on this module (signal {signal[1]})", stage="xla")
    return error
