"""The result of a compilation as plain values: a `Program`, its steps (`steps`), and what they name (`step_values`, `callees`).

    Program "gelu"                          parameters  p0 bf16[6,512,4096]          results  r0 bf16[6,512,4096]
      Launch "fusion": p0, r0
      Kernel "fusion"  grid 24576x1x1  block 128x1x1  shared 0 bytes
        argument 0  parameter 0   bf16[6,512,4096]  25165824 bytes, 16-byte aligned, slice 0, only read
        argument 1  result 0      bf16[6,512,4096]  25165824 bytes, 256-byte aligned, slice 1

Every platform (CuPy, the CPU, the bundle's script) executes these steps alone. They are frozen, printable and convert to JSON and back, so
that a kernel can be compiled here and launched on a machine that has neither xDSL nor LLVM.
"""

from xla_emitters.program.callees import Kernel as Kernel
from xla_emitters.program.callees import LibraryCall as LibraryCall
from xla_emitters.program.callees import ScalarArgument as ScalarArgument
from xla_emitters.program.compiled import LAUNCHERS as LAUNCHERS
from xla_emitters.program.compiled import Compilation as Compilation
from xla_emitters.program.compiled import Compiled as Compiled
from xla_emitters.program.compiled import Program as Program
from xla_emitters.program.step_values import Argument as Argument
from xla_emitters.program.step_values import Arrays as Arrays
from xla_emitters.program.step_values import ArraySpec as ArraySpec
from xla_emitters.program.step_values import Extents as Extents
from xla_emitters.program.step_values import LaunchDimensions as LaunchDimensions
from xla_emitters.program.step_values import Slot as Slot
