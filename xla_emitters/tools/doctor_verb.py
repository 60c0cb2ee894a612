"""`xla-emitters doctor`: what was found, what is missing, and the command that installs it.

    ok       way to PTX      llvmlite: llvmlite is here
    ok       mlir-opt        22.1.8  /usr/bin/mlir-opt-22
    absent   llc             llc was not found (for --keep-intermediates)
             -> apt-get install mlir-22-tools llvm-22

"way to PTX" is the toolchain that `XLA_EMITTERS_TOOLCHAIN` or `--toolchain` names, else the one that is found, with the reason. The
tools of that toolchain are needed; if there is none, the tools of the default one are listed as missing.
Exit code 0 when fusions can be compiled to PTX here, 4 when something needed for that is missing.
"""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module

from xla_emitters.errors import ToolError
from xla_emitters.settings import VARIABLES, Settings, Toolchain
from xla_emitters.support.extras import install_command
from xla_emitters.tools.input_output import counted

# Distribution -> (extra that installs it, its purpose). A distribution without an extra is always needed.
PACKAGES = {
    "xdsl": ("", "the IR"),
    "numpy": ("", "the reference and the CPU executor"),
    "ml_dtypes": ("", "narrow float types"),
    "platformdirs": ("", "where the cache is"),
    "pygments": ("", "colours"),
    "islpy": ("prove", "proofs about indexing maps"),
    "marimo": ("notebook", "the notebooks"),
    "jax": ("jax", "JAX functions in"),
    "torch": ("torch", "PyTorch modules in"),
    "torchax": ("torch", "PyTorch modules in"),
    "jaxlib": ("xla", "the real XLA: optimize, and comparing with it"),
    "jax-cuda13-pjrt": ("xla", "the real XLA: optimize, and comparing with it"),
}
PURPOSES = {
    "llvmlite": "PTX, and machine code of the CPU",
    "mlir-opt": "PTX without llvmlite",
    "libdevice": "PTX of kernels that call mathematical functions",
    "mlir-translate": "--keep-intermediates",
    "llvm-link": "--keep-intermediates",
    "opt": "--keep-intermediates",
    "llc": "--keep-intermediates",
    "ptxas": "assembling PTX: registers and spills",
    "nvdisasm": "counting machine instructions",
}


