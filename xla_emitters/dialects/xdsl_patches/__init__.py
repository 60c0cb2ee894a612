"""Patches of xDSL 0.74's own classes, for what is missing, wrong or slow: tables of patches, and the one function that applies them.

    apply()        before xDSL's dialects are used, and best before they are imported; `dialects/__init__.py` calls it

Importing a module of this package changes nothing in xDSL. A patch is a row that says what it replaces, and why; the tables are in
`lazy_formats.py` (when formats are compiled), `lazy_ops.py` (when ops are defined), `definitions.py` (ops without a property, a type or a
syntax), `behaviour.py` (traits, verifiers, parsing), `floats.py` (bits of constants) and `fast_*.py` (faster versions of classes, values,
ops and attributes). A patched op keeps its class, so that xDSL's passes and `isinstance` still match.
"""

from __future__ import annotations

from functools import cache

from xla_emitters.dialects.xdsl_patches.early import EARLY


@cache
def apply() -> None:
    """Patches xDSL's classes; a second call does nothing."""
    for patch in EARLY:
        patch.apply()
    # Imported late: it loads xDSL's dialects, whose formats and definitions are deferred.
    from xla_emitters.dialects.xdsl_patches.table import PATCHES

    for patch in PATCHES:
        patch.apply()
