"""stub, replaced at merge"""

from typing import Any

from xla_emitters.errors import Unsupported


def call(name: str, config: Any, operands: Any, results: Any, xp: Any = None) -> Any:
    raise Unsupported(f"no function '{name}' on the CPU", stage="run")
