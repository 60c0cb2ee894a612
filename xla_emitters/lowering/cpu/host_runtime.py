"""LLVM IR of the runtime under a host program: the call into the runtime, and reference-counted buffers.

    ral_api_call(context, name, args)     calls the function in the context
    ral_product(a, b)                     a * b; negative if a factor is negative or the product overflows
    ral_new(context, bytes)               a buffer with one reference, null if it is beyond the limit; its head is in front of it
    ral_keep, ral_release                 add or remove a reference; removing the last one frees the buffer; null is ignored
    ral_give(context, buffer)             takes a buffer with one reference from the context; false for any other
    ral_drop(context)                     frees all buffers of a failed call
    ral_scratch(bytes), ral_free          memory without a reference count; `ral_free` also frees buffers taken by ral_give
    ral_move(to, from, bytes)             as memmove

The head of a buffer, 64 bytes: the pointer from malloc, the previous and the next buffer in the context's list, references, bytes.
A context has the fields of `dynamic/host/call_context`.
Source: docs/reference/4 4.1.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir import llvm
from xla_emitters.lowering.cpu.cpu_code import cpu_ir

CALL = """
define internal void @ral_api_call(ptr %context, ptr %name, ptr %args) {
  %place = getelementptr i64, ptr %context, i64 1
  %function = load ptr, ptr %place
  call void %function(ptr %context, ptr %name, ptr %args)
  ret void
}
"""
BUFFERS = """
%head = type { ptr, ptr, ptr, i64, i64 }

declare ptr @malloc(i64)
declare void @free(ptr)

define internal i64 @ral_product(i64 %a, i64 %b) alwaysinline {
  %both = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  %product = extractvalue { i64, i1 } %both, 0
  %overflows = extractvalue { i64, i1 } %both, 1
  %signs = or i64 %a, %b
  %is_negative = icmp slt i64 %signs, 0
  %is_bad = or i1 %overflows, %is_negative
  %result = select i1 %is_bad, i64 -1, i64 %product
  ret i64 %result
}
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

define internal ptr @ral_scratch(i64 %bytes) {
  %is_bad = icmp ugt i64 %bytes, 4611686018427387904
  br i1 %is_bad, label %none, label %try
try:
  %size = add i64 %bytes, 128
  %raw = call ptr @malloc(i64 %size)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %none, label %made
made:
  %number = ptrtoint ptr %raw to i64
  %end = add i64 %number, 127
  %aligned = and i64 %end, -64
  %data = inttoptr i64 %aligned to ptr
  %head = getelementptr i8, ptr %data, i64 -64
  store ptr %raw, ptr %head
  ret ptr %data
none:
  ret ptr null
}

define void @ral_free(ptr %data) {
  %is_none = icmp eq ptr %data, null
  br i1 %is_none, label %end, label %some
some:
  %head = getelementptr i8, ptr %data, i64 -64
  %raw = load ptr, ptr %head
  call void @free(ptr %raw)
  br label %end
end:
  ret void
}

define internal ptr @ral_new(ptr %context, i64 %bytes) {
  %bytes_now_place = getelementptr i64, ptr %context, i64 9
  %taken = load i64, ptr %bytes_now_place
  %limit_place = getelementptr i64, ptr %context, i64 11
  %limit = load i64, ptr %limit_place
  %left = sub i64 %limit, %taken
  %is_beyond = icmp sgt i64 %bytes, %left
  %asked = select i1 %is_beyond, i64 -1, i64 %bytes
  %data = call ptr @ral_scratch(i64 %asked)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %end, label %made
made:
  %head = getelementptr i8, ptr %data, i64 -64
  %before = getelementptr %head, ptr %head, i64 0, i32 1
  %behind = getelementptr %head, ptr %head, i64 0, i32 2
  %references = getelementptr %head, ptr %head, i64 0, i32 3
  %size = getelementptr %head, ptr %head, i64 0, i32 4
  store i64 1, ptr %references
  store i64 %bytes, ptr %size
  %list = getelementptr i64, ptr %context, i64 7
  %first = load ptr, ptr %list
  store ptr null, ptr %before
  store ptr %first, ptr %behind
  store ptr %data, ptr %list
  %is_first = icmp eq ptr %first, null
  br i1 %is_first, label %count, label %link
link:
  %next = getelementptr i8, ptr %first, i64 -56
  store ptr %data, ptr %next
  br label %count
count:
  %made_place = getelementptr i64, ptr %context, i64 8
  %made_before = load i64, ptr %made_place
  %made_now = add i64 %made_before, 1
  store i64 %made_now, ptr %made_place
  %bytes_place = getelementptr i64, ptr %context, i64 9
  %bytes_before = load i64, ptr %bytes_place
  %bytes_now = add i64 %bytes_before, %bytes
  store i64 %bytes_now, ptr %bytes_place
  %peak_place = getelementptr i64, ptr %context, i64 10
  %peak = load i64, ptr %peak_place
  %is_more = icmp ugt i64 %bytes_now, %peak
  %most = select i1 %is_more, i64 %bytes_now, i64 %peak
  store i64 %most, ptr %peak_place
  br label %end
end:
  ret ptr %data
}

