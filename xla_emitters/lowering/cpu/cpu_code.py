"""Compiles kernels in the LLVM dialect to machine code of a CPU (`cpu_target`), and runs it in this process, with llvmlite.

    code = CpuCode(text, cpu)                   O3 for this CPU, with all its vector instructions
    code.address("main_kLoop_add_0")             of a function: pointers, numbers, begin, end, scratch
    cpu_object(text, {"ral_main": "gelu_main"}, cpu)     the same as an object file, for a linker
    data = object_code(text, cpu)                the same in two steps: one process compiles ...
    LoadedCode(data).address(...)                ... and another one runs the code

Kernels call functions of `cpu_functions` or of the C library. LLVM may add calls that are not in its input; code that calls a function
that the C library does not have is refused as soon as it is made. Code is cached by its LLVM IR and CPU, so a program compiled again reuses
it.
Source: llvmlite 0.50, "LLVM binding layer".
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.lowering.cpu.cpu_functions import definition
from xla_emitters.lowering.cpu.cpu_target import (
    NATIVE,
    STAGE,
    CpuTarget,
    cpu_target,
    is_object,
    llvm_binding,
    undefined_symbols,
)
from xla_emitters.lowering.llvm_ir.llvm_ir_printer import print_llvm_ir


def cpu_ir(module: ModuleOp) -> str:
    """The module as LLVM IR, with the functions that it calls. raises Unsupported for a function or op that has no CPU code here"""
    copy = module.clone()
    for op in copy.walk():
        if op.name.startswith("nvvm.") or (
            isinstance(op, llvm.CallIntrinsicOp) and op.intrin.data.startswith("llvm.nvvm.")
        ):
            # LLVM would abort the process.
            raise Unsupported(f"a GPU's {op.name} has no code on a CPU", stage=STAGE)
    definitions = list[str]()
    for op in list(copy.ops):
        if isinstance(op, llvm.FuncOp) and not op.body.blocks:
            definitions.append(definition(op))
            op.detach()
            op.erase(safe_erase=False)
    seen = dict.fromkeys(line for text in definitions for line in text.splitlines() if line.startswith("declare "))
    bodies = ("\n".join(line for line in text.splitlines() if not line.startswith("declare ")) for text in definitions)
    return "\n\n".join((print_llvm_ir(copy), *seen, *bodies)) + "\n"


class CpuCode:
    """See the file's head.

    text    LLVM IR
    raises  ToolError if LLVM refuses the text, or the code calls a function that does not exist; UsageError if this machine lacks
            instructions of `cpu`
    """

    def __init__(self, text: str, cpu: CpuTarget) -> None:
        self.address = _loaded(text, cpu).address


_CODE = dict[tuple[str, CpuTarget], "LoadedCode"]()
_LOCK = Lock()


def _loaded(text: str, cpu: CpuTarget) -> LoadedCode:
    with _LOCK:
        if (text, cpu) not in _CODE:
            _CODE[text, cpu] = LoadedCode(object_code(text, cpu))
        return _CODE[text, cpu]


def cpu_object(text: str, names: Mapping[str, str], cpu: CpuTarget) -> bytes:
    """An object file of position-independent code for this CPU.

    text    LLVM IR
    names   function in `text` -> the name that a linker sees; the other functions are not exported
    raises  ToolError as `CpuCode`
    """
    machine = cpu.machine(reloc="pic", codemodel="default")
    return _resolved(machine.emit_object(_optimized(text, machine, names)))


def object_code(text: str, cpu: CpuTarget) -> bytes:
    """Machine code as an object file, for `LoadedCode` in a process of the same machine. raises as `CpuCode`"""
    cpu.refuse_to_run()
    machine = cpu.machine(jit=True)
    return _resolved(machine.emit_object(_optimized(text, machine)))


def _resolved(data: bytes) -> bytes:
    """The object file, if the C library has all functions that it calls. raises ToolError naming those that it has not"""
    binding = llvm_binding()
    if missing := [name for name in undefined_symbols(data) if not binding.address_of_symbol(name)]:
        raise ToolError(f"the C library has no function {', '.join(map(repr, missing))}", stage=STAGE)
    return data


def plain_code(text: str) -> LoadedCode:
    """Machine code for this machine as the text says it, without passes of LLVM: for a few functions, in a tenth of the time."""
    machine = cpu_target(NATIVE).machine(opt=0, jit=True)
    return LoadedCode(_resolved(machine.emit_object(_parsed(text, machine))))


class LoadedCode:
    """The functions of an object file made by `object_code`. The code stays loaded as long as this object exists.

    raises  ToolError if llvmlite is not installed, or the bytes are not an object file
    """

    def __init__(self, data: bytes) -> None:
        binding = llvm_binding()
        if not is_object(data):
            raise ToolError("this is not an object file", stage=STAGE)
        machine = cpu_target(NATIVE).machine(jit=True)
        holder = binding.parse_assembly("")
        holder.triple, holder.data_layout = binding.get_process_triple(), str(machine.target_data)
        self._engine = binding.create_mcjit_compiler(holder, machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(data))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function. raises ToolError if it does not exist"""
        if not (found := self._engine.get_function_address(name)):
            raise ToolError(f"the object file has no function '{name}'", stage=STAGE)
        return found


def _optimized(text: str, machine: Any, names: Mapping[str, str] | None = None) -> Any:
    """The module after O3; `names` as in `cpu_object`."""
    binding, module = llvm_binding(), _parsed(text, machine)
    for function in module.functions:
        if names is not None and not function.is_declaration:
            if function.name in names:
                function.name = names[function.name]
            else:
                function.linkage = "internal"
    tuning = binding.create_pipeline_tuning_options(3)
    tuning.loop_interleaving = tuning.loop_unrolling = True
    tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


def _parsed(text: str, machine: Any) -> Any:
    try:
        module = llvm_binding().parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise ToolError(f"LLVM refuses the kernels: {error}", stage=STAGE) from error
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module
