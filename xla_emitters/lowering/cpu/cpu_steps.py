"""Kernels as functions that read their arguments from memory.

    define void @main_kLoop_add_0.step(ptr %words) {          words[0], words[1] ... are the arguments of the kernel
      %0 = load ptr, ptr %words
      ...
      call void @main_kLoop_add_0(ptr %0, ...)

An array object holds the address of its elements at the offset that NumPy's C interface promises (PyArrayObject_fields.data, the
first field after the object's head).
Source: https://numpy.org/doc/stable/reference/c-api/types-and-structures.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

ENTRY = ".step"
"""Suffix of the name of a step, after the name of its kernel."""
WORDS = frozenset(("ptr", "i1", "i8", "i16", "i32", "i64", "float", "double"))
"""LLVM's names of the types that a word can hold."""
ADDED_TYPES = ("i64", "i64", "ptr")
"""Parameters behind those of a kernel: the range of blocks, and memory of a block."""
_DATA = object.__basicsize__
"""The offset of the address of the elements in an array object."""


def pointer(array: object) -> int:
    """The address of a NumPy array's elements: the first field behind the head of an array object."""
    return ctypes.c_size_t.from_address(id(array) + _DATA).value


def step_entries(parameters: Mapping[str, Sequence[str]]) -> str:
    """LLVM IR of the steps of kernels.

    parameters  of each kernel, the types as LLVM names them, without ADDED_TYPES
    """
    return "\n".join(_entry(name, [*types, *ADDED_TYPES]) for name, types in parameters.items())


def _entry(name: str, types: Sequence[str]) -> str:
    lines = list[str]()
    for number, ir_type in enumerate(types):
        lines.append(f"  %a{number} = getelementptr inbounds i64, ptr %words, i64 {number}")
        if ir_type == "i1":
            lines += [f"  %b{number} = load i8, ptr %a{number}", f"  %v{number} = trunc i8 %b{number} to i1"]
        else:
            lines.append(f"  %v{number} = load {ir_type}, ptr %a{number}")
    given = ", ".join(f"{ir_type} %v{number}" for number, ir_type in enumerate(types))
    return "\n".join(
        (
            f'define void @"{name}{ENTRY}"(ptr %words) {{',
            *lines,
            f'  call void @"{name}"({given}) noinline',
            "  ret void",
            "}",
            "",
        )
    )
