"""The room loads without the compiler, and without arrays."""

import subprocess
import sys


def test_the_room_needs_neither_arrays_nor_the_compiler():
    code = (
        "import pkgutil, sys, xla_emitters.algebra as room\n"
        "from importlib import import_module\n"
        "names = [m.name for m in pkgutil.iter_modules(room.__path__)]\n"
        "[import_module(f'xla_emitters.algebra.{name}') for name in names]\n"
        "print(len(names) > 9, [m for m in ('numpy', 'xdsl') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["True", "[]"]
