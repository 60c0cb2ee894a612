"""Importing the package and compiling with it changes nothing of xDSL's in the process."""

from __future__ import annotations

import json
import subprocess
import sys

# What is another object in xDSL's modules, classes and definitions of ops after each of our modules was imported, and after a compilation.
PROGRAM = """
import importlib, json, pkgutil
from dataclasses import fields

from xdsl.dialects import get_all_dialects
from xdsl.universe import XDSL_UNIVERSE
import xdsl.interpreter, xdsl.pattern_rewriter, xdsl.parser, xdsl.printer, xdsl.xdsl_opt_main
import sys
DIALECTS = "affine arith builtin cf complex dlti func gpu llvm math memref scf tensor ub vector".split()
for name in DIALECTS:
    get_all_dialects()[name]()
modules = {name: module for name, module in sys.modules.items() if name == "xdsl" or name.startswith("xdsl.")}
classes = {held for module in modules.values() for held in vars(module).values() if isinstance(held, type)}
classes |= {held for one in list(classes) for held in vars(one).values() if isinstance(held, type)}
classes = sorted((one for one in classes if one.__module__ in modules), key=lambda one: (one.__module__, one.__qualname__))
FILLED_BY_PYTHON = ("_abc_impl", "__abstractmethods__", "__weakref__", "__dict__", "__annotations__", "__builtins__")


def state():
    found = {(name, member): held for name, module in modules.items() for member, held in vars(module).items()}
    for one in classes:
        found |= {(one.__module__, one.__qualname__, member): held for member, held in vars(one).items()}
        found[one.__module__, one.__qualname__, "metaclass"] = type(one)
        if one.__module__.startswith("xdsl.dialects") and "get_irdl_definition" in vars(one):
            definition = one.get_irdl_definition()
            found |= {(one.__module__, one.__qualname__, f.name, ""): repr(getattr(definition, f.name)) for f in fields(definition)}
    found |= {("universe", kind, name): held for kind in ("all_dialects", "all_passes", "all_targets")
              for name, held in getattr(XDSL_UNIVERSE, kind).items()}
    # A set may change in place.
    found = {key: sorted(held) if isinstance(held, set) and all(isinstance(x, str) for x in held) else held for key, held in found.items()}
    return {key: held for key, held in found.items() if key[-1] not in FILLED_BY_PYTHON and key[-2:] != ("core", "_current_builder")}


def changes(one, other):
    # A module that is loaded late is a new member of its package.
    return [".".join(key) for key in one if key not in other or (one[key] is not other[key] and one[key] != other[key])] + [
        ".".join(key) for key, held in other.items() if key not in one and type(held) is not type(sys)
    ]


before = state()
import xla_emitters
for found in pkgutil.walk_packages(xla_emitters.__path__, "xla_emitters."):
    if found.name.rpartition(".")[2] == "__main__":
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        assert (error.name or "").partition(".")[0] not in ("xla_emitters", "xdsl"), error
imported = changes(before, state())
xla_emitters.compile("examples/gelu.hlo", stage="llvm-dialect", cache=False)
print(json.dumps([imported, changes(before, state())]))
"""


def test_nothing_of_xdsls_is_replaced():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[], []]
