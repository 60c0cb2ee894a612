"""Functions that PTX declares and calls, and that a GPU's system defines: memory of the device's heap, and barriers of the grid.

    .extern .func (.param .b64 r) malloc(.param .b64 n);        has the body below from here on

The heap has 8 MiB, as CUDA's has by default, and begins empty at each launch; where it is full, `malloc` gives a null pointer. What is
freed is not given again. An access that leaves its piece and stays in the heap is not found: pieces are 16 bytes apart or a multiple.
A barrier of the grid is that of cooperative groups: the first block adds what turns the counter's highest bit once all others have added 1.
Source: CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

from dataclasses import replace

from xla_emitters.text.ptx.syntax import Instruction, PtxFunction, PtxModule

TEXT = """.version 8.0 .target sm_70 .address_size 64
.global .align 16 .b8 __heap_of_device[8388608];
.global .align 8 .u64 __heap_in_use;
.func (.param .b64 found) malloc(.param .b64 bytes) {
  .reg .b64 %size, %before, %after, %at; .reg .pred %is_full;
  ld.param.b64 %size, [bytes]; max.u64 %size, %size, 1; min.u64 %size, %size, 16777216; add.u64 %size, %size, 15; and.b64 %size, %size, -16;
  atom.global.add.u64 %before, [__heap_in_use], %size; add.u64 %after, %before, %size; setp.gt.u64 %is_full, %after, 8388608;
  mov.u64 %at, __heap_of_device; cvta.global.u64 %at, %at; add.u64 %at, %at, %before; selp.b64 %at, 0, %at, %is_full;
  st.param.b64 [found], %at; ret;
}
.func free(.param .b64 address) { ret; }
.global .align 4 .u32 __blocks_at_barrier;
.func (.param .b64 found) cudaCGGetIntrinsicHandle(.param .b32 scope) {
  .reg .b64 %handle; ld.param.u32 %handle, [scope]; st.param.b64 [found], %handle; ret;
}
.func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) {
  .reg .b64 %scope; .reg .b32 %a, %b, %c, %added, %before, %now; .reg .pred %is_other, %waits;
  st.param.b32 [error], 0; ld.param.b64 %scope, [handle]; setp.ne.u64 %is_other, %scope, 1; @%is_other trap;
  barrier.sync 0; mov.u32 %a, %tid.x; mov.u32 %b, %tid.y; mov.u32 %c, %tid.z; or.b32 %a, %a, %b; or.b32 %a, %a, %c;
  setp.ne.u32 %is_other, %a, 0; @%is_other bra DONE;
  mov.u32 %a, %ctaid.x; mov.u32 %b, %ctaid.y; mov.u32 %c, %ctaid.z; or.b32 %a, %a, %b; or.b32 %a, %a, %c;
  setp.ne.u32 %is_other, %a, 0; mov.u32 %a, %nctaid.x; mov.u32 %b, %nctaid.y; mul.lo.u32 %a, %a, %b; mov.u32 %b, %nctaid.z;
  mul.lo.u32 %a, %a, %b; sub.u32 %added, 0x80000001, %a; selp.u32 %added, 1, %added, %is_other;
  fence.acq_rel.gpu; atom.global.add.u32 %before, [__blocks_at_barrier], %added;
AGAIN: ld.acquire.gpu.global.u32 %now, [__blocks_at_barrier]; xor.b32 %now, %now, %before; setp.ge.s32 %waits, %now, 0; @%waits bra AGAIN;
DONE: barrier.sync 0; ret;
}
"""


def add_system_functions(module: PtxModule, system: PtxModule) -> PtxModule:
    """Gives functions that a module declares and does not define the bodies that `system`, which was read from `TEXT`, has."""
    for name, function in system.functions.items():
        declared = module.functions.get(name)
        if declared is not None and declared.body is None and _takes_the_same(declared, function):
            module.functions[name] = _at(function, declared)
            for variable in system.variables.values():
                module.variables.setdefault(variable.name, replace(variable, start=declared.start))
    return module


def _takes_the_same(one: PtxFunction, other: PtxFunction) -> bool:
    def sizes(function: PtxFunction) -> list[list[int]]:
        return [[variable.size for variable in part] for part in (function.results, function.parameters)]

    return sizes(one) == sizes(other)


def _at(function: PtxFunction, declared: PtxFunction) -> PtxFunction:
    """The function with the place of its declaration, which is the only one that the text has."""
    place = {"start": declared.start, "end": declared.end}
    body = [
        replace(item, **place) if isinstance(item, Instruction) else replace(item, start=declared.start)
        for item in function.body or ()
    ]
    return replace(function, **place, body=body)
