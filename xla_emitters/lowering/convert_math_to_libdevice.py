"""Replaces functions without hardware instructions by calls of NVIDIA's device library.

    %y = math.tanh %x : bf16
->
    %0 = arith.extf %x : bf16 to f32
    %1 = func.call @__nv_tanhf(%0) : (f32) -> f32
    %y = arith.truncf %1 : f32 to bf16                       // and func.func private @__nv_tanhf(f32) -> f32 in the module

f32 calls `__nv_<name>f`, f64 `__nv_<name>`; f16 and bf16 go through f32. With fastmath<afn> f32, f16 and bf16 call the fast
variant if there is one (`__nv_fast_expf`). Ops that LLVM compiles to one or two instructions (absf, fma, floor, ceil, trunc, roundeven,
copysign, bit counts) are left for xla-lower-to-llvm-gpu. sqrt is converted: LLVM's is correctly rounded and takes 30 instructions,
libdevice's is `sqrt.approx.f32`, as XLA's. So is round: NVPTX compiles it to compares and selects, libdevice to one addition that rounds
to zero. Ops on vectors are left too; no emitter makes them. A declaration has the locations of all ops that call it.
Source: docs/reference/2 3.3 "xla-lower-to-llvm-gpu"; the table of names is in `libdevice_calls.py`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.lowering.libdevice_calls import call_libdevice
from xla_emitters.rewrite.kernel_pass import KernelPass


class ConvertMathToLibdevicePass(KernelPass):
    name = "xla-convert-math-to-libdevice"

    def apply_to(self, op: ModuleOp) -> None:
        call_libdevice(op, self.skip)