define internal void @ral_unlink(ptr %context, ptr %data) {
  %head = getelementptr i8, ptr %data, i64 -64
  %before_place = getelementptr %head, ptr %head, i64 0, i32 1
  %behind_place = getelementptr %head, ptr %head, i64 0, i32 2
  %size_place = getelementptr %head, ptr %head, i64 0, i32 4
  %before = load ptr, ptr %before_place
  %behind = load ptr, ptr %behind_place
  %size = load i64, ptr %size_place
  %bytes_place = getelementptr i64, ptr %context, i64 9
  %bytes_before = load i64, ptr %bytes_place
  %bytes_now = sub i64 %bytes_before, %size
  store i64 %bytes_now, ptr %bytes_place
  %list = getelementptr i64, ptr %context, i64 7
  %before_next = getelementptr i8, ptr %before, i64 -48
  %is_first = icmp eq ptr %before, null
  %from = select i1 %is_first, ptr %list, ptr %before_next
  store ptr %behind, ptr %from
  %is_last = icmp eq ptr %behind, null
  br i1 %is_last, label %end, label %link
link:
  %behind_before = getelementptr i8, ptr %behind, i64 -56
  store ptr %before, ptr %behind_before
  br label %end
end:
  ret void
}

define internal void @ral_keep(ptr %data) {
  %is_none = icmp eq ptr %data, null
  br i1 %is_none, label %end, label %some
some:
  %place = getelementptr i8, ptr %data, i64 -40
  %before = load i64, ptr %place
  %now = add i64 %before, 1
  store i64 %now, ptr %place
  br label %end
end:
  ret void
}

define internal void @ral_release(ptr %context, ptr %data) {
  %is_none = icmp eq ptr %data, null
  br i1 %is_none, label %end, label %some
some:
  %place = getelementptr i8, ptr %data, i64 -40
  %before = load i64, ptr %place
  %now = sub i64 %before, 1
  store i64 %now, ptr %place
  %is_last = icmp eq i64 %now, 0
  br i1 %is_last, label %free, label %end
free:
  call void @ral_unlink(ptr %context, ptr %data)
  call void @ral_free(ptr %data)
  br label %end
end:
  ret void
}

define internal i1 @ral_give(ptr %context, ptr %data) {
  %is_none = icmp eq ptr %data, null
  br i1 %is_none, label %no, label %some
some:
  %place = getelementptr i8, ptr %data, i64 -40
  %count = load i64, ptr %place
  %is_one = icmp eq i64 %count, 1
  br i1 %is_one, label %yes, label %no
yes:
  call void @ral_unlink(ptr %context, ptr %data)
  ret i1 true
no:
  ret i1 false
}

define void @ral_drop(ptr %context) {
  %list = getelementptr i64, ptr %context, i64 7
  br label %next
next:
  %first = load ptr, ptr %list
  %is_none = icmp eq ptr %first, null
  br i1 %is_none, label %end, label %some
some:
  call void @ral_unlink(ptr %context, ptr %first)
  call void @ral_free(ptr %first)
  br label %next
end:
  ret void
}

define internal void @ral_move(ptr %to, ptr %from, i64 %bytes) alwaysinline {
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def host_program_ir(host: ModuleOp, kernels: ModuleOp) -> str:
    """One text of LLVM IR: a host program in the LLVM dialect, the kernels that it calls, and all functions that these call.

    host    with declarations of the functions that it calls
    raises  Unsupported for a function that has no CPU code here
    """
    together = kernels.clone()
    for op in list(host.clone().ops):
        op.detach()
        if not isinstance(op, llvm.FuncOp) or op.body.blocks:
            together.body.block.add_op(op)
    return cpu_ir(together) + CALL + BUFFERS
