"""Prints as JSON what xDSL's modules and classes hold: `python xdsl_state.py --with-us > A`, `python xdsl_state.py < MODULES > B`.

    --with-us   imports every module of the package, then looks at the modules of xDSL that are loaded
    MODULES     a JSON list of modules of xDSL to import and look at

A member is described by where it is from (file and line of a function, name and metaclass of a class), else by its text.
"""

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType
from typing import Any

ADDRESS = re.compile(" at 0x[0-9a-f]+")
MADE_BY_LOOKING = "__annotations__"
"""An empty dictionary, which Python makes for a class when someone asks for it."""


def described(value: Any) -> str:
    if isinstance(value, classmethod | staticmethod):
        return f"{type(value).__name__} {described(value.__func__)}"
    if isinstance(value, property):
        return f"property {described(value.fget)}"
    if callable(value):
        value = inspect.unwrap(value)
    if isinstance(value, FunctionType):
        return f"{value.__code__.co_filename}:{value.__code__.co_firstlineno}"
    if isinstance(value, type):
        return f"{type(value).__qualname__} {value.__module__}.{value.__qualname__}"
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, set | frozenset | dict):
        return " ".join(sorted(ADDRESS.sub("", repr(member)) for member in value))
    return ADDRESS.sub("", repr(value))


def classes_of(module: ModuleType) -> Iterator[type]:
    found = [
        value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    ]
    for one in found:
        yield one
        inner = [
            value for value in vars(one).values() if isinstance(value, type) and value.__module__ == module.__name__
        ]
        found += [value for value in inner if value not in found]


def state(names: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        module = sys.modules[name]
        found |= {f"{name} {member}": described(value) for member, value in vars(module).items()}
        for one in classes_of(module):
            place = f"{name} {one.__qualname__}"
            found[place] = described(one)
            members = {member: value for member, value in vars(one).items() if member != MADE_BY_LOOKING}
            found |= {f"{place} {member}": described(value) for member, value in members.items()}
            definition = one.get_irdl_definition() if "get_irdl_definition" in members else None
            if is_dataclass(definition):
                found |= {
                    f"{place} {f.name} defined": described(getattr(definition, f.name)) for f in fields(definition)
                }
    return found


def main() -> None:
    if sys.argv[1:] == ["--with-us"]:
        import xla_emitters

        for found in pkgutil.walk_packages(xla_emitters.__path__, "xla_emitters."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)
        names = [name for name in sys.modules if name == "xdsl" or name.startswith("xdsl.")]
    else:
        names = json.load(sys.stdin)
        for name in names:
            importlib.import_module(name)
    json.dump(state(names), sys.stdout)


if __name__ == "__main__":
    main()
