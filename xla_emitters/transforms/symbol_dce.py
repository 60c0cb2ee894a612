"""Erase private symbols that nothing refers to: functions, globals, nested modules.

    llvm.mlir.global private @table(...)       (no use)     ->   erased
    func.func private @f(...)                  (no use)     ->   erased, and then @g, which only @f called

Repeated in every symbol table until there is nothing to erase. Private functions that only call each other stay
(erase-dead-functions erases those).
Source: MLIR symbol-dce.
"""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import Scope, is_private, scopes, symbol_name, symbols_in


class SymbolDcePass(KernelPass):
    name = "symbol-dce"

    def apply_to(self, op: ModuleOp) -> None:
        for module in scopes(op):
            _erase_unused(module)


def _erase_unused(module: Scope) -> None:
    uses = Counter(symbols_in(module))
    candidates = [inner for inner in module.body.ops if symbol_name(inner) is not None and is_private(inner)]
    doomed = [inner for inner in candidates if not uses[symbol_name(inner) or ""]]
    by_name: dict[str, list[Operation]] = {}
    for inner in candidates:
        by_name.setdefault(symbol_name(inner) or "", []).append(inner)
    while doomed:
        dead = doomed.pop()
        if dead.parent is None:
            continue
        for name in symbols_in(dead):
            uses[name] -= 1
            if not uses[name]:
                doomed += by_name.get(name, ())
        Rewriter.erase_op(dead)
