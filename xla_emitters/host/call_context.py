"""The context of a call of a host program in machine code: a struct of C, 8 bytes a field.

    runtime       whatever the runtime keeps
    function      void (*)(context, name, args): the runtime's functions by name
    status        0; a function that fails sets it
    inputs        for each argument a pointer to {data, sizes ...}
    outputs       for each result likewise, which the program writes
    constants     for each constant its data, null until it was loaded
    shared_work   bytes of a launch's buffers from which on the runtime launches it, which has threads
    buffers       those that there are, linked
    allocations   how many were made; bytes, peak_bytes: what they take, and took at most

The first three are all that calls by name need. The layout is an interface: `lowering/host_runtime`, `runtime/ral/native_program` and the
C header of a bundle have it too.
Source: docs/reference/4 4.1, 4.3.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm

FIELDS = (
    *("runtime", "function", "status"),
    *("inputs", "outputs", "constants", "shared_work", "buffers", "allocations", "bytes", "peak_bytes"),
)


def context_field(builder: Builder, context: SSAValue, name: str) -> SSAValue:
    """The address of a field."""
    return word_at(builder, context, FIELDS.index(name))


def word_at(builder: Builder, address: SSAValue, number: int) -> SSAValue:
    """The address of the word of that number from an address on."""
    return builder.insert(llvm.GEPOp(address, [number], i64)).result
