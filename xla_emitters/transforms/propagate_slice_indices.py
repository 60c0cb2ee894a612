"""Copy the buffer attributes of the entry's arguments to the arguments of subgraph functions.

    func.func @fusion(%a {xla.slice_index = 0, xla.invariant}, ...) {     func.func @fusion(...) { ... pure_call @f(%a, %i) ... }
      ... pure_call @f(%a, %i) ...                                    ->
    func.func private @f(%t: tensor<...>, %i: index)                      func.func private @f(%t {xla.slice_index = 0, xla.invariant}, ...)

An argument gets `xla.slice_index`, and `xla.invariant` if the entry's argument has it, from the value that its callers pass: an argument of
the entry, or of a function that was handled before. If callers pass different buffers or a computed value, the argument gets neither
attribute, and a remark says so; later passes then merge nothing for it and do not assume it invariant. XLA copies the attributes by
position instead, and relies on every subgraph function taking the entry's parameters in the entry's order; where that holds the result
is the same.
Source: docs/reference/2 3.3; XLA propagate_slice_indices.cc.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.xla_gpu import PureCallOp
from xla_emitters.errors import VerifyError
from xla_emitters.rewrite.accesses import argument_attribute
from xla_emitters.rewrite.kernel_entry import ENTRY, INVARIANT, SLICE_INDEX
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import Scope, functions, scopes

Slice = dict[str, Attribute]


class PropagateSliceIndicesPass(KernelPass):
    name = "xla-propagate-slice-indices"

    def apply_to(self, op: ModuleOp) -> None:
        modules = [(module, functions(module)) for module in scopes(op)]
        if not any(ENTRY in function.attributes for _, by_name in modules for function in by_name.values()):
            raise VerifyError(
                f"no function has the attribute {ENTRY}",
                stage=self.name,
                help=f"mark the kernel: func.func @fusion(...) attributes {{{ENTRY}}}",
            )
        for module, by_name in modules:
            self._propagate(module, by_name)

    def _propagate(self, module: Scope, by_name: dict[str, func.FuncOp]) -> None:
        calls: dict[str, list[PureCallOp | func.CallOp]] = {name: [] for name in by_name}
        for inner in walk(module):
            if isinstance(inner, PureCallOp):
                calls.setdefault(inner.callee, []).append(inner)
            elif isinstance(inner, func.CallOp):
                calls.setdefault(inner.callee.string_value(), []).append(inner)
        # A function is handled when all its callers are done. A recursive function never is, so its arguments get no attributes.
        waiting = {name for name, function in by_name.items() if ENTRY not in function.attributes}
        waits_for = {name: {_caller(call) for call in calls[name]} & waiting for name in waiting}
        called_by: dict[str, list[str]] = {name: [] for name in waiting}
        for name in sorted(waiting):
            for caller in waits_for[name]:
                called_by[caller].append(name)
        ready = [name for name in sorted(waiting) if not waits_for[name]]
        for name in ready:
            self._learn(by_name[name], calls[name])
            for callee in called_by[name]:
                waits_for[callee].remove(name)
                if not waits_for[callee]:
                    ready.append(callee)

    def _learn(self, function: func.FuncOp, calls: list[PureCallOp | func.CallOp]) -> None:
        attributes = [dict(own.data) for own in function.arg_attrs] if function.arg_attrs else []
        attributes = attributes or [dict[str, Attribute]() for _ in function.function_type.inputs]
        learnt = False
        for number, argument_type in enumerate(function.function_type.inputs):
            if not isinstance(argument_type, TensorType) or not calls:
                continue
            first, *others = [_slice(call.operands[number]) for call in calls]
            if not first or any(other != first for other in others):
                self.skip(
                    function, f"@{function.sym_name.data}: its callers do not pass one buffer for argument {number}"
                )
                continue
            attributes[number].update(first)
            learnt = True
        if learnt:
            function.arg_attrs = ArrayAttr(DictionaryAttr(own) for own in attributes)


def _caller(call: PureCallOp | func.CallOp) -> str:
    """The name of the function that contains `call`; "" if none does."""
    op = call.parent_op()
    while op is not None and not isinstance(op, func.FuncOp):
        op = op.parent_op()
    return "" if op is None else op.sym_name.data


def _slice(value: SSAValue) -> Slice:
    """The slice attributes of `value`: {} unless it is a function argument that has a slice index."""
    own = {name: said for name in (INVARIANT, SLICE_INDEX) if (said := argument_attribute(value, name)) is not None}
    return own if SLICE_INDEX in own else {}
