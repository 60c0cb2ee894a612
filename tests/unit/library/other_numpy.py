"""NumPy under another name, so that library functions run their code for CuPy, on bit patterns, without a GPU."""

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from xla_emitters.library import call
from xla_emitters.library.arguments import numpy_type, pattern_type

OTHER = ModuleType("other_numpy")
OTHER.__dict__["__getattr__"] = lambda name: getattr(np, name)
OTHER.__dict__["asnumpy"] = np.asarray
OTHER.__dict__["cuda"] = SimpleNamespace(Device=lambda: SimpleNamespace(id=0))


def called_elsewhere(name: str, config: dict[str, Any], operands: list[Any], results: list[Any]) -> list[Any]:
    """`library.call` as a launcher for CuPy does: bit patterns in and out."""
    types = config["types"]
    given = [np.asarray(array).view(pattern_type(kind)) for array, kind in zip(operands, types, strict=True)]
    found = call(name, config, given, results, OTHER)
    return [array.view(numpy_type(kind)) for array, (kind, _) in zip(found, results, strict=True)]
