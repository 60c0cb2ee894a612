"""The fusions of a program that may get kernels for fixed sizes: counted by `Heat`, compiled by `HotCompiler`.

    hot = HotFusions(fused, "cpu", options, load_for_cpu)       the module at the stage `fused`
    context.heat = hot.heat(HeatLimits())

A kernel is kept on disk under a key of everything it depends on: the fusion's text, the sizes, the platform, the device, this package's
files, plugins, the tools or the CPU. When a program is loaded, a background thread looks up once which kernels of its fusions are on disk;
at the sizes of such a kernel, a fusion gets it without having to become hot first.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from xla_emitters import plugins
from xla_emitters.buffers.fusion_alone import Interface, fusion_alone
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import ToolError
from xla_emitters.lowering.host_code import LoadedCode
from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.lowering.host_steps import ENTRY
from xla_emitters.lowering.ways import tools_fingerprint
from xla_emitters.pipelines.kept_programs import own_fingerprint
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.program_cache import key_of
from xla_emitters.runtime.ral.cupy_hot_kernels import CupyHotKernels, CupyMemory
from xla_emitters.runtime.ral.heat import Heat, HeatLimits
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.hot_compiler import HotCompiler, kernel_cache
from xla_emitters.runtime.ral.hot_kernels import planned_launches
from xla_emitters.runtime.ral.hot_spots import HotKernel, Spot
from xla_emitters.runtime.ral.simt_kernels import SimtKernels

ALIGNMENT = 16
"""Alignment of a GPU kernel's arguments in bytes. For the CPU, `HostKernels` copies arguments that are not aligned."""
Loader: TypeAlias = Callable[[Mapping[str, Any]], HotKernel]
FUSION_LETTERS = SIZES_LETTERS = 32
"""Characters of a key: for the fusion, and for the sizes."""


class HotFusions:
    """The fusions of one program; see the file's head.

    fused     the module at the stage `fused`; it is not changed here and must not change later
    platform  what kernels are compiled for: "cpu", "simt" (the CPU executor), "gpu"
    load      makes a kernel from a compiler's answer: `load_for_cpu` ...
    kernel    kernel name -> text of the kernel for all sizes; used to count the work of recorded launches
    """

    def __init__(
        self,
        fused: ModuleOp,
        platform: str,
        options: CompileOptions,
        load: Loader,
        kernel: Callable[[str], str] | None = None,
    ) -> None:
        self.kernel = kernel
        self.load = load
        self.platform = platform
        self.options = options
        self._fusions = {
            op.fusion_name.data: op for op in fused.walk() if isinstance(op, FusionOp) and op.fusion_name is not None
        }
        self._texts = dict[str, str]()
        self._known = set[tuple[str, str]]()

    def heat(self, limits: HeatLimits) -> Heat:
        """The counter of the fusions of one loaded program."""
        compiler = HotCompiler.of_process()
        heat = Heat(limits, self.ask, self.is_known, is_timed=self.platform == "cpu")
        compiler.do(lambda: self._look_up(heat))
        return heat

    def ask(self, heat: Heat, spot: Spot) -> None:
        """Starts compiling or loading the kernels for a spot; returns at once."""
        HotCompiler.of_process().ask(HotFusion(self, heat, spot))

    def is_known(self, spot: Spot) -> bool:
        """Whether kernels for a spot are on disk."""
        return bool(self._known) and (spot.fusion, _sizes_key(spot)) in self._known

    def text(self, fusion: str) -> str:
        """The fusion alone, as text."""
        if fusion not in self._texts:
            op = self._fusions[fusion]
            found = Interface.of(op)
            assert isinstance(found, Interface)
            self._texts[fusion] = print_ir(fusion_alone(op, found))
        return self._texts[fusion]

    def fusion_key(self, fusion: str) -> str | None:
        """The key of a fusion at any sizes; None where the dependencies of its kernels cannot be determined."""
        if self._surroundings is None:
            return None
        return key_of(self.text(fusion), *self._surroundings)[:FUSION_LETTERS]

    @cached_property
    def _surroundings(self) -> tuple[str, ...] | None:
        """What kernels depend on besides their fusion."""
        if (outside := plugins.sources()) is None:
            return None
        added = ["".join((str(path), hashlib.sha256(path.read_bytes()).hexdigest())) for path in outside]
        try:
            tools = host_cpu(self.options.cpu_features).fingerprint if self.platform == "cpu" else tools_fingerprint()
        except ToolError:
            return None
        return self.platform, self.options.target, repr(self.options.device), own_fingerprint(), tools, *added

    def _look_up(self, heat: Heat) -> None:
        """Finds out which kernels are on disk."""
        if (cache := kernel_cache()) is None:
            return
        for fusion, op in self._fusions.items():
            if isinstance(Interface.of(op), Interface) and (key := self.fusion_key(fusion)) is not None:
                self._known |= {(fusion, found[len(key) :]) for found in cache.keys(key)}
        heat.request_known()


@dataclass(frozen=True)
class HotFusion:
    """A job of `HotCompiler`: one fusion at given sizes, for one program."""

    hot: HotFusions
    heat: Heat
    spot: Spot

    def key(self) -> str | None:
        found = self.hot.fusion_key(self.spot.fusion)
        return None if found is None else found + _sizes_key(self.spot)

    def request(self) -> Mapping[str, Any]:
        kernels = dict.fromkeys(launch["kernel"] for launch in self.spot.launches)
        return {
            "now": self.spot.launches,
            "modules": {name: self.hot.kernel(name) for name in kernels} if self.hot.kernel else {},
            "platform": self.hot.platform,
            "fusion": self.hot.text(self.spot.fusion),
            "shapes": self.spot.shapes,
            "numbers": self.spot.numbers,
            "target": self.hot.options.target,
            "cpu_features": self.hot.options.cpu_features,
        }

    def answered(self, answer: Mapping[str, Any]) -> None:
        if "declined" in answer:
            self.heat.keep(self.spot, answer["declined"])
        else:
            self.heat.replace(self.spot, self.hot.load(answer))


def _sizes_key(spot: Spot) -> str:
    return hashlib.sha256(repr((spot.shapes, spot.numbers)).encode()).hexdigest()[:SIZES_LETTERS]


def load_for_cpu(answer: Mapping[str, Any]) -> HotKernel:
    """A kernel from machine code of this CPU. raises ToolError for an answer without such code"""
    code = answer["code"]
    data = b64decode(code["object"])
    address = LoadedCode(data).address
    kernels = HostKernels(code["parameters"], code["accesses"], address, step_of=lambda name: address(f"{name}{ENTRY}"))
    return planned_launches(answer, len(data), kernels)


def load_for_simt(answer: Mapping[str, Any]) -> HotKernel:
    """A kernel from IR for the CPU executor."""
    texts: Mapping[str, str] = answer["code"]["modules"]
    modules = {name: parse_ir(text, f"<{name}>") for name, text in texts.items()}
    return planned_launches(
        answer, sum(map(len, texts.values())), SimtKernels(lambda name, _: modules[name]), ALIGNMENT
    )


def loader_for_gpu(cupy: Any, architecture: str) -> Loader:
    """A loader of kernels on CuPy's current device, for any thread. The kernel raises ToolError where the driver rejects the PTX."""
    memory = CupyMemory(cupy)

    def load(answer: Mapping[str, Any]) -> HotKernel:
        ptx: str = answer["code"]["ptx"]
        kernels = CupyHotKernels(memory, ptx, answer["code"]["entries"], architecture)
        return planned_launches(answer, len(ptx), kernels, ALIGNMENT, memory)

    return load
