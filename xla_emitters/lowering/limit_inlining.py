"""Keep calls where inlining them would multiply the code: LLVM's inliner decides call by call, and does not see the product.

    entry  calls @f8 48 times         func.func private @f1(...) attributes {no_inline}
    @f8    calls @f7 3 times          func.func private @f4(...) attributes {no_inline}
    ...                        ->     ...
    @f1    reads memory               warning: its functions, inlined, would be 445,847 ops instead of 691: 2 of them stay calls

A chain of dynamic updates is the usual source: each element reads the array before it at three indices, so each function calls the one
below three times. LLVM inlines up to a size of thousands of instructions for a GPU, and takes minutes for the result.
A kernel of at most 40,000 ops with everything inlined is left alone. In a larger one each function that is called at several places, and
has more than 200 ops with what is inlined into it, is marked `no_inline`. Callees are counted before their callers, and a marked one
counts as its call: the code is then linear in what was emitted. The kernel still does the repeated work when it runs.
XLA lets LLVM decide (docs/decisions/10-kernels-that-are-not-xlas.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, UnitAttr

from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import Scope, callees_first, functions, scopes, symbols_in

KERNEL_LIMIT = 40_000
"""Ops of a kernel with all its functions inlined, up to which LLVM decides."""
FUNCTION_LIMIT = 200
"""Ops of a function that is inlined at several places of a larger kernel."""
_REMEDY = "the kernel repeats that work when it runs; a program in StableHLO (in JAX: dynamic=True) is divided into kernels here"


class LimitInliningPass(KernelPass):
    name = "xla-limit-inlining"

    def apply_to(self, op: ModuleOp) -> None:
        for module in scopes(op):
            self._limit(module)

    def _limit(self, module: Scope) -> None:
        known = functions(module)
        own = {name: sum(1 for _ in function.walk()) for name, function in known.items()}
        calls = {name: Counter(name for name in symbols_in(each) if name in known) for name, each in known.items()}
        order, recursive = callees_first(calls)
        if recursive:
            return
        whole = _inlined_sizes(order, own, calls, lambda name, size: False)
        largest = max(known, key=lambda name: whole[name], default=None)
        if largest is None or whole[largest] <= KERNEL_LIMIT:
            return
        places = sum(calls.values(), Counter[str]())
        kept = list[str]()

        def keep(name: str, size: int) -> bool:
            if places[name] < 2 or size <= FUNCTION_LIMIT:
                return False
            kept.append(name)
            return True

        _inlined_sizes(order, own, calls, keep)
        for name in kept:
            known[name].attributes["no_inline"] = UnitAttr()
        before = sum(own.values())
        self.warn(
            known[largest],
            f"the functions of kernel @{largest}, inlined, would be {whole[largest]:,} ops instead of {before:,}: "
            f"{len(kept)} of them stay calls",
            _REMEDY,
        )


def _inlined_sizes(
    order: Sequence[str],
    own: Mapping[str, int],
    calls: Mapping[str, Mapping[str, int]],
    stays: Callable[[str, int], bool],
) -> dict[str, int]:
    """Ops of each function with its callees inlined, except those for which `stays(name, their own size)` holds.

    order  callees before callers
    own    ops of each function
    calls  per function, how often it calls another
    """
    sizes, added = dict[str, int](), dict[str, int]()
    for name in order:
        sizes[name] = own[name] + sum(times * added[callee] for callee, times in calls[name].items())
        added[name] = 0 if stays(name, sizes[name]) else sizes[name]
    return sizes
