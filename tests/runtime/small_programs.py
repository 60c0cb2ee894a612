"""Small fusions whose whole grids can be run, and that still exercise every kind of code.

On t4 a result of 40,960 elements fills the chip, so from there on a thread takes four of them: loops, vectors and unrolling are
exercised by grids of some 80 blocks.
"""

from collections.abc import Sequence

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.program import Argument, Program
from xla_emitters.runtime.cpu.cpu_launcher import buffers_of

TARGET = "t4"

GELU = """
HloModule small_gelu
gelu {
  %param = bf16[5,64,128] parameter(0)
  %constant_0 = bf16[] constant(0.5)
  %bcast_0 = bf16[5,64,128] broadcast(bf16[] %constant_0), dimensions={}
  %constant_1 = bf16[] constant(1)
  %bcast_1 = bf16[5,64,128] broadcast(bf16[] %constant_1), dimensions={}
  %constant_2 = bf16[] constant(0.79785)
  %bcast_2 = bf16[5,64,128] broadcast(bf16[] %constant_2), dimensions={}
  %constant_3 = bf16[] constant(0.044708)
  %bcast_3 = bf16[5,64,128] broadcast(bf16[] %constant_3), dimensions={}
  %square = bf16[5,64,128] multiply(%param, %param)
  %cube = bf16[5,64,128] multiply(%square, %param)
  %multiply_3 = bf16[5,64,128] multiply(%cube, %bcast_3)
  %add_1 = bf16[5,64,128] add(%param, %multiply_3)
  %multiply_2 = bf16[5,64,128] multiply(%add_1, %bcast_2)
  %tanh_0 = bf16[5,64,128] tanh(%multiply_2)
  %add_0 = bf16[5,64,128] add(%tanh_0, %bcast_1)
  %multiply_1 = bf16[5,64,128] multiply(%add_0, %bcast_0)
  ROOT %multiply_0 = bf16[5,64,128] multiply(%param, %multiply_1)
}
ENTRY main {
  %param = bf16[5,64,128] parameter(0)
  ROOT %fusion = bf16[5,64,128] fusion(%param), kind=kLoop, calls=gelu
}
"""

# 41,000 elements: four a thread, and the last block is not full, so the bounds check stays.
RAGGED = """
HloModule ragged
scale {
  %x = f32[41,1000] parameter(0)
  %y = f32[1000] parameter(1)
  %b = f32[41,1000] broadcast(%y), dimensions={1}
  %p = f32[41,1000] multiply(%x, %b)
  %s = f32[41,1000] subtract(%p, %x)
  %c = pred[41,1000] compare(%s, %x), direction=LT
  ROOT %r = f32[41,1000] select(%c, %s, %p)
}
ENTRY main {
  %x = f32[41,1000] parameter(0)
  %y = f32[1000] parameter(1)
  ROOT %fusion = f32[41,1000] fusion(%x, %y), kind=kLoop, calls=scale
}
"""

# One element per thread, an odd number of them, bytes.
BYTES = """
HloModule bytes
flip {
  %x = s8[1003] parameter(0)
  %n = s8[1003] not(%x)
  %w = s32[1003] convert(%n)
  %k = s32[] constant(7)
  %b = s32[1003] broadcast(%k), dimensions={}
  %a = s32[1003] add(%w, %b)
  ROOT %r = s8[1003] convert(%a)
}
ENTRY main {
  %x = s8[1003] parameter(0)
  ROOT %fusion = s8[1003] fusion(%x), kind=kLoop, calls=flip
}
"""

# Two results of different shapes that share a value.
TWO_RESULTS = """
HloModule two_results
both {
  %x = f32[8,64] parameter(0)
  %e = f32[8,64] exponential(%x)
  %n = f32[8,64] negate(%e)
  %flat = f32[512] bitcast(%n)
  ROOT %t = (f32[8,64], f32[512]) tuple(%e, %flat)
}
ENTRY main {
  %x = f32[8,64] parameter(0)
  ROOT %fusion = (f32[8,64], f32[512]) fusion(%x), kind=kLoop, calls=both
}
"""

