"""For CPUs: turns a kernel in the LLVM dialect into a plain function that any code can call.

    llvm.mlir.global external @launch_shared_0() {addr_space = 3}
    llvm.func @k(%x: !llvm.ptr, ..., %begin: i64, %end: i64) attributes {nvvm.kernel, nvvm.reqntid = ...} {
      %0 = llvm.mlir.addressof @launch_shared_0
      %1 = llvm.addrspacecast %0 : !llvm.ptr<3> to !llvm.ptr
->
    llvm.func @k(%x: !llvm.ptr, ..., %begin: i64, %end: i64, %scratch: !llvm.ptr {llvm.noalias, llvm.align = 64}) {

Shared memory of a block: memory whose size the launch sets is the last argument, which the caller allocates; a variable is on the stack.
The functions of libdevice stay declarations: `cpu_functions` defines them.
Source: docs/reference/4 3.7 (arguments).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.mlir import llvm
from xla_emitters.rewrite.kernel_entry import KERNEL
from xla_emitters.rewrite.kernel_pass import KernelPass

POINTER = llvm.LLVMPointerType()
SCRATCH_ALIGNMENT = 64
"""The alignment of a block's memory, in bytes."""


class DiscCpuEntryPass(KernelPass):
    name = "disc-cpu-entry"

    def apply_to(self, op: ModuleOp) -> None:
        variables = {found.sym_name.data: found for found in op.ops if isinstance(found, llvm.GlobalOp)}
        for function in [found for found in op.ops if isinstance(found, llvm.FuncOp) and found.body.blocks]:
            self.function(function, variables)
        for variable in variables.values():
            Rewriter.erase_op(variable)

    def function(self, function: llvm.FuncOp, variables: dict[str, llvm.GlobalOp]) -> None:
        entry = function.body.blocks[0]
        scratch = entry.insert_arg(POINTER, len(entry.args))
        scratch.name_hint = "scratch"
        for found in list(function.walk()):
            if not isinstance(found, llvm.AddressOfOp):
                continue
            variable = variables[found.global_name.string_value()]
            memory = scratch
            if variable.value is not None or variable.linkage.linkage.data != "external":
                one = llvm.ConstantOp(IntegerAttr(1, i64), i64)
                made = llvm.AllocaOp(one.result, variable.global_type, SCRATCH_ALIGNMENT)
                Rewriter.insert_op([one, made], InsertPoint.at_start(entry))
                memory = made.results[0]
            for use in list(found.result.uses):
                if not isinstance(use.operation, llvm.AddrSpaceCastOp):
                    raise self.refuse(use.operation, f"'{use.operation.name}' of memory of a block")
                Rewriter.replace_op(use.operation, [], [memory])
            Rewriter.erase_op(found)
        inputs = [*function.function_type.inputs, POINTER]
        function.properties["function_type"] = llvm.LLVMFunctionType(inputs, None)
        facts = DictionaryAttr({"llvm.noalias": UnitAttr(), "llvm.align": IntegerAttr(SCRATCH_ALIGNMENT, IndexType())})
        given = list(function.arg_attrs or ()) or [DictionaryAttr({})] * (len(inputs) - 1)
        function.properties["arg_attrs"] = ArrayAttr([*given, facts])
        for name in [name for name in function.attributes if name == KERNEL or name.startswith("nvvm.")]:
            del function.attributes[name]
