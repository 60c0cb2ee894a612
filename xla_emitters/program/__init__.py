"""The result of a compilation as plain values: a `Program`, which is a list of steps (`planning` makes it); a `Kernel` is one kind of step.

    Program "gelu"                          parameters  p0 bf16[6,512,4096]          results  r0 bf16[6,512,4096]
      Kernel "fusion"  grid 24576x1x1  block 128x1x1  shared 0 bytes
        argument 0  parameter 0   bf16[6,512,4096]  25165824 bytes, 16-byte aligned, slice 0, only read
        argument 1  result 0      bf16[6,512,4096]  25165824 bytes, 256-byte aligned, slice 1

The other steps, for programs with more than kernels:

    LibraryCall   a call of a library's function: operands, results, and its configuration
    Allocation    allocates a temporary
    Release       frees it
    Copy          copies one array to another
    Loop          steps that decide, steps that repeat while the decision is true
    Branch        steps chosen by a number or a predicate

Every launcher (CuPy, the CPU executor, the bundle's script) executes these steps alone. They are frozen, printable and convert to JSON and
back, so that a kernel can be compiled here and launched on a machine that has neither xDSL nor LLVM.
"""

from xla_emitters.program.arrays import (
    Argument,
    ArraySpec,
    Extents,
    Launch,
    Slot,
    SlotArray,
)
from xla_emitters.program.as_json import array_from_json, kernel_from_json, kernel_json, step_json
from xla_emitters.program.compiled import LAUNCHERS, Program
from xla_emitters.program.steps import (
    Allocation,
    Branch,
    Copy,
    Kernel,
    LibraryCall,
    Loop,
    Release,
    Step,
    kernels_in,
    on_slots,
    steps_in,
)

__all__ = [
    "LAUNCHERS",
    "Allocation",
    "Argument",
    "ArraySpec",
    "Branch",
    "Copy",
    "Extents",
    "Kernel",
    "Launch",
    "LibraryCall",
    "Loop",
    "Program",
    "Release",
    "Slot",
    "SlotArray",
    "Step",
    "array_from_json",
    "kernel_from_json",
    "kernel_json",
    "kernels_in",
    "on_slots",
    "step_json",
    "steps_in",
]
