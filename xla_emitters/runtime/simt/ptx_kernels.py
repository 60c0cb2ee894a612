"""A kernel's PTX as IR that the executor runs: with the launch and the arguments that the program knows and the text does not say.

    module = module_of_ptx(kernel)        llvm and nvvm dialects; locations are lines of the PTX
    run_kernel(module, kernel.arguments, slots)

Source: docs/ptx.md.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, UnitAttr, i32, i64
from xdsl.ir import Attribute

from xla_emitters.program import Argument, Kernel, LaunchDimensions
from xla_emitters.rewrite.kernel_entry import BLOCK, GRID, INVARIANT, READS_GRANULES
from xla_emitters.text.ptx import entry_named, raise_kernel, read_ptx
from xla_emitters.text.ptx.syntax import PtxModule


@lru_cache(4)
def _read(text: str, file: str) -> PtxModule:
    """Kernels of one program share a text."""
    return read_ptx(text, file)


def module_of_ptx(kernel: Kernel, file: str = "", shared_bytes: int = 0) -> ModuleOp:
    """The IR of a kernel's PTX. shared_bytes: of dynamic shared memory. raises ParseError and Unsupported, each with its place in `file`"""
    module = _read(kernel.ptx, file or f"{kernel.name}.ptx")
    arguments = [attributes_of(argument) for argument in kernel.arguments]
    found = raise_kernel(
        module,
        entry_named(module, kernel.name),
        arguments=arguments,
        attributes=launch_attributes(kernel.launch),
        shared_bytes=shared_bytes,
    )
    found.attributes[READS_GRANULES] = UnitAttr()
    return found


def launch_attributes(launch: LaunchDimensions) -> dict[str, Attribute]:
    """A launch as the attributes of the function."""
    return {GRID: DenseArrayBase.from_list(i32, launch.grid), BLOCK: DenseArrayBase.from_list(i32, launch.block)}


def attributes_of(argument: Argument) -> dict[str, Attribute]:
    """The alignment that a kernel may assume, and whether it only reads the array."""
    found: dict[str, Attribute] = {"llvm.align": IntegerAttr(argument.alignment, i64)}
    return found if argument.written else {**found, INVARIANT: UnitAttr()}
