"""XLA:GPU's emitters in Python on xDSL: HLO fusions to PTX, readable and executable at every pass.

    import xla_emitters as xe
    p = xe.compile("gelu.hlo", target="h200")

Names are imported when they are used: importing the package imports neither NumPy nor xDSL. Comments cite "the seed document" and
`docs/reference/N`: `docs/reference/index.md` says what they are, and where to read them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_emitters.algebra.map import IndexingMap as IndexingMap
    from xla_emitters.device import DEVICES as DEVICES
    from xla_emitters.device import Device as Device
    from xla_emitters.device import register_device as register_device
    from xla_emitters.dialects.hlo.custom_calls import register_library_call as register_library_call
    from xla_emitters.emitters.emit import register_emitter as register_emitter
    from xla_emitters.errors import XlaEmittersError as XlaEmittersError
    from xla_emitters.explore.check.check import check as check
    from xla_emitters.explore.compile import compile as compile
    from xla_emitters.explore.cost.cost import cost as cost
    from xla_emitters.explore.from_jax.jax_jit import jit as jit
    from xla_emitters.explore.from_jax.jax_program import JaxProgram as JaxProgram
    from xla_emitters.explore.from_jax.jax_program import from_jax as from_jax
    from xla_emitters.explore.from_torch.torch_program import TorchProgram as TorchProgram
    from xla_emitters.explore.from_torch.torch_program import from_torch as from_torch
    from xla_emitters.explore.optimize import optimize as optimize
    from xla_emitters.functions import register_function as register_function
    from xla_emitters.pipelines.pass_lists import register_pass as register_pass
    from xla_emitters.runtime import Kernel as Kernel
    from xla_emitters.runtime import Program as Program
    from xla_emitters.settings import Settings as Settings
    from xla_emitters.settings import Toolchain as Toolchain
    from xla_emitters.support.limits import limited_iterations as limited_iterations
    from xla_emitters.support.limits import limited_memory as limited_memory
    from xla_emitters.trace import Trace as Trace

    __version__: str
_HOMES = {
    name: module
    for module, names in {
        "algebra.map": ("IndexingMap",),
        "device": ("DEVICES", "Device", "register_device"),
        "dialects.hlo.custom_calls": ("register_library_call",),
        "emitters.emit": ("register_emitter",),
        "errors": ("XlaEmittersError",),
        "explore.check.check": ("check",),
        "explore.compile": ("compile",),
        "explore.cost.cost": ("cost",),
        "explore.from_jax.jax_jit": ("jit",),
        "explore.from_jax.jax_program": ("JaxProgram", "from_jax"),
        "explore.from_torch.torch_program": ("TorchProgram", "from_torch"),
        "explore.optimize": ("optimize",),
        "functions": ("register_function",),
        "pipelines.pass_lists": ("register_pass",),
        "runtime": ("Kernel", "Program"),
        "settings": ("Settings", "Toolchain"),
        "support.limits": ("limited_iterations", "limited_memory"),
        "trace": ("Trace",),
    }.items()
    for name in names
}
__all__ = [*_HOMES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # imported here: it takes as long as everything else in this file

        return version("xla-emitters")
    if name in _HOMES:
        return getattr(import_module(f"xla_emitters.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'xla_emitters' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
