"""The result of a compilation as plain values: a `Program`, its steps (`steps`), and what they name (`step_values`, `callees`).

    Program "gelu"                          parameters  p0 bf16[6,512,4096]          results  r0 bf16[6,512,4096]
      Launch "fusion": p0, r0
      Kernel "fusion"  grid 24576x1x1  block 128x1x1  shared 0 bytes
        argument 0  parameter 0   bf16[6,512,4096]  25165824 bytes, 16-byte aligned, slice 0, only read
        argument 1  result 0      bf16[6,512,4096]  25165824 bytes, 256-byte aligned, slice 1

Every platform (CuPy, the CPU, the bundle's script) executes these steps alone. They are frozen, printable and convert to JSON and back, so
that a kernel can be compiled here and launched on a machine that has neither xDSL nor LLVM.
"""

from xla_emitters.program.callees import Kernel, LibraryCall, ScalarArgument
from xla_emitters.program.compiled import LAUNCHERS, Compilation, Compiled, Program
from xla_emitters.program.step_values import (
    Argument,
    Arrays,
    ArraySpec,
    Extents,
    LaunchDimensions,
    Slot,
)

__all__ = [
    "LAUNCHERS",
    "Argument",
    "ArraySpec",
    "Arrays",
    "Compilation",
    "Compiled",
    "Extents",
    "Kernel",
    "LaunchDimensions",
    "LibraryCall",
    "Program",
    "ScalarArgument",
    "Slot",
]
