"""Kernels as functions that read their arguments from memory.

define void @main_kLoop_add_0.step(ptr %words) {          words[0], words[1] ... are the arguments of the kernel
  %0 = load ptr, ptr %words
  ...
  call void @main_kLoop_add_0(ptr %0, ...)

define void @chain.step(ptr %table, i64 %count)           calls the code of `count` rows of the table, one after the other:
                                                          code, words, and for the loops of `blas_calls` a range that is not empty

define void @copy.step(ptr %words)                        copies bytes: words[2] of them, from words[1] to words[0]

define i64 @counted.step(ptr %states, i64 %again, i64 %end, i64 %state, i64 %trips, ptr %numbers, i64 %width)
    runs iterations of a loop: each writes numbers of its row to the words that its state names and calls the code of the state's table;
    the state after the last one is `again`

define i64 @until.step(ptr %states, i64 %again, i64 %end, i64 %state, i64 %trips, ptr %count)
    the same until a byte is zero, which the calls of a condition write: then it returns the state, negated bit by bit; else, after so many
    iterations, the state of the next one
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
COUNTED = "counted"
"""The name of the function that runs iterations of a loop."""
COUNTED_ROW = 4
"""Numbers of a state: table, rows of the table, places, number of places. A place is the address of a word and a column of the numbers."""
UNTIL = "until"
"""The name of the function that runs iterations of a loop until a predicate is false."""
UNTIL_ROW = 5
"""Numbers of a state: table of the condition, rows of it, table of the body, rows of it, address of the predicate."""
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

define i64 @"{COUNTED}{ENTRY}"(ptr %states, i64 %again, i64 %end, i64 %start, i64 %trips, ptr %numbers, i64 %width) {{
entry:
  br label %head
head:
  %trip = phi i64 [ 0, %entry ], [ %trip.next, %called ]
  %state = phi i64 [ %start, %entry ], [ %state.next, %called ]
  %more = icmp ult i64 %trip, %trips
  br i1 %more, label %iteration, label %done
iteration:
  %at = getelementptr [{COUNTED_ROW} x i64], ptr %states, i64 %state
  %at.rows = getelementptr i64, ptr %at, i64 1
  %at.places = getelementptr i64, ptr %at, i64 2
  %at.count = getelementptr i64, ptr %at, i64 3
  %table = load ptr, ptr %at
  %rows = load i64, ptr %at.rows
  %places = load ptr, ptr %at.places
  %count = load i64, ptr %at.count
  %first = mul i64 %trip, %width
  %own = getelementptr i64, ptr %numbers, i64 %first
  br label %next
next:
  %i = phi i64 [ 0, %iteration ], [ %i.next, %set ]
  %is.left = icmp ult i64 %i, %count
  br i1 %is.left, label %set, label %call
set:
  %place = getelementptr [2 x i64], ptr %places, i64 %i
  %place.column = getelementptr i64, ptr %place, i64 1
  %word = load ptr, ptr %place
  %column = load i64, ptr %place.column
  %from = getelementptr i64, ptr %own, i64 %column
  %number = load i64, ptr %from
  store i64 %number, ptr %word
  %i.next = add i64 %i, 1
  br label %next
call:
  call void @"{CHAIN}{ENTRY}"(ptr %table, i64 %rows)
  br label %called
called:
  %trip.next = add i64 %trip, 1
  %after = add i64 %state, 1
  %is.last = icmp eq i64 %after, %end
  %state.next = select i1 %is.last, i64 %again, i64 %after
  br label %head
done:
  ret i64 %state
}}

define i64 @"{UNTIL}{ENTRY}"(ptr %states, i64 %again, i64 %end, i64 %start, i64 %trips, ptr %count) {{
entry:
  br label %head
head:
  %trip = phi i64 [ 0, %entry ], [ %trip.next, %body ]
  %state = phi i64 [ %start, %entry ], [ %state.next, %body ]
  store i64 %trip, ptr %count
  %more = icmp ult i64 %trip, %trips
  br i1 %more, label %condition, label %left
condition:
  %at = getelementptr [{UNTIL_ROW} x i64], ptr %states, i64 %state
  %at.rows = getelementptr i64, ptr %at, i64 1
  %at.body = getelementptr i64, ptr %at, i64 2
  %at.body.rows = getelementptr i64, ptr %at, i64 3
  %at.predicate = getelementptr i64, ptr %at, i64 4
  %table = load ptr, ptr %at
  %rows = load i64, ptr %at.rows
  call void @"{CHAIN}{ENTRY}"(ptr %table, i64 %rows)
  %predicate = load ptr, ptr %at.predicate
  %holds = load i8, ptr %predicate
  %is.on = icmp ne i8 %holds, 0
  br i1 %is.on, label %body, label %ended
body:
  %body.table = load ptr, ptr %at.body
  %body.rows = load i64, ptr %at.body.rows
  call void @"{CHAIN}{ENTRY}"(ptr %body.table, i64 %body.rows)
  %trip.next = add i64 %trip, 1
  %after = add i64 %state, 1
  %is.last = icmp eq i64 %after, %end
  %state.next = select i1 %is.last, i64 %again, i64 %after
  br label %head
ended:
  %last = xor i64 %state, -1
  ret i64 %last
left:
  ret i64 %state
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
