"""Every patch of a class of xDSL's dialects, in the order in which they are applied."""

from __future__ import annotations

from xla_emitters.dialects.xdsl_patches.behaviour import CONSTANTS, FUNCTIONS
from xla_emitters.dialects.xdsl_patches.fast_builtin import FAST_BUILTIN
from xla_emitters.dialects.xdsl_patches.floats import FLOATS
from xla_emitters.dialects.xdsl_patches.patch import Patch

PATCHES: tuple[Patch, ...] = (*CONSTANTS, *FUNCTIONS, *FLOATS, *FAST_BUILTIN)
