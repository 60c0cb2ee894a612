"""The context of a call of a host program in machine code: a C struct, 8 bytes per field.

    runtime       the runtime's own data
    function      void (*)(context, name, args): the runtime's functions by name
    status        0; set by a function that fails
    inputs        for each argument a pointer to {data, sizes ...}
    outputs       for each result likewise, written by the program
    constants     for each constant its data, null until it is loaded
    shared_work   a launch on buffers of at least so many bytes is left to the runtime, which has threads
    buffers       linked list of the live buffers
    allocations   their number so far; bytes, peak_bytes: their current and their largest total size; limit: the largest that is allowed

Calls by name need only the first three. The layout is an interface: `lowering/cpu/host_runtime` and the
C header of a bundle define it too.
Source: docs/reference/4 4.1, 4.3.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm

FIELDS = (
    *("runtime", "function", "status"),
    *("inputs", "outputs", "constants", "shared_work", "buffers", "allocations", "bytes", "peak_bytes", "limit"),
)


def context_field(builder: Builder, context: SSAValue, name: str) -> SSAValue:
    """The address of a field."""
    return word_at(builder, context, FIELDS.index(name))


def word_at(builder: Builder, address: SSAValue, number: int) -> SSAValue:
    """The address of word `number` behind an address."""
    return builder.insert(llvm.GEPOp(address, [number], i64)).result
