"""What a custom call says of itself: its target, the operands that list sizes, and its `backend_config`, as XLA or JAX wrote it.

    backend_config={"gemm_backend_config":{"alpha_real":1,"beta":1,"epilogue":"BIAS_RELU", ...}}      JSON, by XLA
    backend_config={lower = true, algorithm = 0 : ui8}                                                attributes of MLIR, by JAX

A text that is neither, or a field of a wrong type, is a VerifyError at the instruction.
Source: what XLA:GPU and JAX of jaxlib 0.10.2 print.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr

from xla_emitters.dialects.hlo.base import HloOp, integers, written_at
from xla_emitters.dialects.hlo.types import same_shape
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import VerifyError
from xla_emitters.support.late_dataclass import dataclass


def target_of(op: HloOp) -> str:
    """The target of a custom call, without its quotes."""
    found = op.properties.get("custom_call_target")
    return found.data.strip('"') if isinstance(found, StringAttr) else ""


MARKERS = frozenset(
    (
        "AssumeGatherIndicesInBound",
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "PinToDevice",
        "PinToDeviceSram",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.PropagationBarrier",
    )
)
"""Targets that compute nothing: they tell XLA's passes the place, partition or layout of their operand."""


def is_marker(op: HloOp) -> bool:
    """Whether `op` returns its one operand unchanged. A call between two shapes (of a program and its part on one device) does not."""
    if op.opcode != "custom-call" or len(op.operands) != 1:
        return False
    return target_of(op) in MARKERS and same_shape(op.operands[0].type, op.result.type)


SHAPES = "indices_of_shape_operands"
"""StableHLO's attribute of a custom call with results of unknown sizes."""


def shape_operands(op: HloOp) -> tuple[int, ...]:
    """For each result of a custom call, the number of the operand that lists its sizes; () if no operand does."""
    found = op.attributes.get(SHAPES)
    return integers(found) if isa(found, DenseArrayBase) else ()


@dataclass(frozen=True)
class Fields:
    """The fields of a configuration; each getter states the expected type.

    path  of these fields in the whole configuration
    """

    op: HloOp
    data: Mapping[str, Any]
    path: str = "backend_config"

    @staticmethod
    def of(op: HloOp) -> Fields:
        """raises VerifyError for a text that is neither JSON nor attributes of MLIR."""
        found = op.attributes.get("backend_config") or op.attributes.get("mhlo.backend_config")
        text = found.data.strip() if isinstance(found, StringAttr) else ""
        if text.startswith('"') and text.endswith('"') and len(text) > 1:
            text = unquoted(text)
        if not text:
            return Fields(op, {})
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = _mlir_attributes(text)
        if not isinstance(data, dict):
            raise broken(op, "is neither a JSON object nor {name = value, ...}", f"it is {_short(text)}")
        return Fields(op, cast("dict[str, Any]", data))

    def inside(self, name: str) -> Fields:
        """The object in the field `name`; these fields themselves if there is no such field."""
        found = self.data.get(name, self.data)
        if not isinstance(found, dict):
            raise self._wrong(name, "an object")
        return Fields(
            self.op, cast("dict[str, Any]", found), self.path if found is self.data else f"{self.path}.{name}"
        )

    def number(self, name: str, default: float) -> float:
        found = self.data.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._wrong(name, "a number")
        return found

    def truth(self, name: str, default: bool) -> bool:
        found = self.data.get(name, default)
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false")
        return found

    def word(self, name: str, default: str, allowed: Sequence[str] = ()) -> str:
        """A word; if `allowed` is given, one of those. raises Unsupported for another."""
        found = self.data.get(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, "a word")
        if allowed and found not in allowed:
            raise self.op.unsupported(
                f"no library function with {self.path}.{name} '{found}'", help=f"supported: {', '.join(allowed)}"
            )
        return found

    def letter(self, name: str, allowed: str) -> str:
        """A letter, written as its code; the first of those allowed if the text omits it. raises Unsupported for another."""
        code = int(self.number(name, ord(allowed[0])))
        if code not in map(ord, allowed):
            codes = ", ".join(f"{ord(letter)} ({letter})" for letter in allowed)
            raise self.op.unsupported(f"no library function with {self.path}.{name} {code}", help=f"supported: {codes}")
        return chr(code)

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers, written as text in JSON."""
        found = self.data.get(name, [])
        if not isinstance(found, list) or not all(
            (isinstance(n, int) and not isinstance(n, bool)) or (isinstance(n, str) and re.fullmatch(r"\d{1,9}", n))
            for n in cast("list[Any]", found)
        ):
            raise self._wrong(name, "a list of dimensions")
        return [int(n) for n in cast("list[Any]", found)]

    def _wrong(self, name: str, wanted: str) -> VerifyError:
        return broken(
            self.op,
            f"has no good '{name}'",
            f"{self.path}.{name} is {_short(self.data.get(name))}",
            f"it must be {wanted}",
        )


def broken(op: HloOp, message: str, *details: str) -> VerifyError:
    """The error for a custom call whose configuration does not fit it."""
    return VerifyError(
        f"backend_config of %{op.instruction_name.data}, a custom call of '{target_of(op)}', {message}",
        stage="hlo.verify",
        place=written_at(op),
        details=details,
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def unquoted(text: str) -> str:
    """The text in quotes, as JSON or C escapes it."""
    try:
        found = json.loads(text)
    except ValueError:
        return text[1:-1].replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")
    return found if isinstance(found, str) else text


_ATTRIBUTE = re.compile(r"""\s*([\w.$-]+)\s*=\s*(true|false|"[^"]*"|[-+.\w]+)(?:\s*:\s*\w+)?\s*(,|$)""")


def _mlir_attributes(text: str) -> dict[str, Any] | None:
    """`{lower = true, algorithm = 0 : ui8}` as plain data; None for anything else."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    inside, found = text[1:-1].strip(), dict[str, Any]()
    while inside:
        matched = _ATTRIBUTE.match(inside)
        if matched is None:
            return None
        name, value, _ = matched.groups()
        try:
            found[name] = json.loads(value)
        except ValueError:
            return None
        inside = inside[matched.end() :].strip()
    return found
