"""Asks the LLVM inside llvmlite which instructions a CPU has.

    python -P cpu_probe.py x86_64-unknown-linux-gnu znver3 -avx2 avx avx2 f16c      ->      ["avx", "f16c"]

Prints which of the instruction sets named last the CPU has. LLVM has no function that tells; but it inlines a function only into one whose
CPU has all instructions of the function's own. So X has avx2 if a function for X is not inlined into one for X without avx2.
A process of its own, because LLVM ends its process for some names of CPUs. An unknown one is only a message on stderr.
This file is run as a script and imports nothing from this package.
Source: LLVM 22, `TargetTransformInfo::areInlineCompatible`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

PAIR = """
define internal i32 @callee{0}(i32 %x) #0 {{
  %y = call i32 @outside(i32 %x)
  ret i32 %y
}}
define i32 @caller{0}(i32 %x) #{1} {{
  %y = call i32 @callee{0}(i32 %x)
  ret i32 %y
}}
"""


def main(arguments: Sequence[str]) -> int:
    triple, cpu, features, *asked = arguments
    binding: Any = import_module("llvmlite.binding")
    binding.initialize_all_targets()
    target = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    machine = f'"target-cpu"="{cpu}" "target-features"="{features}'
    text = [f'target triple = "{triple}"\ndeclare i32 @outside(i32)', f'attributes #0 = {{ {machine}" }}']
    for number, name in enumerate(asked):
        without = f"{machine}{',' * bool(features)}-{name}"
        text += [PAIR.format(number, number + 1), f'attributes #{number + 1} = {{ {without}" }}']
    module = binding.parse_assembly("\n".join(text))
    builder = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)
    called = str(module)
    print(json.dumps([name for number, name in enumerate(asked) if f"@callee{number}(i32 %" in called]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