PROGRAMS = {"gelu": GELU, "ragged": RAGGED, "bytes": BYTES, "two_results": TWO_RESULTS}

CHANGE_NOTHING = (
    *("xla-select-fusion", "xla-remove-no-ops", "xla-unwrap-async", "xla-stitch-rows", "xla-fuse-loops"),
    *("xla-fuse-scans", "xla-merge-fusions", "xla-warn-recomputation", "xla-split-sorts"),
)
"""Passes on HLO that do not change this module: no choice or warning applies, no row is read again, there is no loop and no sort, no two
fusions become one (tests of their own have those), and what two of them remove has no value in NumPy."""

# Every other pass on HLO changes something of this one: a tuple goes in; a constant is an operand; no one kernel
# makes both sums; 4,100 rows are more than one block adds up; the scattered array is wanted elsewhere; a parameter is a result; there is a
# call, and an instruction outside fusions.
EVERY_PASS_ON_HLO = """
HloModule every_pass_on_hlo
add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
more {
  %a = s32[] parameter(0)
  %b = s32[] parameter(1)
  ROOT %sum = s32[] add(%a, %b)
}
column {
  %x = f32[4100,3] parameter(0)
  %k = f32[] parameter(1)
  %r = f32[3] reduce(%x, %k), dimensions={0}, to_apply=add
  ROOT %n = f32[3] negate(%r)
}
sizes {
  %x = f32[8,6] parameter(0)
  %z = f32[] constant(0)
  %row = f32[8] reduce(%x, %z), dimensions={1}, to_apply=add
  %col = f32[6] reduce(%x, %z), dimensions={0}, to_apply=add
  ROOT %t = (f32[8], f32[6]) tuple(%row, %col)
}
scattered {
  %p = s32[9] parameter(0)
  %rows = s32[5] parameter(1)
  %u = s32[5] parameter(2)
  ROOT %s = s32[9] scatter(%p, %rows, %u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=more
}
turned {
  %x = f32[3] parameter(0)
  ROOT %back = f32[3] reverse(%x), dimensions={0}
}
ENTRY main {
  %pair = (f32[4100,3], f32[8,6]) parameter(0)
  %large = f32[4100,3] get-tuple-element(%pair), index=0
  %small = f32[8,6] get-tuple-element(%pair), index=1
  %array = s32[9] parameter(1)
  %rows = s32[5] parameter(2)
  %u = s32[5] parameter(3)
  %k = f32[] constant(3)
  %c = f32[3] fusion(%large, %k), kind=kCustom, calls=column,
      backend_config={"fusion_backend_config":{"kind":"__triton"}}
  %turn = f32[3] call(%c), to_apply=turned
  %s = (f32[8], f32[6]) fusion(%small), kind=kInput, calls=sizes
  %w = s32[9] fusion(%array, %rows, %u), kind=kInput, calls=scattered
  ROOT %all = (f32[3], (f32[8], f32[6]), s32[9], s32[9]) tuple(%turn, %s, %w, %array)
}
"""


def changes(names: Sequence[str]) -> list[bool]:
    """For each pass on HLO, in their order, whether it changes EVERY_PASS_ON_HLO; xla-split-results does so the first time alone."""
    return [name not in (*CHANGE_NOTHING, *names[:number]) for number, name in enumerate(names)]


def buffers_for(program: Program, inputs: Sequence[Array], arguments: Sequence[Argument]) -> list[Array]:
    """The buffers of a kernel's arguments: the program's inputs, and zeros for all others."""
    given = buffers_of(program, inputs)
    return [
        given[argument.index]
        if argument.kind == "parameter"
        else np.zeros(argument.array.elements, dtype(argument.array.dtype).numpy)
        for argument in arguments
    ]
