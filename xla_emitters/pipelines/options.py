"""What a compilation can be told, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, cast

from xla_emitters.device import DEFAULT_DEVICE, Device, device
from xla_emitters.errors import UsageError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

RECORDS = ("none", "stages", "passes")
TRITON = ("split", "refuse")
PRECISIONS = ("f16", "bf16")
TUNE = ("xla", "price")
TOOL_STAGES = ("llvm", "ptx", "sass")
"""The stages after the last pass, which external tools make of all kernels together."""


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
    heat: str
    mixed_precision: str
    tune: str
    splits: tuple[str, ...] | None


@dataclass(frozen=True)
class CompileOptions:
    """How a module is compiled.

    target      a device ("h200"), an architecture ("sm_90"), or a file with XLA's description of a GPU
    fusion      only the fusion instruction of this name; None: all that ENTRY computes
    hero_rules  by which an emitter is chosen: "current" as today's XLA, "seed" as the seed document
    stage       where to stop; before "ptx" the kernels' PTX is ""; "sass" is one further
    record      what traces keep of the IR: "none", "stages" (the boundaries), or "passes" (all)
    verify      run the IR verifier after every pass
    triton      fusions that XLA gives to Triton or cuDNN: "split" into fusions that are compiled here and dots, or "refuse" them
    pipeline    passes to run from "xla_gpu" on instead of the list KERNEL; they should end in the LLVM dialect, which makes PTX
    line_info   PTX with `.loc`, and in traces which op and HLO instruction each line of PTX and SASS is from; the code is the same
    constants   of a program with unknown sizes: the .npz file that its constants are written into, and read from when a run needs them;
                "": they stay in the program
    jobs        processes that compile the kernels of a module; what they make is the same whatever their number
    heat        of a program with unknown sizes: when fusions get kernels for sizes that come again, "on", "off", or limits as in
                docs/programs.md, "calls=20,kernels=8"; "": what XLA_EMITTERS_HEAT says, which is off where it is not set
    mixed_precision   of a program with unknown sizes: "f16" or "bf16", the type in which products and convolutions of f32 are computed,
                with sums in f32; "": they stay as they are
    tune        how the work of a thread is chosen: "xla" as XLA does, "price" by the cost model among candidates (docs/cost_model.md)
    splits      "NAME=COUNT": the reductions of the fusion of that name are split in so many parts, a kernel for the parts and one
                for their results, though one block a result could do it. None: with `tune="price"` those that are expected to be
                faster, else none
    raises      UsageError for a record, a way with Triton's fusions, or a way to choose that there is not; for a price with a pipeline
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
    heat: str = ""
    mixed_precision: str = ""
    tune: str = TUNE[0]
    splits: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.record not in RECORDS:
            raise UsageError(f"unknown record '{self.record}'", help=f"one of: {', '.join(RECORDS)}")
        if self.triton not in TRITON:
            raise UsageError(f"unknown way with Triton's fusions '{self.triton}'", help=f"one of: {', '.join(TRITON)}")
        if self.tune not in TUNE:
            raise UsageError(f"unknown way to choose a kernel '{self.tune}'", help=f"one of: {', '.join(TUNE)}")
        if self.tune != TUNE[0] and self.pipeline is not None:
            raise UsageError(
                "kernels are priced as the list of passes makes them, not a pipeline",
                help="leave out --tune, or tune='xla'",
            )
        if self.jobs < 1:
            raise UsageError(f"{self.jobs} processes cannot compile anything", help="jobs=1 or more")
        if self.mixed_precision not in ("", *PRECISIONS):
            raise UsageError(f"no mixed precision in '{self.mixed_precision}'", help=f"one of: {', '.join(PRECISIONS)}")

    def as_keywords(self) -> CompileKeywords:
        """The fields by name, as `compile` takes them."""
        return cast(CompileKeywords, {each.name: getattr(self, each.name) for each in fields(self)})

    @cached_property
    def device(self) -> Device:
        """The GPU that `target` names. raises what `device()` raises."""
        return device(self.target)
