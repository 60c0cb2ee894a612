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

from xla_emitters.dialects.mlir import builtin as quick_builtin
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.symbols import HOLDERS, symbol_name

_LAYOUT = "dlti.dl_spec"


Symbols = Sequence[tuple[str, bool]]
"""The symbols of a module in order: the name, and whether it is a function that is only declared."""


def symbols_of(module: ModuleOp) -> Symbols:
    """What `new_names` reads of a module."""
    ops = ((symbol_name(op), op) for op in module.body.ops)
    return tuple((name, _is_declaration(op)) for name, op in ops if name is not None)


def new_names(modules: Sequence[Symbols]) -> tuple[Mapping[str, str], ...]:
    """For each module, old -> new name of what is renamed where they become one."""
    declared: dict[str, bool] = {}
    renamed = list[Mapping[str, str]]()
    for symbols in modules:
        own = {name for name, _ in symbols}
        names: dict[str, str] = {}
        for name, is_declaration in symbols:
            if name in declared and not (is_declaration and declared[name]):
                names[name] = next(new for n in count(1) if (new := f"{name}_{n}") not in declared and new not in own)
                own.add(names[name])
        declared |= {names.get(name, name): is_declaration for name, is_declaration in symbols}
        renamed.append(names)
    return tuple(renamed)


def merge_modules(
    modules: Sequence[ModuleOp], renamed: Sequence[Mapping[str, str]] | None = None
) -> tuple[ModuleOp, tuple[Mapping[str, str], ...]]:
    """One module with all ops of `modules`, which are left empty; and for each of these, old -> new name of what was renamed.

    renamed  the names, where these modules are a part of those that become one; None: they are all, and one alone is the answer itself
    """
    if renamed is None:
        if len(modules) == 1:
            return modules[0], ({},)
        renamed = new_names([symbols_of(module) for module in modules])
    made = quick_builtin.ModuleOp([])
    made.location = modules[0].location
    for module in modules:
        made.attributes |= {name: value for name, value in module.attributes.items() if name not in made.attributes}
    made.attributes.pop(_LAYOUT, None)
    if (layout := max(modules, key=index_width).attributes.get(_LAYOUT)) is not None:
        made.attributes[_LAYOUT] = layout
    defined = set[str]()
    for module, names in zip(modules, renamed, strict=True):
        _move(module, made, defined, names)
    return made, tuple(renamed)


def _move(module: ModuleOp, made: ModuleOp, defined: set[str], names: Mapping[str, str]) -> None:
    """Moves what `made` does not have yet; `defined` are the names that it has."""
    if names:
        for op in module.walk():
            rename_symbols(op, names)
    own = list[str]()
    for op in list(module.body.ops):
        op.detach()
        name = symbol_name(op)
        if name in defined:
            op.erase()
            continue
        made.body.block.add_op(op)
        if name is not None:
            own.append(name)
    defined.update(own)


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
