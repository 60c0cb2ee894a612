"""What plugins may import: emitters, passes, functions, devices and library calls of other packages need no other module of this one.

    from xla_emitters.extend import KernelPass, LoopEmitter, register_pass

These names stay where modules move. Each is imported when it is used: importing this file imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_emitters.algebra.expression import Expr as Expr
    from xla_emitters.algebra.interval import Interval as Interval
    from xla_emitters.algebra.map import IndexingMap as IndexingMap
    from xla_emitters.algebra.shape_maps import reshape_map as reshape_map
    from xla_emitters.device import Device as Device
    from xla_emitters.device import device as device
    from xla_emitters.device import register_device as register_device
    from xla_emitters.dialects.context import make_context as make_context
    from xla_emitters.dialects.hlo.base import HloOp as HloOp
    from xla_emitters.dialects.hlo.computation import FusionOp as FusionOp
    from xla_emitters.dialects.hlo.custom_calls import register_library_call as register_library_call
    from xla_emitters.dialects.hlo.types import dims_of as dims_of
    from xla_emitters.dialects.mlir import arith as arith
    from xla_emitters.dialects.mlir import func as func
    from xla_emitters.dialects.mlir import gpu as gpu
    from xla_emitters.dialects.mlir import math as math
    from xla_emitters.dialects.mlir import scf as scf
    from xla_emitters.dialects.mlir import tensor as tensor
    from xla_emitters.dialects.mlir import vector as vector
    from xla_emitters.dialects.mlir_printer import print_ir as print_ir
    from xla_emitters.dialects.xla_gpu import AllocateSharedOp as AllocateSharedOp
    from xla_emitters.dialects.xla_gpu import ApplyIndexingOp as ApplyIndexingOp
    from xla_emitters.dialects.xla_gpu import LoopOp as LoopOp
    from xla_emitters.dialects.xla_gpu import PredicatedExtractOp as PredicatedExtractOp
    from xla_emitters.dialects.xla_gpu import PredicatedInsertOp as PredicatedInsertOp
    from xla_emitters.dialects.xla_gpu import PureCallOp as PureCallOp
    from xla_emitters.dialects.xla_gpu import ShuffleReduceOp as ShuffleReduceOp
    from xla_emitters.dialects.xla_gpu import SyncThreadsOp as SyncThreadsOp
    from xla_emitters.dialects.xla_gpu import YieldOp as YieldOp
    from xla_emitters.emitters.elemental import FunctionBuilder as FunctionBuilder
    from xla_emitters.emitters.elemental import element_types as element_types
    from xla_emitters.emitters.elemental import emit_functions as emit_functions
    from xla_emitters.emitters.emit import register_emitter as register_emitter
    from xla_emitters.emitters.emitter import Emitter as Emitter
    from xla_emitters.emitters.emitter import TunableEmitter as TunableEmitter
    from xla_emitters.emitters.entry_function import entry_function as entry_function
    from xla_emitters.emitters.entry_function import kernel_module as kernel_module
    from xla_emitters.emitters.loop import LoopEmitter as LoopEmitter
    from xla_emitters.emitters.partitioner import Epilogue as Epilogue
    from xla_emitters.emitters.partitioner import partition as partition
    from xla_emitters.errors import Unsupported as Unsupported
    from xla_emitters.errors import UsageError as UsageError
    from xla_emitters.errors import XlaEmittersError as XlaEmittersError
    from xla_emitters.functions import RealFunction as RealFunction
    from xla_emitters.functions import register_function as register_function
    from xla_emitters.graph.heroes import find_non_trivial_hero as find_non_trivial_hero
    from xla_emitters.graph.heroes import place_map as place_map
    from xla_emitters.graph.view import FusionView as FusionView
    from xla_emitters.graph.view import view_of as view_of
    from xla_emitters.library.arguments import LibraryArguments as LibraryArguments
    from xla_emitters.pipelines.compiler import read_module as read_module
    from xla_emitters.pipelines.pass_lists import register_pass as register_pass
    from xla_emitters.program import LaunchDimensions as LaunchDimensions
    from xla_emitters.rewrite.kernel_pass import KernelPass as KernelPass
    from xla_emitters.rewrite.kernel_pass import run_pass as run_pass
    from xla_emitters.rewrite.notes import decide as decide
_HOMES = {
    name: module
    for module, names in {
        "algebra.expression": ("Expr",),
        "algebra.interval": ("Interval",),
        "algebra.map": ("IndexingMap",),
        "algebra.shape_maps": ("reshape_map",),
        "device": ("Device", "device", "register_device"),
        "dialects.context": ("make_context",),
        "dialects.hlo.base": ("HloOp",),
        "dialects.hlo.computation": ("FusionOp",),
        "dialects.hlo.custom_calls": ("register_library_call",),
        "dialects.hlo.types": ("dims_of",),
        "dialects.mlir_printer": ("print_ir",),
        "dialects.xla_gpu": (
            "AllocateSharedOp",
            "ApplyIndexingOp",
            "LoopOp",
            "PredicatedExtractOp",
            "PredicatedInsertOp",
            "PureCallOp",
            "ShuffleReduceOp",
            "SyncThreadsOp",
            "YieldOp",
        ),
        "emitters.elemental": ("FunctionBuilder", "element_types", "emit_functions"),
        "emitters.emit": ("register_emitter",),
        "emitters.emitter": ("Emitter", "TunableEmitter"),
        "emitters.entry_function": ("entry_function", "kernel_module"),
        "emitters.loop": ("LoopEmitter",),
        "emitters.partitioner": ("Epilogue", "partition"),
        "errors": ("Unsupported", "UsageError", "XlaEmittersError"),
        "functions": ("RealFunction", "register_function"),
        "graph.heroes": ("find_non_trivial_hero", "place_map"),
        "graph.view": ("FusionView", "view_of"),
        "library.arguments": ("LibraryArguments",),
        "pipelines.compiler": ("read_module",),
        "pipelines.pass_lists": ("register_pass",),
        "program": ("LaunchDimensions",),
        "rewrite.kernel_pass": ("KernelPass", "run_pass"),
        "rewrite.notes": ("decide",),
    }.items()
    for name in names
}
_DIALECTS = ("arith", "func", "gpu", "math", "scf", "tensor", "vector")
"""Modules with the ops of a dialect of MLIR."""
__all__ = [*_HOMES, *_DIALECTS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"xla_emitters.{_HOMES[name]}"), name)
    if name in _DIALECTS:
        return import_module(f"xla_emitters.dialects.mlir.{name}")
    raise AttributeError(f"module 'xla_emitters.extend' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_DIALECTS])
