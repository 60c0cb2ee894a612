"""A kernel's PTX or LLVM IR as IR that the executor runs: with the launch and arguments that the program knows and the text does not say.

    module = module_of_ptx(kernel)                            llvm and nvvm dialects; locations are lines of the text
    module = module_of_llvm_ir(trace["llvm"].ir, kernel)
    run_kernel(module, kernel.arguments, slots)

Source: docs/ptx.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, UnitAttr, i32, i64
from xdsl.ir import Attribute

from xla_emitters.program import Argument, Kernel, LaunchDimensions
from xla_emitters.rewrite.kernel_entry import BLOCK, GRID, INVARIANT, READS_GRANULES
from xla_emitters.text.ptx import entry_named, raise_kernel, read_ptx


@lru_cache(4)
def _read(reader: Callable[[str, str], Any], text: str, file: str) -> Any:
    """Kernels of one program share a text."""
    return reader(text, file)


def module_of_ptx(kernel: Kernel, file: str = "", shared_bytes: int = 0) -> ModuleOp:
    """The IR of a kernel's PTX. shared_bytes: of dynamic shared memory. raises ParseError and Unsupported, each with its place in `file`"""
    module = _read(read_ptx, kernel.ptx, file or f"{kernel.name}.ptx")
    entry = entry_named(module, kernel.name)
    arguments = [attributes_of(argument) for argument in kernel.arguments]
    attributes = launch_attributes(kernel.launch)
    found = raise_kernel(module, entry, arguments=arguments, attributes=attributes, shared_bytes=shared_bytes)
    found.attributes[READS_GRANULES] = UnitAttr()
    return found


def module_of_llvm_ir(text: str, kernel: Kernel) -> ModuleOp:
    """The IR of a kernel in a text of LLVM IR. raises ParseError, VerifyError and Unsupported, each with its place"""
    from xla_emitters.text import llvm_ir  # imported here: PTX needs no other reader

    module = _read(llvm_ir.read_llvm_ir, text, f"{kernel.name}.ll")
    arguments = [attributes_of(argument) for argument in kernel.arguments]
    entry, attributes = entry_named(module, kernel.name), launch_attributes(kernel.launch)
    return llvm_ir.raise_kernel(module, entry, arguments=arguments, attributes=attributes)


def launch_attributes(launch: LaunchDimensions) -> dict[str, Attribute]:
    """A launch as the attributes of the function."""
    return {GRID: DenseArrayBase.from_list(i32, launch.grid), BLOCK: DenseArrayBase.from_list(i32, launch.block)}


def attributes_of(argument: Argument) -> dict[str, Attribute]:
    """The alignment that a kernel may assume, and whether it only reads the array."""
    found: dict[str, Attribute] = {"llvm.align": IntegerAttr(argument.alignment, i64)}
    return found if argument.written else {**found, INVARIANT: UnitAttr()}
