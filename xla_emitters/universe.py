"""Our dialects, passes, readers and PTX for stock `xdsl-opt`, through the `xdsl.universe` entry point.

    xdsl-opt gelu.hlo                                          # `hlo` and `stablehlo` are frontends
    xdsl-opt kernel.mlir -p xla-lower-xla-loops-to-scf,xla-flatten-tensors
    xdsl-opt gelu.hlo -t 'ptx{device="h100"}'

Every entry is a factory, so that listing the names imports nothing. xDSL's own dialects (`llvm`, `gpu`, `arith` ...) stay xDSL's there;
`xla-emitters-opt` reads them with what xDSL lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import IO, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from xla_emitters.device import DEFAULT_DEVICE
from xla_emitters.dialects.context import ADDED_DIALECTS
from xla_emitters.errors import Unsupported
from xla_emitters.plugins import registered
from xla_emitters.rewrite.pass_table import PASSES, pass_class


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Our passes by name, and those of plugins."""
    own = {name: partial(pass_class, name) for name in PASSES}
    added = {plugin.name: plugin.owner for plugin in registered() if plugin.kind == "pass"}
    return own | {name: partial(_same, owner) for name, owner in added.items()}


def _same(owner: type[ModulePass]) -> type[ModulePass]:
    return owner


def _for_xdsls_ops(factory: Callable[[], type[ModulePass]]) -> type[ModulePass]:
    """The pass for IR that xDSL read: its ops become ours first."""
    from xla_emitters.dialects.completion import adopt_all

    own: Any = factory()

    class Pass(own):
        def apply(self, ctx: Context, op: ModuleOp) -> None:
            adopt_all(op)
            own.apply(self, ctx, op)

    Pass.__doc__, Pass.__module__ = own.__doc__, own.__module__
    return Pass


@dataclass(frozen=True)
class PtxTarget(Target):
    """PTX of the kernels of a module in the `hlo` dialect, or of a kernel at any stage."""

    name = "ptx"

    device: str = DEFAULT_DEVICE

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from xla_emitters.dialects.mlir_printer import print_ir
        from xla_emitters.pipelines.compiler import compile_module
        from xla_emitters.pipelines.kernel_ir import compile_kernel_ir
        from xla_emitters.pipelines.options import CompileOptions
        from xla_emitters.text.stablehlo import is_kernel_ir

        options = CompileOptions(target=self.device)
        if is_kernel_ir(text := print_ir(module)):
            output.write(compile_kernel_ir(text, "<ir>", options).code)
        elif other := next((op.name for op in module.ops if op.name != "hlo.computation"), None):
            message = f"{other} is neither HLO nor a kernel, whose entry has the attribute xla.entry"
            raise Unsupported(message, stage="ptx", help="`xla-emitters compile FILE --stage STAGE` prints such IR")
        else:
            output.write(compile_module(module, options).code)


def _frontend(name: str) -> Callable[[], type[Any]]:
    return lambda: getattr(import_module("xla_emitters.text.frontends"), name)


XLA_EMITTERS_UNIVERSE = Universe(
    all_dialects=dict(ADDED_DIALECTS),
    all_passes={name: partial(_for_xdsls_ops, factory) for name, factory in all_passes().items()},
    all_targets={PtxTarget.name: lambda: PtxTarget},
    all_frontends={"hlo": _frontend("HloFrontend"), "stablehlo": _frontend("StableHloFrontend")},
)
