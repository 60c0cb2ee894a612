"""Inline subgraph functions into their callers if this does not repeat work.

    %c = xla_gpu.pure_call @gelu(%in, %i, %j, %k)   ->   %x = tensor.extract %in[%i, %j, %k]
                                                         %0 = arith.mulf %x, %x ...

A pure_call is inlined when, in this order:

1. the call is not marked `noinline`; the callee has a body of one block and does not call itself, directly or through others;
2. the callee is marked `no_compute` (it only moves data): inlined without further conditions;
3. the callee is called once in the region of the call, not counting nested regions (or nowhere else in the module), and after inlining
   the region has at most 4000 ops and regions are nested at most 64 deep;
4. nothing else refers to the callee, so its body is moved, not copied; or the callee calls a function that is also called in the
   region of the call, so that CSE can merge those calls after inlining.

Every other pure_call stays: a subgraph used at two different places is computed by one function, and LLVM decides later.
A func.call may have effects, so CSE and hoisting leave it alone; it is inlined whenever point 1 allows, unless it or the function is
marked `no_inline`.
Callees are visited before their callers, so a body is inlined with its own calls already inlined, and with equal ops merged: where each of
n functions calls the one below twice, 2^n ops would be copied, and n would stay. CSE then merges equal calls, and
another round inlines the callees that are now called once, or that are now called beside a call of one of their own callees. Ops keep
the location of their HLO instruction; ops without one get the call's location. A private function that has no callers left is erased.
Source: seed document, "Inliner"; XLA xla_dialect.cc (XlaInlinerInterface). Its rule for CPU kernels (up to 100 ops) is left out.
"""

from __future__ import annotations

from collections import Counter, deque

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.locations import locate
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.xla_gpu import PureCallOp
from xla_emitters.rewrite.common_subexpressions import cse
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import Scope, callees_first, functions, is_private, scopes, symbols_in
from xla_emitters.rewrite.unrolling import copied, inline_body

Call = PureCallOp | func.CallOp
MAX_OPS = 4000
MAX_ROUNDS = 4
NOINLINE = ("noinline", "no_inline")
"""Attributes that forbid inlining: ours on a pure_call, and the ones of MLIR's calls and functions."""
MAX_NESTING = 64
"""Depth of nested regions: code that walks IR, here and downstream, is recursive."""


class InlinePass(KernelPass):
    name = "inline"

    def apply_to(self, op: ModuleOp) -> None:
        for module in scopes(op):
            for _ in range(MAX_ROUNDS):
                inlined = _Inliner(self, module).run()
                if not inlined or not any(isinstance(inner, Call) for inner in walk(module)):
                    break
                cse(module)


class _Around:
    """The contents of a region without nested regions: its calls by callee, and the number of ops in its first block. Updated in place."""

    def __init__(self, region: Region) -> None:
        self.first_block = region.blocks[0]
        self.ops = _count(self.first_block)
        self.calls = Counter[str]()
        for block in region.blocks:
            for op in block.ops:
                self.add(op)

    def add(self, op: Operation) -> None:
        if isinstance(op, PureCallOp):
            self.calls[op.callee] += 1

    def remove(self, call: Call) -> None:
        if isinstance(call, PureCallOp):
            self.calls[call.callee] -= 1


