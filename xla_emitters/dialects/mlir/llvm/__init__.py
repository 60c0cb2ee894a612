"""The `llvm` dialect: xDSL's, with ops that it lacks and with corrected ones in place of some of its own.

    from xla_emitters.dialects.mlir import llvm

    %p = llvm.getelementptr inbounds %arg0[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %v = llvm.load %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
    %e = llvm.extractelement %v[%c2 : i32] : vector<4xbf16>
    %m = llvm.intr.maximum(%e, %f) : (bf16, bf16) -> bf16

This module exports all of xDSL's ops, and the ones of ours that other packages use, under xDSL's names. Intrinsics are in a table by
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

from xla_emitters.dialects.completion import classes_among, dialect_of
from xla_emitters.dialects.mlir.llvm import (
    atomics,
    calls,
    control,
    function_ops,
    intrinsics,
    memory_ops,
    metadata,
    values,
    vectors,
)
from xla_emitters.dialects.mlir.llvm.atomics import AtomicCmpXchgOp as AtomicCmpXchgOp
from xla_emitters.dialects.mlir.llvm.atomics import AtomicRMWOp as AtomicRMWOp
from xla_emitters.dialects.mlir.llvm.atomics import FenceOp as FenceOp
from xla_emitters.dialects.mlir.llvm.calls import AssumeOp as AssumeOp
from xla_emitters.dialects.mlir.llvm.calls import CallIntrinsicOp as CallIntrinsicOp
from xla_emitters.dialects.mlir.llvm.calls import CallOp as CallOp
from xla_emitters.dialects.mlir.llvm.calls import InlineAsmOp as InlineAsmOp
from xla_emitters.dialects.mlir.llvm.control import BrOp as BrOp
from xla_emitters.dialects.mlir.llvm.control import CondBrOp as CondBrOp
from xla_emitters.dialects.mlir.llvm.control import SwitchOp as SwitchOp
from xla_emitters.dialects.mlir.llvm.function_ops import EXTERNAL as EXTERNAL
from xla_emitters.dialects.mlir.llvm.function_ops import INTERNAL as INTERNAL
from xla_emitters.dialects.mlir.llvm.function_ops import CallingConventionAttr as CallingConventionAttr
from xla_emitters.dialects.mlir.llvm.function_ops import FuncOp as FuncOp
from xla_emitters.dialects.mlir.llvm.function_ops import GlobalOp as GlobalOp
from xla_emitters.dialects.mlir.llvm.function_ops import LinkageAttr as LinkageAttr
from xla_emitters.dialects.mlir.llvm.memory_ops import DYNAMIC_INDEX as DYNAMIC_INDEX
from xla_emitters.dialects.mlir.llvm.memory_ops import OF_BLOCK as OF_BLOCK
from xla_emitters.dialects.mlir.llvm.memory_ops import AllocaOp as AllocaOp
from xla_emitters.dialects.mlir.llvm.memory_ops import GEPOp as GEPOp
from xla_emitters.dialects.mlir.llvm.memory_ops import LoadOp as LoadOp
from xla_emitters.dialects.mlir.llvm.memory_ops import StoreOp as StoreOp
from xla_emitters.dialects.mlir.llvm.metadata import AliasScopeAttr as AliasScopeAttr
from xla_emitters.dialects.mlir.llvm.metadata import AliasScopeDomainAttr as AliasScopeDomainAttr
from xla_emitters.dialects.mlir.llvm.metadata import DICompileUnitAttr as DICompileUnitAttr
from xla_emitters.dialects.mlir.llvm.metadata import DIFileAttr as DIFileAttr
from xla_emitters.dialects.mlir.llvm.metadata import DISubprogramAttr as DISubprogramAttr
from xla_emitters.dialects.mlir.llvm.metadata import LoopUnrollAttr as LoopUnrollAttr
from xla_emitters.dialects.mlir.llvm.metadata import ModuleFlagAttr as ModuleFlagAttr
from xla_emitters.dialects.mlir.llvm.metadata import ModuleFlagsOp as ModuleFlagsOp
from xla_emitters.dialects.mlir.llvm.metadata import NoAliasScopeDeclOp as NoAliasScopeDeclOp
from xla_emitters.dialects.mlir.llvm.metadata import PoisonAttr as PoisonAttr
from xla_emitters.dialects.mlir.llvm.metadata import UndefAttr as UndefAttr
from xla_emitters.dialects.mlir.llvm.metadata import ZeroAttr as ZeroAttr
from xla_emitters.dialects.mlir.llvm.values import AddrSpaceCastOp as AddrSpaceCastOp
from xla_emitters.dialects.mlir.llvm.values import ConstantOp as ConstantOp
from xla_emitters.dialects.mlir.llvm.values import ConstantRangeAttr as ConstantRangeAttr
from xla_emitters.dialects.mlir.llvm.values import ExtractElementOp as ExtractElementOp
from xla_emitters.dialects.mlir.llvm.values import FCmpOp as FCmpOp
from xla_emitters.dialects.mlir.llvm.values import FPExtOp as FPExtOp
from xla_emitters.dialects.mlir.llvm.values import FPToSIOp as FPToSIOp
from xla_emitters.dialects.mlir.llvm.values import FPToUIOp as FPToUIOp
from xla_emitters.dialects.mlir.llvm.values import FPTruncOp as FPTruncOp
from xla_emitters.dialects.mlir.llvm.values import FreezeOp as FreezeOp
from xla_emitters.dialects.mlir.llvm.values import ICmpOp as ICmpOp
from xla_emitters.dialects.mlir.llvm.values import PoisonOp as PoisonOp
from xla_emitters.dialects.mlir.llvm.values import SelectOp as SelectOp
from xla_emitters.dialects.mlir.llvm.values import SIToFPOp as SIToFPOp
from xla_emitters.dialects.mlir.llvm.values import TruncOp as TruncOp
from xla_emitters.dialects.mlir.llvm.values import UIToFPOp as UIToFPOp
from xla_emitters.dialects.mlir.llvm.values import ZeroOp as ZeroOp


class _Constants(ConstantMaterializationInterface):
    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:  # noqa: A002 (xDSL's name)
        return values.ConstantOp(value, type)


_FILES = (values, memory_ops, atomics, control, calls, function_ops, metadata)
_CLASSES = {name: each for file in _FILES for name, each in vars(file).items()}

LLVM = dialect_of(  # pyright: ignore[reportConstantRedefinition]  # xDSL's has that name
    upstream.LLVM,
    [*classes_among(_CLASSES, Operation, upstream.LLVM), *intrinsics.OPERATIONS, *vectors.OPERATIONS],
    classes_among(_CLASSES, Attribute, upstream.LLVM),
    [_Constants()],
    names=globals(),
)

INTRINSICS: Mapping[str, type[Operation]] = {
    op.name.removeprefix("llvm.intr."): op for op in LLVM.operations if op.name.startswith("llvm.intr.")
}
"""The ops `llvm.intr.<name>` by their name, xDSL's and ours."""

MaskedStoreOp = INTRINSICS["masked.store"]
