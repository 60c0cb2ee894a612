"""Steps of a plan as machine code: functions that read their arguments from memory, and a function that calls a list of them.

    define void @main_kLoop_add_0.step(ptr %words) {          words[0], words[1] ... are the arguments of the kernel
      %0 = load ptr, ptr %words
      ...
      call void @main_kLoop_add_0(ptr %0, ...)

    @replay(header)      header: relocations, their number, objects, steps, their number
      for each (word, number) of the relocations:    *word = the address of the elements of the array objects[number]
      for each (function, words) of the steps:       function(words)

A relocation is an argument that changes from call to call: an array of the caller. `@replay` returns the bitwise or of its addresses'
bits below ALIGNMENT, and runs no step unless the result is zero: kernels expect arrays to be aligned to ALIGNMENT.
An array object holds the address of its elements at the offset that NumPy's C interface promises (PyArrayObject_fields.data, the
first field after the object's head).
Source: https://numpy.org/doc/stable/reference/c-api/types-and-structures.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ENTRY = ".step"
"""Suffix of the name of a step, after the name of its kernel."""
ALIGNMENT = 16
"""Bytes that divide the address of each array."""
ADDED_TYPES = ("i64", "i64", "ptr")
"""Parameters behind those of a kernel: the range of blocks, and memory of a block."""
DATA = object.__basicsize__
"""The offset of the address of the elements in an array object."""


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


STEPS = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @copy(ptr %words) {{
  %second = getelementptr inbounds i64, ptr %words, i64 1
  %third = getelementptr inbounds i64, ptr %words, i64 2
  %target = load ptr, ptr %words
  %source = load ptr, ptr %second
  %bytes = load i64, ptr %third
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret void
}}

define i64 @replay(ptr %header) {{
entry:
  %h1 = getelementptr inbounds i64, ptr %header, i64 1
  %h2 = getelementptr inbounds i64, ptr %header, i64 2
  %h3 = getelementptr inbounds i64, ptr %header, i64 3
  %h4 = getelementptr inbounds i64, ptr %header, i64 4
  %relocations = load ptr, ptr %header
  %relocation_count = load i64, ptr %h1
  %objects = load ptr, ptr %h2
  %steps = load ptr, ptr %h3
  %step_count = load i64, ptr %h4
  br label %relocate

relocate:
  %i = phi i64 [ 0, %entry ], [ %next_i, %relocate_one ]
  %bits = phi i64 [ 0, %entry ], [ %more_bits, %relocate_one ]
  %is_relocation = icmp slt i64 %i, %relocation_count
  br i1 %is_relocation, label %relocate_one, label %judge

relocate_one:
  %word_at = getelementptr inbounds [2 x i64], ptr %relocations, i64 %i
  %number_at = getelementptr inbounds i64, ptr %word_at, i64 1
  %word = load ptr, ptr %word_at
  %number = load i64, ptr %number_at
  %object_at = getelementptr inbounds ptr, ptr %objects, i64 %number
  %object = load ptr, ptr %object_at
  %data_at = getelementptr inbounds i8, ptr %object, i64 {DATA}
  %data = load i64, ptr %data_at
  store i64 %data, ptr %word
  %more_bits = or i64 %bits, %data
  %next_i = add i64 %i, 1
  br label %relocate

judge:
  %low = and i64 %bits, {ALIGNMENT - 1}
  %is_aligned = icmp eq i64 %low, 0
  br i1 %is_aligned, label %run, label %end

run:
  %j = phi i64 [ 0, %judge ], [ %next_j, %run_one ]
  %is_step = icmp slt i64 %j, %step_count
  br i1 %is_step, label %run_one, label %end

run_one:
  %step_at = getelementptr inbounds [2 x i64], ptr %steps, i64 %j
  %words_at = getelementptr inbounds i64, ptr %step_at, i64 1
  %function = load ptr, ptr %step_at
  %words = load ptr, ptr %words_at
  call void %function(ptr %words)
  %next_j = add i64 %j, 1
  br label %run

end:
  ret i64 %low
}}
"""
"""The function that runs any plan."""