class _Inliner:
    def __init__(self, owner: InlinePass, module: Scope) -> None:
        self.owner = owner
        self.functions = functions(module)
        self.uses = Counter(symbols_in(module))
        self.called: dict[str, set[str]] = {}
        self.sizes: dict[str, int] = {}
        self.nesting: dict[str, int] = {}
        self.around: dict[Region, _Around] = {}
        self.recursive: set[str] = set()
        self.inlined = 0

    def run(self) -> int:
        """Inlines what the rules allow; returns how many calls were inlined."""
        calls = {name: set(symbols_in(function)) & self.functions.keys() for name, function in self.functions.items()}
        order, self.recursive = callees_first(calls)
        for name in order:
            before = self.inlined
            self._into(self.functions[name])
            if self.inlined > before:
                self._merge_equal(self.functions[name])
        for name in reversed(order):  # callers first: erasing a dead caller removes its calls of the callees
            function = self.functions.get(name)
            if function is None:
                continue  # its body was moved into its caller
            if is_private(function) and not self.uses[name]:
                self.uses.subtract(symbols_in(function))
                Rewriter.erase_op(function)
        return self.inlined

    def _merge_equal(self, function: func.FuncOp) -> None:
        """Merges equal ops of a function, before its callers copy them: each copy would double what the ones below have in common."""
        self.uses.subtract(symbols_in(function))
        if cse(function):
            for region in [region for region in self.around if function.is_ancestor(region)]:
                del self.around[region]
        self.uses.update(symbols_in(function))

    def _into(self, caller: func.FuncOp) -> None:
        """Inlines calls in `caller`, and then the calls that the inlined ops contain."""
        calls = deque(op for op in caller.walk() if isinstance(op, Call))
        while calls:
            call = calls.popleft()
            name = _callee(call)
            callee = self.functions.get(name)
            if callee is None:
                continue
            if (reason := self._reason_not_to(call, name, callee)) is not None:
                self.owner.skip(call, f"@{name}: {reason}")
                continue
            around, block = self._around(call), call.parent_block()
            around.remove(call)
            inlined = self._inline(call, name, callee)
            self.inlined += 1
            if block is around.first_block:
                around.ops += len(inlined) - 1
            for op in inlined:
                around.add(op)
            calls += [op for new in inlined for op in new.walk() if isinstance(op, Call)]

    def _reason_not_to(self, call: Call, name: str, callee: func.FuncOp) -> str | None:
        for mark in NOINLINE:
            if mark in call.attributes or mark in call.properties:
                return f"the call is marked {mark}"
        if callee.body.first_block is None:
            return "the callee has no body"
        if callee.body.first_block is not callee.body.last_block:
            return "the callee has several blocks"
        if name in self.recursive:
            return "the callee calls itself"
        if "no_compute" in callee.attributes:
            return None
        if _regions_around(call) + self._nesting(name, callee) > MAX_NESTING:
            return f"regions would be nested more than {MAX_NESTING} deep"
        if isinstance(call, func.CallOp):
            return "the callee is marked no_inline" if "no_inline" in callee.attributes else None
        around = self._around(call)
        moves = self._moves(name, callee)
        copies = 1 if moves else around.calls[name]
        if copies > 1:
            return f"this region calls it {copies} times"
        if self._size(name, callee) + around.ops > MAX_OPS:
            return f"the result would have more than {MAX_OPS} ops"
        if moves:
            return None
        if any(around.calls[third] for third in self._called(name)):
            return None
        return "it has several callers" if is_private(callee) else "it is public, so it may have other callers"

    def _around(self, call: Call) -> _Around:
        region = call.parent_region()
        assert region is not None
        if region not in self.around:
            self.around[region] = _Around(region)
        return self.around[region]

    def _size(self, name: str, callee: func.FuncOp) -> int:
        """Ops in the body of function `name`, nested ones not counted. Cached: `name` was finished before its callers."""
        if name not in self.sizes:
            self.sizes[name] = _count(callee.body.block)
        return self.sizes[name]

    def _moves(self, name: str, callee: func.FuncOp) -> bool:
        return is_private(callee) and self.uses[name] == 1

    def _called(self, name: str) -> set[str]:
        """The callees of the pure_calls in the body of `name`, nested ones not counted. Cached: `name` was finished before its callers."""
        if name not in self.called:
            function = self.functions.get(name)
            ops = [] if function is None else [op for block in function.body.blocks for op in block.ops]
            self.called[name] = {op.callee for op in ops if isinstance(op, PureCallOp)}
        return self.called[name]

    def _nesting(self, name: str, function: func.FuncOp) -> int:
        """How deep regions are nested in function `name`, which has been visited."""
        if name not in self.nesting:
            self.nesting[name] = _nesting(function.body)
        return self.nesting[name]

    def _inline(self, call: Call, called: str, callee: func.FuncOp) -> list[Operation]:
        """Replaces `call` by the callee's ops, moved or copied; returns those ops."""
        arguments = tuple(call.arguments)
        if self._moves(called, callee):
            body = callee.body.block
            *arrived, _ = body.ops
            values = inline_body(body, InsertPoint.before(call), arguments)
            Rewriter.erase_op(callee)
            del self.functions[called]
        else:
            arrived, values = copied(callee.body.block, arguments)
            Rewriter.insert_op(arrived, InsertPoint.before(call))
            self.uses.update(symbol for new in arrived for symbol in symbols_in(new))
        for op in arrived:
            locate(op, call.location)
        self.uses[called] -= 1
        for result, value in zip(call.results, values, strict=True):
            name = value.name_hint
            result.replace_all_uses_with(value)
            value.name_hint = name  # not the call's
        Rewriter.erase_op(call)
        return arrived


def _callee(call: Call) -> str:
    return call.callee if isinstance(call, PureCallOp) else call.callee.string_value()


def _nesting(region: Region) -> int:
    inner = (inner for block in region.blocks for op in block.ops for inner in op.regions)
    return max((1 + _nesting(region) for region in inner), default=0)


def _regions_around(op: Operation) -> int:
    """Regions between an op and its function's body."""
    count, holder = 0, op.parent_op()
    while holder is not None and not isinstance(holder, func.FuncOp):
        count, holder = count + 1, holder.parent_op()
    return count


def _count(block: Block) -> int:
    return sum(1 for _ in block.ops)
