"""Compiles kernels in the LLVM dialect to machine code of this CPU, in this process, with llvmlite.

    code = HostCode(module)                      O3 for this CPU, with all its vector instructions
    code.address("main_kLoop_add_0")             of a function: pointers, numbers, begin, end, scratch
    host_object(text, {"ral_main": "gelu_main"})     the same as an object file, for a linker
    data = object_code(text)                     the same in two steps: one process compiles ...
    LoadedCode(data).address(...)                ... and another one runs the code

Kernels call functions of `host_functions` or of the C library. Code is cached by its LLVM IR, so a program compiled again reuses it.
Source: llvmlite 0.50, "LLVM binding layer".
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.lowering.host_functions import definition
from xla_emitters.lowering.llvm_ir.printer import print_llvm_ir
from xla_emitters.lowering.tools import LLVMLITE_HELP

STAGE = "cpu"


def is_installed() -> bool:
    """Whether llvmlite can be imported."""
    return find_spec("llvmlite") is not None


def describe_cpu() -> str:
    """LLVM's name of this CPU. raises ToolError if llvmlite is not installed"""
    binding, _ = _machine()
    return binding.get_host_cpu_name()


def cpu_fingerprint() -> str:
    """A text that differs between CPUs whose machine code may differ. raises ToolError if llvmlite is not installed"""
    binding, _ = _machine()
    features = binding.get_host_cpu_features().flatten()
    return f"{binding.llvm_version_info} {binding.get_process_triple()} {binding.get_host_cpu_name()} {features}"


def vector_bytes() -> int:
    """Bytes of a vector register of this CPU. raises ToolError if llvmlite is not installed"""
    binding, _ = _machine()
    features = binding.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def host_ir(module: ModuleOp) -> str:
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


class HostCode:
    """See the file's head.

    text    LLVM IR
    raises  ToolError if llvmlite is not installed, or LLVM refuses the text
    """

    def __init__(self, text: str) -> None:
        self._engine = _compiled(text)

    def address(self, name: str) -> int:
        """The address of a function."""
        return self._engine.get_function_address(name)


_CODE = dict[str, Any]()
_LOCK = Lock()


def _compiled(text: str) -> Any:
    with _LOCK:
        if text not in _CODE:
            _CODE[text] = _engine(text)
        return _CODE[text]


@cache
def _machine() -> tuple[Any, Callable[..., Any]]:
    """llvmlite's binding, and the function that makes a target machine for this CPU."""
    try:
        binding: Any = import_module("llvmlite.binding")
    except ImportError as error:
        raise ToolError("llvmlite is not installed", stage=STAGE, help=LLVMLITE_HELP) from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    if (library := ctypes.util.find_library("m")) is not None:
        binding.load_library_permanently(library)
    target = binding.Target.from_default_triple()
    cpu, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return binding, partial(target.create_target_machine, cpu=cpu, features=features, opt=3)


def host_object(text: str, names: Mapping[str, str]) -> bytes:
    """An object file of position-independent code for this CPU.

    text    LLVM IR
    names   function in `text` -> the name that a linker sees; the other functions are not exported
    raises  as `HostCode`
    """
    _, make = _machine()
    machine = make(reloc="pic", codemodel="default")
    return machine.emit_object(_optimized(text, machine, names))


def object_code(text: str) -> bytes:
    """Machine code of this CPU as an object file, for `LoadedCode` in a process of the same machine. raises ToolError as `HostCode`"""
    _, make = _machine()
    machine = make(jit=True)
    return machine.emit_object(_optimized(text, machine))


class LoadedCode:
    """The functions of an object file made by `object_code`. The code stays loaded as long as this object exists.

    raises  ToolError if llvmlite is not installed, or the bytes are not an object file
    """

    def __init__(self, data: bytes) -> None:
        binding, make = _machine()
        if data[:4] not in OBJECT_FILES:
            raise ToolError("this is not an object file", stage=STAGE)
        machine = make(jit=True)
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


OBJECT_FILES = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"d\x86\x00\x00")
"""The first bytes of object files: ELF, Mach-O, COFF."""


def _engine(text: str) -> Any:
    binding, make = _machine()
    machine = make(jit=True)
    engine = binding.create_mcjit_compiler(_optimized(text, machine), machine)
    engine.finalize_object()
    return engine


def _optimized(text: str, machine: Any, names: Mapping[str, str] | None = None) -> Any:
    """The module after O3; `names` as in `host_object`."""
    binding, _ = _machine()
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise ToolError(f"LLVM refuses the kernels: {error}", stage=STAGE) from error
    module.triple, module.data_layout = binding.get_process_triple(), str(machine.target_data)
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm."):
            # LLVM would abort the process if a function were missing.
            if not binding.address_of_symbol(function.name):
                raise ToolError(f"the C library has no function '{function.name}'", stage=STAGE)
    if " half " in text and binding.get_host_cpu_features().get("f16c", True) is False:
        raise ToolError("this CPU converts no f16: LLVM would call functions that are in no library", stage=STAGE)
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
