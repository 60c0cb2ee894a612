"""The expected costs of kernels that are only tried: all in one module, by one run of LLVM and one of ptxas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import Device
from xla_emitters.graph.view import FusionView
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.price import machine_code_of, price_kernel
from xla_emitters.program import Argument, Kernel
from xla_emitters.rewrite.kernel_entry import launch_of, sanitize, shared_bytes
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.settings import Toolchain


@dataclass(frozen=True)
class Passes:
    """What the map lends to a choice: for which device, with which tools, by which rules for heroes, and its passes, which change a
    module in place.

    lower    a kernel as it was emitted, to the LLVM dialect
    to_ptx   all kernels in one module, to PTX
    """

    device: Device
    toolchain: Toolchain
    hero_rules: str
    lower: Callable[[ModuleOp], None]
    to_ptx: Callable[[ModuleOp], str]


@dataclass(frozen=True)
class TriedKernel:
    """A kernel in the LLVM dialect, and the fusion that it computes."""

    view: FusionView
    arguments: tuple[Argument, ...]
    module: ModuleOp

    @staticmethod
    def of(view: FusionView, arguments: tuple[Argument, ...], emitted: ModuleOp, passes: Passes) -> TriedKernel:
        """The kernel that an emitter made, lowered."""
        passes.lower(emitted)
        return TriedKernel(view, arguments, emitted)


def price_kernels(kernels: Sequence[TriedKernel], passes: Passes) -> Sequence[KernelCost]:
    """The expected cost of each. raises ToolError without LLVM or ptxas and nvdisasm; errors of the executor"""
    chip = passes.device
    launches = [(launch_of(kernel.module), shared_bytes(kernel.module)) for kernel in kernels]
    whole, renamed = merge_modules([kernel.module.clone() for kernel in kernels])
    ptx = passes.to_ptx(whole)
    code, costs = machine_code_of(ptx, chip.architecture, passes.toolchain), list[KernelCost]()
    for tried, symbols, (launch, shared) in zip(kernels, renamed, launches, strict=True):
        symbol = sanitize(tried.view.name)
        kernel = Kernel(symbols.get(symbol, symbol), ptx, chip.architecture, launch, shared, tried.arguments)
        costs.append(price_kernel(kernel, tried.view, tried.module, chip, code))
    return costs
