"""The symbols that ops define and refer to: calls, combiners, addresses of globals, any attribute that contains `@name`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.mlir.gpu_functions import ModuleOp as GpuModuleOp
from xla_emitters.dialects.quick_op import ops_of, walk

Scope: TypeAlias = ModuleOp | GpuModuleOp
"""A module, whose functions are known by name to the ops in it: `builtin.module` or `gpu.module`."""


def symbols_in(root: Operation) -> list[str]:
    """The names of the symbols that attributes of `root` and of the ops inside it refer to, without `@`; one per reference."""
    found = list[str]()
    for op in walk(root):
        for attributes in (op.properties, op.attributes):
            if attributes:
                for attribute in attributes.values():
                    if type(attribute) in HOLDERS:
                        _add_symbols(attribute, found)
    return found


HOLDERS: frozenset[type[Attribute]] = frozenset((SymbolRefAttr, ArrayAttr, DictionaryAttr))


def _add_symbols(attribute: Attribute, found: list[str]) -> None:
    # These classes have no subclasses, and `isinstance` calls xDSL's metaclass.
    if type(attribute) is SymbolRefAttr:
        found.append(attribute.root_reference.data)
        return
    inside = attribute.data if type(attribute) is ArrayAttr else ()
    if type(attribute) is DictionaryAttr:
        inside = attribute.data.values()
    for inner in inside:
        if type(inner) in HOLDERS:
            _add_symbols(inner, found)


def symbol_name(op: Operation) -> str | None:
    """The name that `op` defines, without `@`."""
    name = op.get_attr_or_prop("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def is_private(op: Operation) -> bool:
    """Whether only this module can refer to `op`."""
    visibility = op.get_attr_or_prop("sym_visibility")
    return isinstance(visibility, StringAttr) and visibility.data == "private"


def scopes(module: Scope) -> list[Scope]:
    """`module` and the modules in it, inner ones first."""
    return [
        *(found for op in ops_of(module.body.block) if op.regions and isinstance(op, Scope) for found in scopes(op)),
        module,
    ]


def functions(module: Scope) -> dict[str, func.FuncOp]:
    """The module's functions by name, without those of modules in it."""
    return {op.sym_name.data: op for op in ops_of(module.body.block) if isinstance(op, func.FuncOp)}


def callees_first(calls: Mapping[str, Iterable[str]]) -> tuple[list[str], set[str]]:
    """Functions in an order with callees before callers, and at least one function of every cycle of calls.

    calls  the names of the functions that each function calls; all are keys
    """
    order, recursive = list[str](), set[str]()
    state = dict[str, int]()  # 1: being visited, 2: done
    for root in calls:
        stack = [(root, iter(sorted(calls[root])))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            name, rest = stack[-1]
            callee = next(rest, None)
            if callee is None:
                state[name] = 2
                order.append(name)
                stack.pop()
            elif callee not in state:
                state[callee] = 1
                stack.append((callee, iter(sorted(calls[callee]))))
            elif state[callee] == 1:
                names = [other for other, _ in stack]
                recursive.update(names[names.index(callee) :])
    return order, recursive
