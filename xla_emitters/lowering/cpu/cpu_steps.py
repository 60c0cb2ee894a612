"""Kernels as functions that read their arguments from memory.

define void @main_kLoop_add_0.step(ptr %words) {          words[0], words[1] ... are the arguments of the kernel
  %0 = load ptr, ptr %words
  ...
  call void @main_kLoop_add_0(ptr %0, ...)

define void @chain.step(ptr %table, i64 %count)           calls the code of `count` rows of the table, one after the other:
                                                          code, words, and for the loops of `blas_calls` a range that is not empty

define void @copy.step(ptr %words)                        copies bytes: words[2] of them, from words[1] to words[0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ENTRY = ".step"
"""Suffix of the name of a step, after the name of its kernel."""
WORDS = frozenset(("ptr", "i1", "i8", "i16", "i32", "i64", "float", "double"))
"""LLVM's names of the types that a word can hold."""
ADDED_TYPES = ("i64", "i64", "ptr")
"""Parameters behind those of a kernel: the range of blocks, and memory of a block."""
CHAIN = "chain"
"""The name of the function that calls the code of a table."""
CHAIN_ROW = 4
"""Numbers of a row of the table: code, words, first, last."""
COPY = "copy"
"""The name of the function that copies bytes: its words are the address of the result, that of the operand, and how many."""
CHAIN_IR = f"""
define void @"{COPY}{ENTRY}"(ptr %words) {{
  %words.from = getelementptr i64, ptr %words, i64 1
  %words.count = getelementptr i64, ptr %words, i64 2
  %to = load ptr, ptr %words
  %from = load ptr, ptr %words.from
  %count = load i64, ptr %words.count
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %count, i1 false)
  ret void
}}

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define void @"{CHAIN}{ENTRY}"(ptr %table, i64 %count) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %done ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %row = getelementptr [{CHAIN_ROW} x i64], ptr %table, i64 %i
  %row.words = getelementptr i64, ptr %row, i64 1
  %row.first = getelementptr i64, ptr %row, i64 2
  %row.last = getelementptr i64, ptr %row, i64 3
  %code = load ptr, ptr %row
  %words = load ptr, ptr %row.words
  %first = load i64, ptr %row.first
  %last = load i64, ptr %row.last
  %ranged = icmp ne i64 %last, 0
  br i1 %ranged, label %range, label %plain
range:
  call void %code(ptr %words, i64 %first, i64 %last)
  br label %done
plain:
  call void %code(ptr %words)
  br label %done
done:
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""


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
