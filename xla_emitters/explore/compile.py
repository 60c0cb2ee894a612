"""`compile` as users call it: for files and text (`pipelines.compiler`), and for what JAX makes of a function.

compile("softmax.hlo")                      the module in the file
compile("layer.mlir")                       StableHLO: a program for any sizes that runs on the CPU
compile(jax.jit(softmax).lower(x))          first optimized by the real XLA; takes and returns JAX's trees
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.pipelines.kept_programs import look_up, read_text
from xla_emitters.pipelines.options import TOOL_STAGES, CompileKeywords, CompileOptions
from xla_emitters.program import Compiled, Program
from xla_emitters.text.stablehlo import is_kernel_ir, is_stablehlo, module_for_devices

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.explore.real_xla import Flag

_COMPILER = "xla_emitters.pipelines.compiler"


def compile(
    source: str | Path | bytes | bytearray | Any,
    *,
    cache: bool = True,
    flags: Mapping[str, Flag] | None = None,
    **given: Unpack[CompileKeywords],
) -> Program:
    """Compiles a module.

    source   path of a file, text (anything with a newline or a brace) of HLO, StableHLO or a kernel's IR at some stage, bytes of a binary
             form (a blob of jax.export, a portable artifact or bytecode of StableHLO, an HLO proto), the path of a file of
             torch.export.save (extra [torch]), or JAX's `Traced`, `Lowered`, `Exported` or, for a GPU, `Compiled`
    cache    whether a cached program may be returned
    flags    XLA's DebugOptions, if XLA is to optimize the module first
    given    the fields of `CompileOptions`: target, fusion, hero_rules, stage, record, verify
    returns  a `Program`; for a value of JAX a `JaxProgram`, for PyTorch's file a `TorchProgram`: subclasses
    raises   what `pipelines.compiler.compile` and `from_jax` raise; UsageError for flags if XLA is not used
    """
    if isinstance(source, bytearray):  # as `Exported.serialize` returns it
        source = bytes(source)
    if isinstance(source, str | Path) and is_torch_archive(source):
        from xla_emitters.explore.from_torch.torch_program import from_torch, loaded

        return from_torch(loaded(source), **given)
    # Imports that only JAX's values, only programs, or only a compilation need are in the branches.
    if not isinstance(source, str | Path | bytes):
        from xla_emitters.explore.from_jax.jax_program import compile_stage, is_stage

        if is_stage(source):
            return compile_stage(source, cache=cache, flags=flags, **given)
    if flags:
        raise UsageError("flags are for XLA, which does not see this module", help="xe.optimize(text, target, flags)")
    text, name = read_text(source)
    if (module := module_for_devices(text, name, given.get("entry", ""))) is not None:
        source = text = module
    if is_stablehlo(text):
        return compile_text(text, name, CompileOptions(**given))
    options = CompileOptions(**given)
    if (found := look_up(source, options, cache=cache)).program is not None:
        return found.program
    if options.stage in TOOL_STAGES and _COMPILER not in sys.modules:
        # LLVM and the compiler take long to load: one beside the other.
        from xla_emitters.lowering.toolchain.tools import start_llvmlite

        start_llvmlite(options.toolchain)
    from xla_emitters.pipelines import compiler

    return compiler.compile(source, cache=cache, **given)


def is_torch_archive(source: object) -> bool:
    """Whether `source` is the path of a file of `torch.export.save`: a ZIP archive in which a member `archive_format` holds `pt2`.

    Texts, with a newline, and files that cannot be read are none.
    """
    if not isinstance(source, str | Path) or "\n" in str(source):
        return False
    try:
        with open(source, "rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return False
            from zipfile import BadZipFile, ZipFile  # imported here: few files are archives

            try:
                with ZipFile(file) as archive:
                    formats = [name for name in archive.namelist() if name.endswith("/archive_format")]
                    return any(archive.read(name) == b"pt2" for name in formats)
            except BadZipFile:
                return False
    except (OSError, ValueError):
        return False


def compile_text(text: str, name: str, options: CompileOptions | None = None) -> Program:
    """A program from StableHLO text, or from a kernel's IR. raises ParseError, VerifyError, Unsupported with the place in the text."""
    if is_kernel_ir(text):
        from xla_emitters.pipelines.kernel_ir import compile_kernel_ir

        return compile_kernel_ir(text, name, options or CompileOptions())
    from xla_emitters.pipelines.programs import compile_program
    from xla_emitters.text.stablehlo import parse_stablehlo

    return compile_program(parse_stablehlo(text, name, options.entry if options else ""), options)


def examined(
    source: str | Path | bytes | bytearray | Program | ModuleOp, given: CompileKeywords
) -> tuple[Program | ModuleOp, CompileKeywords]:
    """What `check`, `bisect` and others compile again: a program in StableHLO, not lowered yet, or the module of HLO; and with what.

    source   a path, text or bytes of HLO or StableHLO, a program, or what `read_module` made of HLO
    given    fields of `CompileOptions`; a program of HLO adds its target and its fusion
    """
    from xla_emitters.pipelines.compiler import read_module, source_of

    if isinstance(source, bytearray):
        source = bytes(source)
    if isinstance(source, str | Path | bytes):
        text, name = read_text(source)
        if is_kernel_ir(text):
            raise Unsupported(
                f"{name} is a kernel's IR: nothing says what it should compute",
                stage="compile",
                help=f"a module with it: MODULE.hlo --replace STAGE={name}",
            )
        if (module := module_for_devices(text, name, given.get("entry", ""))) is not None:
            return read_module(module), given
        if is_stablehlo(text):
            return compile_text(text, name, replace(CompileOptions(**given), stage="stablehlo")), given
        return read_module(source), given
    if isinstance(source, Program) and isinstance(source.compilation, Compiled):
        return source_of(source), {"target": source.target, "fusion": source.fusion, **given}
    return source, given
