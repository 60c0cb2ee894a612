"""Several kernels as one module, at any stage: symbols that two of them define get names of their own.

    module { func.func @a() attributes {xla.entry} { call @add } func.func private @add }
    module { func.func @b() attributes {xla.entry} { call @add } func.func private @add }      ->

    module { func.func @a ... { call @add } func.func private @add   func.func @b ... { call @add_1 } func.func private @add_1 }

Declarations of one function, such as libdevice's, become one. An index is as wide as in the kernel that needs it widest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.rewrite.data_layout import index_width
from xla_emitters.rewrite.symbols import HOLDERS, symbol_name

_LAYOUT = "dlti.dl_spec"


def merge_modules(modules: Sequence[ModuleOp]) -> tuple[ModuleOp, tuple[Mapping[str, str], ...]]:
    """One module with all ops of `modules`, which are left empty; and for each of these, old -> new names of the renamed symbols.

    A single module is returned as it is.
    """
    if len(modules) == 1:
        return modules[0], ({},)
    made = ModuleOp([])
    made.location = modules[0].location
    for module in modules:
        made.attributes |= {name: value for name, value in module.attributes.items() if name not in made.attributes}
    made.attributes.pop(_LAYOUT, None)
    if (layout := max(modules, key=index_width).attributes.get(_LAYOUT)) is not None:
        made.attributes[_LAYOUT] = layout
    defined: dict[str, Operation] = {}
    renamed = tuple(_move(module, made, defined) for module in modules)
    return made, renamed


def _move(module: ModuleOp, made: ModuleOp, defined: dict[str, Operation]) -> dict[str, str]:
    own = {name for op in module.body.ops if (name := symbol_name(op)) is not None}
    names: dict[str, str] = {}
    for op in list(module.body.ops):
        name = symbol_name(op)
        if name is None or name not in defined:
            continue
        if _is_declaration(op) and _is_declaration(defined[name]):
            op.detach()
            op.erase()
        else:
            names[name] = next(new for n in count(1) if (new := f"{name}_{n}") not in defined and new not in own)
            own.add(names[name])
    if names:
        for op in module.walk():
            rename_symbols(op, names)
    for op in list(module.body.ops):
        op.detach()
        made.body.block.add_op(op)
        if (name := symbol_name(op)) is not None:
            defined[name] = op
    return names


def _is_declaration(op: Operation) -> bool:
    """Whether an op declares a function. Shared memory has no initial value either, but is defined once per kernel."""
    return op.name in ("func.func", "llvm.func") and not any(region.blocks for region in op.regions)


def rename_symbols(op: Operation, names: Mapping[str, str]) -> None:
    """Gives `op` itself and the symbols that its attributes refer to their new names."""
    for attributes in (op.properties, op.attributes):
        for key, attribute in attributes.items():
            if key == "sym_name" and isinstance(attribute, StringAttr) and attribute.data in names:
                attributes[key] = StringAttr(names[attribute.data])
            elif type(attribute) in HOLDERS:
                attributes[key] = _renamed(attribute, names)


def _renamed(attribute: Attribute, names: Mapping[str, str]) -> Attribute:
    match attribute:
        case SymbolRefAttr() if attribute.root_reference.data in names:
            return SymbolRefAttr(names[attribute.root_reference.data], attribute.nested_references)
        case ArrayAttr():
            return ArrayAttr(_renamed(inner, names) for inner in attribute)
        case DictionaryAttr():
            return DictionaryAttr({key: _renamed(inner, names) for key, inner in attribute.data.items()})
        case _:
            return attribute
