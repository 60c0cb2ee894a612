"""The patches that are applied before xDSL's dialects are loaded: later classes inherit or use the patched ones."""

from __future__ import annotations

from xla_emitters.dialects.xdsl_patches.fast_attributes import FAST_ATTRIBUTES
from xla_emitters.dialects.xdsl_patches.fast_classes import FAST_CLASSES
from xla_emitters.dialects.xdsl_patches.fast_ops import FAST_OPS
from xla_emitters.dialects.xdsl_patches.fast_values import FAST_VALUES
from xla_emitters.dialects.xdsl_patches.lazy_formats import FORMATS
from xla_emitters.dialects.xdsl_patches.lazy_ops import OPS
from xla_emitters.dialects.xdsl_patches.patch import Patch

EARLY: tuple[Patch, ...] = (FORMATS, *OPS, *FAST_CLASSES, *FAST_VALUES, *FAST_OPS, *FAST_ATTRIBUTES)
