"""Replaces thread and block ids with a known range by calls of functions that are defined in LLVM IR.

    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
->
    %t = llvm.call @sreg.tid.x.0.128() : () -> i32
    llvm.func @sreg.tid.x.0.128() -> i32 attributes {xla.register = "tid.x", xla.register_range = #llvm.constant_range<i32, 0, 128>}

MLIR translates the range of an id to a call attribute. LLVM's correlated value propagation reads the attribute and rewrites the
arithmetic around the id: it narrows divisions to 16 bits, for which the machine has no instructions. XLA writes ranges as metadata, which
LLVM's pass does not read and MLIR cannot write. A function that is defined in LLVM IR can carry the metadata, and is inlined.

There is one declaration, at the module's end, per register and range, however many kernels there are; its location is that of all of
its ids. Not converted: registers that are not ids, ids without a range, and ranges that metadata cannot express (empty, or negative).
Source: docs/decisions/05 and 09.
"""

from __future__ import annotations

from collections import defaultdict

from xdsl.dialects.builtin import LocationAttr, ModuleOp, i32
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.locations import fuse_all, located_builder, replace_by
from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.rewrite.id_functions import declared_by, read_by
from xla_emitters.rewrite.kernel_pass import KernelPass


class ConvertIdsToCallsPass(KernelPass):
    name = "xla-convert-ids-to-calls"

    def apply_to(self, op: ModuleOp) -> None:
        functions = [function for function in op.body.ops if isinstance(function, llvm.FuncOp)]
        symbols = {function.sym_name.data: function for function in functions}
        sources = defaultdict[llvm.FuncOp, list[LocationAttr]](list[LocationAttr])
        for found in [inner for function in functions for inner in function.walk()]:
            if not isinstance(found, nvvm.SpecialRegisterOp) or (wanted := read_by(found)) is None:
                continue
            if not 0 <= wanted.low < wanted.high:
                self.skip(found, "its range is empty, or starts below 0")
                continue
            if (declared := symbols.get(wanted.name)) is None:
                declared = symbols[wanted.name] = wanted.declaration()
                op.body.block.add_op(declared)
            elif declared_by(declared) != wanted:
                self.skip(found, f"the module has another function called {wanted.name}")
                continue
            sources[declared].append(found.location)
            call = llvm.CallOp(wanted.name, return_type=i32)
            replace_by(found, located_builder(InsertPoint.before(found), found).insert(call).results)
        for declared, locations in sources.items():
            declared.location = fuse_all((declared.location, *locations))
