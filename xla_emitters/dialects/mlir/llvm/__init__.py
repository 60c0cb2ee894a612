"""The `llvm` dialect: xDSL's, with ops that it lacks and with corrected ones in place of some of its own.

    from xla_emitters.dialects.mlir import llvm

    %p = llvm.getelementptr inbounds %arg0[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %v = llvm.load %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
    %e = llvm.extractelement %v[%c2 : i32] : vector<4xbf16>
    %m = llvm.intr.maximum(%e, %f) : (bf16, bf16) -> bf16

This module exports all of xDSL's ops, and ours in their places, under xDSL's names. Intrinsics are in a table by
their name: `INTRINSICS["fshl"]` is `llvm.intr.fshl`. Both text forms of every op are those of MLIR 22. Redefined, with the reason:
  constant      ours folds, so that canonicalisation and CSE treat it as a constant
  getelementptr xDSL has `inbounds` beside `noWrapFlags`, and the generic form loses it
  load, store   no invariant, volatile, syncscope; atomic stores not read
  icmp, fcmp    no pointers; no vectors, fastmath flags lost
  select        no vector of conditions
  mlir.zero     no vectors
  trunc         overflow flags in a form that MLIR does not read
  global        the generic form loses unnamed_addr and visibility
  func, call    linkage internal by default, which lets LLVM drop a kernel; value names are not scoped to the function
  br, cond_br   no weights, no loop annotations
  alloca        aligned to 32 by default
  call_intrinsic, masked.store    no operand bundles; floats only
  inline_asm    parts in an order that MLIR does not read
  fpext, fptrunc, sitofp          check neither kinds, shapes nor widths
  #llvm.linkage, #llvm.cconv      the word in quotes; no words for kernels
Each file of this package has the ops of one kind.
Source: MLIR 22, LLVM dialect, as `mlir-opt` reads and prints it; docs/reference/3 sections 0 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects import llvm as upstream
from xdsl.dialects.llvm import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.mlir.llvm import intrinsics, values, vectors
from xla_emitters.dialects.mlir.llvm.atomics import *  # noqa: F403
from xla_emitters.dialects.mlir.llvm.calls import *  # noqa: F403
from xla_emitters.dialects.mlir.llvm.control import *  # noqa: F403
from xla_emitters.dialects.mlir.llvm.function_ops import *  # noqa: F403
from xla_emitters.dialects.mlir.llvm.memory_ops import *  # noqa: F403
from xla_emitters.dialects.mlir.llvm.metadata import *  # noqa: F403
from xla_emitters.dialects.mlir.llvm.values import *  # noqa: F403


class _Constants(ConstantMaterializationInterface):
    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:  # noqa: A002 (xDSL's name)
        return values.ConstantOp(value, type)


LLVM = dialect_of(  # pyright: ignore[reportConstantRedefinition]  # xDSL's has that name
    upstream.LLVM,
    (*intrinsics.OPERATIONS, *vectors.OPERATIONS),
    interfaces=[_Constants()],
    names=globals(),
)

INTRINSICS: Mapping[str, type[Operation]] = {
    op.name.removeprefix("llvm.intr."): op for op in LLVM.operations if op.name.startswith("llvm.intr.")
}
"""The ops `llvm.intr.<name>` by their name, xDSL's and ours."""

MaskedStoreOp = INTRINSICS["masked.store"]
