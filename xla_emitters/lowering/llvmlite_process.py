"""LLVM as llvmlite has it, in a process of its own: LLVM IR on stdin, PTX on stdout.

    python -P llvmlite_process.py ptx sm_90 +ptx86 -nvptx-prec-divf32=1 ... < job > kernel.ptx

The job is a line of JSON, then the LLVM IR:

    {"libraries": ["libdevice.10.bc", "ids.ll"], "keep": null}
    define ptx_kernel void @f(ptr %p) ...

What is linked becomes internal, and what nothing calls is dropped. Then come LLVM's O3 with the target's own passes, among them the one
that decides how libdevice treats denormal numbers, and the code generator. The first argument says what is wanted: `ptx`, or `llvm`
for the optimised LLVM IR. With `keep`, a directory, kernel-linked.ll and kernel-opt.ll are left there.

Why a process: LLVM ends its process where it meets what it cannot compile, and its options are set once. It is started before the kernel is
compiled, and loads meanwhile. Run as a file, for it needs nothing of this package. Exit 1 with `error: ...` on stderr where LLVM refuses.
Source: llvmlite 0.50, "LLVM binding layer"; MLIR 22, ModuleToObject.cpp, which this does as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

TRIPLE = "nvptx64-nvidia-cuda"
LLVM_MAJOR = 22


def main(arguments: Sequence[str]) -> int:
    """arguments: what is wanted, the chip, its features, options of LLVM."""
    wanted, chip, features, *options = arguments
    binding: Any = import_module("llvmlite.binding")
    if binding.llvm_version_info[0] != LLVM_MAJOR:
        print(f"error: this llvmlite has LLVM {binding.llvm_version_info[0]}; {LLVM_MAJOR} is needed", file=sys.stderr)
        return 1
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    for option in options:
        binding.set_option("llvmlite", option)
    job, _, text = sys.stdin.buffer.read().partition(b"\n")
    if not job:
        return 0  # nothing was to compile after all
    target = binding.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(cpu=chip, features=features, opt=3, codemodel="default")
    try:
        answer = compiled(binding, machine, text.decode(), wanted=wanted, **json.loads(job))
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(answer.encode())
    return 0


def compiled(binding: Any, machine: Any, text: str, *, wanted: str, libraries: Sequence[str], keep: str | None) -> str:
    """PTX or optimised LLVM IR of `text`. raises RuntimeError with what LLVM says."""
    module = binding.parse_assembly(text)
    module.verify()
    link(binding, module, libraries)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    tuning = binding.create_pipeline_tuning_options(3)
    tuning.loop_interleaving = tuning.loop_unrolling = True
    tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = binding.create_pass_builder(machine, tuning)
    if libraries:
        unused = binding.create_new_module_pass_manager()
        unused.add_global_dead_code_eliminate_pass()
        unused.run(module, builder)
    if keep is not None:
        (Path(keep) / "kernel-linked.ll").write_text(str(module), "utf-8")
    builder.getModulePassManager().run(module, builder)
    if keep is not None:
        (Path(keep) / "kernel-opt.ll").write_text(str(module), "utf-8")
    return str(module) if wanted == "llvm" else machine.emit_assembly(module)


def link(binding: Any, module: Any, libraries: Sequence[str]) -> None:
    """Links bitcode (.bc) and LLVM IR into `module`; what they define is seen by nothing else."""
    own = {function.name for function in module.functions if not function.is_declaration}
    for library in libraries:
        data = Path(library).read_bytes()
        module.link_in(binding.parse_bitcode(data) if data[:2] == b"BC" else binding.parse_assembly(data.decode()))
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