@dataclass(frozen=True)
class ReportLine:
    """One line of the report.

    state   "ok", "missing" (compiling to PTX needs it), or "absent" (only `purpose` needs it)
    found   version and path, or why it was not found
    remedy  the command that installs it; "" when there is nothing to do
    """

    topic: str
    name: str
    state: str
    found: str
    purpose: str = ""
    remedy: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    settings: Settings = options.settings
    about = tools(settings.toolchain), cpu(settings), gpu(), cache(settings), plugins(), environment(settings)
    findings = [*python(), *packages(), *(finding for each in about for finding in each)]
    is_ready = all(finding.state != "missing" for finding in findings)
    if options.json:
        print(json.dumps({"ready": is_ready, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print(report(findings))
        print("ready: fusions can be compiled to PTX here" if is_ready else "not ready: install what is missing")
    return 0 if is_ready else ToolError.exit_code


def report(findings: list[ReportLine]) -> str:
    """The findings by topic, each with its remedy below it."""
    lines, topic = list[str](), ""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        if finding.topic != topic:
            topic = finding.topic
            lines.append(topic)
        purpose = f" (for {finding.purpose})" if finding.purpose and finding.state != "ok" else ""
        lines.append(f"  {finding.state:<7}  {finding.name:<{width}}  {finding.found}{purpose}".rstrip())
        if finding.remedy:
            lines.append(f"  {'':<7}  {'':<{width}}  -> {finding.remedy}")
    return "\n".join(lines)


def python() -> Iterator[ReportLine]:
    yield ReportLine("python", "python", "ok", f"{platform.python_version()} on {platform.platform()}")


def packages() -> Iterator[ReportLine]:
    from importlib.metadata import PackageNotFoundError, version

    for name, (extra, purpose) in PACKAGES.items():
        try:
            yield ReportLine("packages", name, "ok", version(name), purpose)
        except PackageNotFoundError:
            remedy = install_command(extras=extra) if extra else install_command(name)
            yield ReportLine("packages", name, "absent" if extra else "missing", "not installed", purpose, remedy)


def plugins() -> Iterator[ReportLine]:
    from xla_emitters.plugins import failed, registered

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each is a row here
        import_module("xla_emitters.functions")  # it loads the functions that plugins add
        broken = failed()
    for plugin in registered():
        yield ReportLine("plugins", plugin.name, "ok", f"{plugin.kind}  {plugin.file or 'in no file'}")
    for name, error in broken:
        place = f"{error.place.file}:{error.place.line}: " if error.place else ""
        yield ReportLine(
            "plugins", name, "absent", f"{place}{error.message}", "what it adds", error.help or "mend or uninstall it"
        )


def tools(toolchain: Toolchain) -> Iterator[ReportLine]:
    from xla_emitters.lowering.toolchain.tools import candidates, choose_way, find_tools, tools_of

    purpose = "PTX"
    try:
        choice = choose_way(toolchain)
        needed = (*tools_of(choice.way), "libdevice")
        yield ReportLine("tools", "way to PTX", "ok", f"{choice.way}: {choice.reason}", purpose)
    except ToolError as error:
        needed = (*tools_of(candidates(toolchain)[0]), "libdevice")
        yield ReportLine("tools", "way to PTX", "absent", f"none: {error.message}", purpose)
    for name, tool in find_tools(toolchain).items():
        try:
            if isinstance(tool, ToolError):
                raise tool
            yield ReportLine("tools", name, "ok", f"{tool.version}  {tool.path}".strip(), PURPOSES[name])
        except ToolError as error:
            state = "missing" if name in needed else "absent"
            yield ReportLine("tools", name, state, error.message, PURPOSES[name], error.help or "")


def cpu(settings: Settings) -> Iterator[ReportLine]:
    from xla_emitters.lowering.cpu.cpu_target import cpu_target, is_installed
    from xla_emitters.lowering.toolchain.tools import LLVMLITE_HELP
    from xla_emitters.pipelines.cpu_lowering import NUMPY, requested_backend
    from xla_emitters.runtime.cpu.blas import kernels, library

    without = not is_installed()
    purpose = "fast programs on the CPU; NumPy computes them without it"
    if (asked := requested_backend(settings)) == NUMPY or without:
        remedy = "" if asked == NUMPY else LLVMLITE_HELP
        state = "ok" if asked == NUMPY else "absent"
        yield ReportLine(
            "cpu", "programs", state, "numpy: " + ("asked for" if asked == NUMPY else "no llvmlite"), purpose, remedy
        )
        return
    yield ReportLine("cpu", "programs", "ok", f"llvm: code for {cpu_target(settings.cpu_features).name}", purpose)
    purpose = "products and convolutions of programs on the CPU; NumPy computes them without it"
    if library() is None:
        yield ReportLine(
            "cpu", "products", "absent", "no scipy-openblas32", purpose, install_command("scipy-openblas32")
        )
    else:
        yield ReportLine("cpu", "products", "ok", f"OpenBLAS of scipy-openblas32, for {kernels()}", purpose)


def gpu() -> Iterator[ReportLine]:
    from xla_emitters.runtime.cuda.cupy_launcher import describe_gpu

    purpose = "running on a GPU; everything else needs none"
    try:
        yield ReportLine("gpu", "cuda", "ok", describe_gpu(), purpose)
    except ToolError as error:
        yield ReportLine("gpu", "cuda", "absent", error.message, purpose, error.help or "")


def cache(settings: Settings) -> Iterator[ReportLine]:
    from xla_emitters.runtime.cache import PROGRAMS, Cache, cache_directory

    if settings.no_cache:
        yield ReportLine("cache", "programs", "ok", "disabled by XLA_EMITTERS_DISABLE_CACHE")
        return
    entries, size = Cache.of(PROGRAMS, settings).size()
    yield ReportLine(
        "cache",
        "programs",
        "ok",
        f"{counted(entries, 'program')}, {size / 2**20:.1f} MiB in {cache_directory(settings)}",
    )


def environment(settings: Settings) -> Iterator[ReportLine]:
    given = dict(settings.given)
    for variable in VARIABLES:
        value = given.get(variable.name)
        yield ReportLine("environment", variable.name, "ok", "not set" if value is None else value, variable.help)
