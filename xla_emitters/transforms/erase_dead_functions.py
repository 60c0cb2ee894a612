"""Erase the functions that no public function refers to, directly or through others.

    func.func @fusion(...) { ... pure_call @f ... }          func.func @fusion(...) { ... pure_call @f ... }
    func.func private @f(...) { ... }                   ->   func.func private @f(...) { ... }
    func.func private @g(...) { ... pure_call @g ... }

Unlike symbol-dce, this pass follows references from live functions, so it also erases functions that only call each other. It runs
before inlining, because the inliner counts callers and would count a dead one.
Source: XLA erase_dead_functions.cc.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.mlir import func
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import Scope, functions, is_private, scopes, symbols_in


class EraseDeadFunctionsPass(KernelPass):
    name = "xla-erase-dead-functions"

    def apply_to(self, op: ModuleOp) -> None:
        for module in scopes(op):
            _erase_dead(module)


def _erase_dead(module: Scope) -> None:
    by_name = functions(module)
    # Functions that other ops of the module (globals, nested symbol tables) refer to are live, too.
    others = [inner for inner in module.body.ops if not isinstance(inner, func.FuncOp)]
    reached = [name for name, function in by_name.items() if not is_private(function)]
    reached += [name for other in others for name in symbols_in(other) if name in by_name]
    alive = set(reached)
    while reached:
        for name in symbols_in(by_name[reached.pop()]):
            if name in by_name and name not in alive:
                alive.add(name)
                reached.append(name)
    for name, function in by_name.items():
        if name not in alive:
            Rewriter.erase_op(function)
