"""The patches are applied by one function, once; importing them changes nothing in xDSL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from types import ModuleType

from xla_emitters.dialects.xdsl_patches.early import EARLY
from xla_emitters.dialects.xdsl_patches.fast_classes import PlainClasses
from xla_emitters.dialects.xdsl_patches.patch import Member, Patch
from xla_emitters.dialects.xdsl_patches.table import PATCHES

# A metaclass is no member of its class: test_fast_classes.py looks at those rows.
ROWS = tuple(patch for patch in (*EARLY, *PATCHES) if not isinstance(patch, PlainClasses))

# What changes in xDSL when the package's modules are imported, at the first apply() and at the second: members of its modules and classes,
# and fields of its ops' definitions. The parent package, which calls apply(), is replaced by an empty one with the same path.
PROGRAM = """
import importlib, json, pkgutil, sys, types
from dataclasses import fields
from pathlib import Path

import xla_emitters

package = types.ModuleType("xla_emitters.dialects")
package.__path__ = [str(Path(xla_emitters.__file__).parent / "dialects")]
sys.modules[package.__name__] = package
from xdsl.dialects import affine, arith, cf, dlti, func, gpu, llvm, memref, scf, tensor, vector
modules = {name: module for name, module in sys.modules.items() if name.startswith("xdsl.")}
classes = {held for module in modules.values() for held in vars(module).values() if isinstance(held, type)}
classes |= {held for one in list(classes) for held in vars(one).values() if isinstance(held, type)}
classes = sorted((one for one in classes if one.__module__ in modules), key=lambda one: (one.__module__, one.__qualname__))


def state():
    found = {(name, member): held for name, module in modules.items() for member, held in vars(module).items()}
    for one in classes:
        found |= {(one.__module__, one.__qualname__, member): held for member, held in vars(one).items()}
        if one.__module__.startswith("xdsl.dialects") and "get_irdl_definition" in vars(one):
            definition = one.get_irdl_definition()
            found |= {(one.__module__, one.__qualname__, f.name, ""): repr(getattr(definition, f.name)) for f in fields(definition)}
    # A set may change in place.
    return {key: sorted(held) if isinstance(held, set) and all(isinstance(x, str) for x in held) else held for key, held in found.items()}


def changes(one, other):
    return [".".join(key).rstrip(".") for key in one if key not in other or (one[key] is not other[key] and one[key] != other[key])] + [
        ".".join(key).rstrip(".") for key in other if key not in one
    ]


states = [state()]
from xla_emitters.dialects import xdsl_patches
for found in pkgutil.iter_modules(xdsl_patches.__path__):
    importlib.import_module(f"{xdsl_patches.__name__}.{found.name}")
states.append(state())
for _ in range(2):
    xdsl_patches.apply()
    states.append(state())
print(json.dumps([changes(*pair) for pair in zip(states, states[1:])]))
"""


@cache
def changes() -> tuple[list[str], list[str], list[str]]:
    """At the imports, at the first apply(), and at the second."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120)
    return tuple(json.loads(done.stdout))


def test_importing_the_patches_changes_nothing():
    assert changes()[0] == []


def test_a_second_application_changes_nothing():
    assert changes()[2] == []


def name_of(patch: Patch) -> str:
    """What the row names, as in `changes`."""
    assert isinstance(patch, Member)
    holder, member = patch.holder, f".{patch.name}"
    return (
        holder.__name__ if isinstance(holder, ModuleType) else f"{holder.__module__}.{holder.__qualname__}"
    ) + member


def test_every_patch_changes_what_its_row_names_and_nothing_else_changes():
    named = {name_of(patch) for patch in ROWS}
    changed = set(changes()[1])
    classes = {name.rpartition(".")[0] for name in changed}
    assert named <= changed | classes
    assert {name for name in changed if name not in named and name.rpartition(".")[0] not in named} == set()


def test_every_row_says_why_and_no_member_is_replaced_twice():
    assert all(patch.why for patch in (*EARLY, *PATCHES))
    members = Counter((patch.holder, patch.name) for patch in ROWS if isinstance(patch, Member))
    assert set(members.values()) == {1}
