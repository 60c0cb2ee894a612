"""The options of a compilation, as one value."""

from __future__ import annotations

from dataclasses import field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, cast

from xla_emitters.device import DEFAULT_DEVICE, Device, device
from xla_emitters.errors import UsageError
from xla_emitters.settings import Settings, Toolchain, read_settings
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

RECORDS = ("none", "stages", "passes", "rewrites")
TRITON = ("rows", "split", "refuse")
PRECISIONS = ("f16", "bf16")
TUNE = ("xla", "auto", "price")
TOOL_STAGES = ("llvm", "ptx", "sass")
"""The stages after the last pass; external tools make them of all kernels together."""


class CompileKeywords(TypedDict, total=False):
    """The fields of `CompileOptions` as keyword arguments."""

    target: str
    fusion: str | None
    hero_rules: str
    stage: str
    record: str
    verify: bool
    triton: str
    pipeline: tuple[ModulePass, ...] | None
    line_info: bool
    constants: str
    jobs: int
    mixed_precision: str
    tune: str
    splits: tuple[str, ...] | None
    cpu_features: str
    pass_options: tuple[tuple[str, str, Any], ...]
    entry: str
    rng_seed: int
    settings: Settings
    replaced: tuple[Replacement, ...]


@dataclass(frozen=True)
class Replacement:
    """IR that somebody wrote in place of a kernel, the one with its entry's name.

    stage  where it takes the kernel's place: "xla_gpu" to "llvm-dialect"
    text   IR as that stage is printed
    name   of the text in messages, such as its file
    """

    stage: str
    text: str = field(repr=False)
    name: str = "<edited>"


@dataclass(frozen=True)
class CompileOptions:
    """How a module is compiled.

    target      a device ("h200"), an architecture ("sm_90"), or a file with XLA's description of a GPU
    fusion      compile only the fusion instruction of this name; None: everything that ENTRY computes
    hero_rules  the rules that choose an emitter: "current" like today's XLA, "seed" like the seed document
    stage       where to stop; before "ptx" the kernels' PTX is ""; "sass" is one further
    record      the IR that traces record: "none", "stages" (the boundaries), "passes" (all), or "rewrites" (and after each
                rewrite that a pass makes, which is slow)
    verify      run the IR verifier after every pass
    triton      fusions that XLA gives to Triton or cuDNN: "rows" makes one kernel of those that need a row again after it was reduced, and
                of chains of fusions that do (docs/decisions/26), and splits the others into fusions that are compiled here and dots;
                "split" splits all of them; "refuse" refuses them
    pipeline    passes to run from "xla_gpu" on instead of the list KERNEL; they should end in the LLVM dialect, which makes PTX. For a
                program with unknown sizes: from "stablehlo" on, instead of the lists up to "fused", or up to "host" (`program_rows`)
    pass_options   (pass, option, value): an option of a pass of the lists, wherever it is in them
    rng_seed    for a program with unknown sizes: the seed of `stablehlo.rng`, which has no key of its own
    entry       of StableHLO: the function to compile; "": @main, @tao_main, or the only public function that no other calls
    line_info   emit PTX with `.loc`, and record in traces the op and HLO instruction of each line of PTX and SASS; the code is the same
    constants   for a program with unknown sizes: the .npz file to which its constants are written, and from which a run reads them;
                "": they stay in the program
    jobs        processes that compile the kernels of a module; the result does not depend on their number
    mixed_precision   for a program with unknown sizes: "f16" or "bf16", the type in which products and convolutions of f32 are computed,
                with sums in f32; "": they are computed in f32
    tune        how the work per thread is chosen: "xla" like XLA, "auto" by rules (`kernel_rules`), "price" by the cost model among
                candidates (docs/cost_model.md); "": "auto" for a module of several kernels, else "xla"
    splits      "NAME=COUNT": splits the reductions of the fusion NAME into COUNT parts, with one kernel for the parts and one
                for their results, even where one block per result could do it. None: with `tune="price"` those that are expected to be
                faster, else none
    cpu_features  for a program with unknown sizes: the CPU that machine code is made for, see `lowering/cpu/cpu_target`: "native",
    "x86-64-v3",
                "znver4,-avx512bf16"; "": that of the settings
    replaced    kernels of a module that are IR of somebody's from a stage on; such a program is not kept in the cache
    settings    the tools, how a program is computed on the CPU, and the cache; default: what the environment says
    raises      UsageError for an unknown value of record, triton or tune; for tune="price" together with a pipeline
    """

    target: str = DEFAULT_DEVICE
    fusion: str | None = None
    hero_rules: str = "current"
    stage: str = "ptx"
    record: str = "stages"
    verify: bool = False
    triton: str = TRITON[0]
    pipeline: tuple[ModulePass, ...] | None = None
    line_info: bool = False
    constants: str = ""
    jobs: int = field(default=1, repr=False)
    mixed_precision: str = ""
    tune: str = ""
    splits: tuple[str, ...] | None = None
    cpu_features: str = ""
    pass_options: tuple[tuple[str, str, Any], ...] = ()
    entry: str = ""
    rng_seed: int = 0
    replaced: tuple[Replacement, ...] = ()
    settings: Settings = field(default_factory=read_settings, repr=False)

    def __post_init__(self) -> None:
        if self.record not in RECORDS:
            raise UsageError(f"unknown record '{self.record}'", help=f"one of: {', '.join(RECORDS)}")
        if self.triton not in TRITON:
            raise UsageError(f"unknown way with Triton's fusions '{self.triton}'", help=f"one of: {', '.join(TRITON)}")
        if self.tune not in ("", *TUNE):
            raise UsageError(f"unknown way to choose a kernel '{self.tune}'", help=f"one of: {', '.join(TUNE)}")
        if self.tune == "price" and self.pipeline is not None:
            raise UsageError(
                "kernels are priced as the list of passes makes them, not a pipeline",
                help="leave out --tune, or tune='xla'",
            )
        if self.jobs < 1:
            raise UsageError(f"{self.jobs} processes cannot compile anything", help="jobs=1 or more")
        if not -(1 << 63) <= self.rng_seed < 1 << 64:
            raise UsageError(f"the seed {self.rng_seed} has more than 64 bits", help="rng_seed=0 to 2^64 - 1")
        if self.mixed_precision not in ("", *PRECISIONS):
            raise UsageError(f"no mixed precision in '{self.mixed_precision}'", help=f"one of: {', '.join(PRECISIONS)}")

    def as_keywords(self) -> CompileKeywords:
        """The fields by name, as `compile` takes them."""
        return cast(CompileKeywords, {each.name: getattr(self, each.name) for each in fields(self)})

    @property
    def toolchain(self) -> Toolchain:
        """What makes PTX and machine code."""
        return self.settings.toolchain

    @property
    def asked_cpu(self) -> str:
        """The CPU that a program's machine code is made for."""
        return self.cpu_features or self.settings.cpu_features

    @cached_property
    def device(self) -> Device:
        """The GPU that `target` names. raises what `device()` raises."""
        return device(self.target)
